package router

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// accepting is how many connections a listening socket of this machine has that
// nobody has accepted yet, and how many it may have. The kernel is asked for
// listening sockets alone: of others there may be tens of thousands.
func accepting(address string) (waiting, most int, err error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return 0, 0, fmt.Errorf("read a listener's queue: %w", err)
	}
	// struct inet_diag_req_v2, whose addresses are not looked at in a list.
	const listening = 1 << 10
	var ask [56]byte
	ask[0], ask[1] = unix.AF_INET, unix.IPPROTO_TCP
	if at.Addr().Is6() {
		ask[0] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(ask[4:], listening)
	binary.BigEndian.PutUint16(ask[8:], at.Port())
	request := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
	request.AddRawData(ask[:])
	answers, err := request.Execute(unix.NETLINK_INET_DIAG, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("read a listener's queue: %w", err)
	}
	found := false
	for _, a := range answers {
		// struct inet_diag_msg, the address after four bytes and two ports.
		if len(a) < 64 || binary.BigEndian.Uint16(a[4:]) != at.Port() || !bytes.HasPrefix(a[8:24], at.Addr().AsSlice()) {
			continue
		}
		found = true
		waiting += int(binary.NativeEndian.Uint32(a[56:]))
		most += int(binary.NativeEndian.Uint32(a[60:]))
	}
	if !found {
		return 0, 0, fmt.Errorf("read a listener's queue: nobody listens on %s", address)
	}
	return waiting, most, nil
}
