package network

import (
	"cmp"
	"errors"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ciphers of path=ipsec.
const (
	cipherGCM  = "aes-gcm"
	cipherNull = "null"
)

// ipsecTakes is what ESP takes of a link's MTU: its header, AES-GCM's initialisation
// vector and check value, and a trailer that fills up to four bytes.
func ipsecTakes(mtu int, cipher string) int {
	const header, trailer, vectorAndCheck = 8, 2, 8 + 16
	takes := header + trailer + mtu%4
	if cipher == cipherGCM {
		takes += vectorAndCheck
	}
	return takes
}

// encrypt joins client and server by a cable on which the kernel encrypts everything
// (ESP, transport mode).
func (n *network) encrypt() error {
	if err := n.cable(); err != nil {
		return err
	}
	key := []byte("nobody else sees it.") // AES-128's, and a salt of 4 bytes
	for _, e := range n.ends() {
		h := n.links[e.m]
		own, peer := net.ParseIP(e.own).To4(), net.ParseIP(e.peer).To4()
		for _, x := range []struct {
			from, to  net.IP
			direction netlink.Dir
		}{{own, peer, netlink.XFRM_DIR_OUT}, {peer, own, netlink.XFRM_DIR_IN}} {
			// A number for each direction, the same on both ends.
			state := &netlink.XfrmState{Src: x.from, Dst: x.to, Proto: netlink.XFRM_PROTO_ESP, Mode: netlink.XFRM_MODE_TRANSPORT, Spi: 0x1000 + int(x.to[3]), Reqid: 1, ReplayWindow: 32}
			err := n.addState(h, state, key)
			if errors.Is(err, unix.EPROTONOSUPPORT) {
				return n.carryIPsec()
			}
			if err != nil {
				return n.refused(err)
			}
			host := func(ip net.IP) *net.IPNet { return &net.IPNet{IP: ip, Mask: net.CIDRMask(32, 32)} }
			err = h.XfrmPolicyAdd(&netlink.XfrmPolicy{
				Src: host(x.from), Dst: host(x.to), Dir: x.direction,
				Tmpls: []netlink.XfrmPolicyTmpl{{Src: x.from, Dst: x.to, Proto: netlink.XFRM_PROTO_ESP, Mode: netlink.XFRM_MODE_TRANSPORT, Reqid: 1}},
			})
			if err != nil {
				return n.refused(err)
			}
		}
	}
	return nil
}

// addState adds a state with the cipher. One that the kernel has not is told from ESP
// that it has not by a state without any.
func (n *network) addState(h *netlink.Handle, state *netlink.XfrmState, key []byte) error {
	var lacks error
	if n.cipher == cipherGCM {
		state.Aead = &netlink.XfrmStateAlgo{Name: "rfc4106(gcm(aes))", Key: key, ICVLen: 128}
		if lacks = h.XfrmStateAdd(state); !errors.Is(lacks, unix.ENOSYS) {
			return lacks
		}
		state.Aead = nil
	}
	state.Crypt, state.Auth = &netlink.XfrmStateAlgo{Name: "ecb(cipher_null)"}, &netlink.XfrmStateAlgo{Name: "digest_null"}
	return cmp.Or(h.XfrmStateAdd(state), lacks)
}
