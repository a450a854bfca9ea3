package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
)

// ciphers of path=ipsec.
const (
	cipherGCM  = "aes-gcm"
	cipherNull = "null"
)

// ipsecTakes returns what ESP takes of a link's MTU: header, vector and check value, and a trailer.
func ipsecTakes(mtu int, cipher string) int {
	const header, trailer, vectorAndCheck = 8, 2, 8 + 16
	takes := header + trailer + mtu%4
	if cipher == cipherGCM {
		takes += vectorAndCheck
	}
	return takes
}

// encrypt lays a cable on which the kernel encrypts everything (ESP, transport mode).
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

// addState adds a state with the cipher. One without tells a lacking cipher from lacking ESP.
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

// ipsecPrograms lists those of strongSwan, which encrypts where the kernel does not.
func ipsecPrograms() []proc.Program {
	list := []proc.Program{
		{Name: "charon", Package: "strongswan-charon", Asks: "--version", Look: there("/usr/lib/ipsec/charon")},
		{Name: "swanctl", Package: "strongswan-swanctl"},
		{Name: "kernel-libipsec", Package: "libcharon-extra-plugins", Look: there("/usr/lib/ipsec/plugins/libstrongswan-kernel-libipsec.so")},
		{Name: "openssl plugin", Package: "libstrongswan-standard-plugins", Look: there("/usr/lib/ipsec/plugins/libstrongswan-openssl.so")},
	}
	for i := range list {
		list[i].For = "path=ipsec"
	}
	return list
}

// there looks for a file at its own place.
func there(file string) func() string {
	return func() string {
		if _, err := os.Stat(file); err != nil {
			return ""
		}
		return file
	}
}

const (
	ipsecName  = "ipsec0" // the interface that strongSwan makes
	userTakes  = 28       // bytes that it takes of the MTU besides the kernel's ESP: headers of IPv4 and UDP
	mostCharon = 1400     // bytes of the largest packet that it reads from its interface
)

// carryIPsec has strongSwan encrypt what goes to its own interface, in UDP: the kernel takes no ESP.
func (n *network) carryIPsec() error {
	if n.cipher == cipherNull {
		return &system.UnableError{Err: fmt.Errorf("this kernel has no %s, and strongSwan in its stead always encrypts", n.kind.needs), Hint: "--set cipher=" + cipherGCM}
	}
	paths, missing := proc.Look("path=ipsec", "", ipsecPrograms())
	if err := missing.Err(); err != nil {
		return system.Lacking(fmt.Errorf("this kernel has no %s, and strongSwan is not there in its stead: %w", n.kind.needs, err), "")
	}
	found, err := ipsecPrograms()[0].Find(context.Background(), "")
	if err != nil {
		return err
	}
	n.carried = "strongSwan " + found.Version + " (kernel-libipsec)"
	n.kind.takes = max(n.kind.takes+userTakes, n.mtu-mostCharon)
	tell := func(i int, args ...string) error {
		dir := filepath.Join(n.keep, "ipsec"+strconv.Itoa(i))
		cmd := n.ends()[i].m.Command(paths["swanctl"], append(args, "--uri", "unix://"+filepath.Join(dir, "control"))...)
		cmd.Env = append(cmd.Env, "STRONGSWAN_CONF="+filepath.Join(dir, "strongswan.conf"))
		return run(n.ends()[i].m, cmd, nil)
	}
	for i, e := range n.ends() {
		dir := filepath.Join(n.keep, "ipsec"+strconv.Itoa(i))
		if err := e.writeIPsec(dir); err != nil {
			return err
		}
		cmd := e.m.Command(paths["charon"], "--use-syslog", "no")
		cmd.Env = append(cmd.Env, "STRONGSWAN_CONF="+filepath.Join(dir, "strongswan.conf"))
		p, err := n.carry(e.m, cmd, "charon", nil, e.cpus)
		if err != nil {
			return err
		}
		err = p.Await(context.Background(), carrierBound, func() error { return local.Answers("unix", filepath.Join(dir, "control")) })
		if err == nil {
			err = tell(i, "--load-all", "--file", filepath.Join(dir, "swanctl.conf"))
		}
		if err != nil {
			return fmt.Errorf("start strongSwan: %w", err)
		}
		if err := n.fit(e.m, ipsecName); err != nil {
			return fmt.Errorf("set the MTU of %s: %w", ipsecName, err)
		}
	}
	if err := n.finishTunnel(ipsecName); err != nil {
		return err
	}
	if err := tell(0, "--initiate", "--child", "path", "--timeout", "10"); err != nil {
		return fmt.Errorf("have strongSwan agree on keys: %w", err)
	}
	return nil
}

// writeIPsec writes what strongSwan reads of one side.
func (e end) writeIPsec(dir string) error {
	address := map[string]string{clientLink: clientEnd, serverLink: serverEnd}
	err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700))
	for name, text := range map[string]string{
		"strongswan.conf": fmt.Sprintf(`charon {
  load = random nonce openssl kdf kernel-libipsec kernel-netlink socket-default vici
  install_routes = no
  filelog { stderr { default = 0 } }
  plugins { vici { socket = unix://%s/control } }
}
swanctl { load = openssl random nonce }
`, dir),
		"swanctl.conf": fmt.Sprintf(`connections { path {
  version = 2
  local_addrs = %[1]s
  remote_addrs = %[2]s
  encap = yes
  proposals = aes128gcm16-prfsha256-x25519
  local { auth = psk
    id = %[1]s }
  remote { auth = psk
    id = %[2]s }
  children { path { local_ts = %[3]s/32
    remote_ts = %[4]s/32
    esp_proposals = aes128gcm16 } }
} }
secrets { ike { secret = "nobody else sees it" } }
`, e.own, e.peer, address[e.own], address[e.peer]),
	} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("write what strongSwan reads: %w", err)
	}
	return nil
}
