package router

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/proc"
)

// link joins clients to one router: a namespace for it and its servers, and a cable of limited rate. The
// kernel removes both with this program and the processes in it.
type link struct {
	tied            *proc.Tie
	inside, outside *os.File // the namespaces, outside is this program's own
	end             netlink.Link
}

const linkBits, linkBits6 = 24, 64

// makeLink makes a link of so many bits a second with its addresses, of which its outer end has several.
func makeLink(tied *proc.Tie, rate float64, name, inside string, outside []string) (*link, error) {
	l := &link{tied: tied}
	err := tied.Do(func() (err error) {
		const own = "/proc/thread-self/ns/net"
		if l.outside, err = os.Open(own); err != nil {
			return err
		}
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unix.Setns(int(l.outside.Fd()), unix.CLONE_NEWNET)) }()
		if l.inside, err = os.Open(own); err != nil {
			return err
		}
		if err = connect("lo", 0); err != nil {
			return err
		}
		attributes := netlink.NewLinkAttrs()
		attributes.Name = name
		if err = netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: name, PeerNamespace: netlink.NsFd(l.outside.Fd())}); err != nil {
			return err
		}
		return connect(name, rate, inside)
	})
	if err == nil {
		err = tied.Do(func() (err error) {
			if err = connect(name, rate, outside...); err == nil {
				l.end, err = netlink.LinkByName(name)
			}
			return err
		})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a link of limited rate: %w", err), l.remove())
	}
	return l, nil
}

// connect sets up an end of a link with its addresses, and bounds what leaves it to a rate, 0 for any.
func connect(name string, rate float64, addresses ...string) error {
	end, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	for _, a := range addresses {
		to := netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(a), Mask: net.CIDRMask(linkBits, 32)}}
		if to.IP.To4() == nil {
			// Else the kernel asks for a second whether another end has the address.
			to.Mask, to.Flags = net.CIDRMask(linkBits6, 128), unix.IFA_F_NODAD
		}
		if err := netlink.AddrAdd(end, &to); err != nil {
			return fmt.Errorf("give %s the address %s: %w", name, a, err)
		}
	}
	if err := netlink.LinkSetUp(end); err != nil {
		return fmt.Errorf("set up %s: %w", name, err)
	}
	if rate == 0 {
		return nil
	}
	return machine.LimitRate(&netlink.Handle{}, end, rate)
}

// within calls a function on a thread in the namespace, such as one that starts a process there.
func (l *link) within(call func() error) error {
	return l.tied.Do(func() (err error) {
		if err = unix.Setns(int(l.inside.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter the router's network: %w", err)
		}
		defer func() { err = errors.Join(err, unix.Setns(int(l.outside.Fd()), unix.CLONE_NEWNET)) }()
		return call()
	})
}

// received counts the bytes that have come from the router, with their headers.
func (l *link) received() (float64, error) {
	end, err := netlink.LinkByIndex(l.end.Attrs().Index)
	if err != nil {
		return 0, fmt.Errorf("read what the link carried: %w", err)
	}
	return float64(end.Attrs().Statistics.RxBytes), nil
}

// remove takes the link away. What runs inside must have ended.
func (l *link) remove() error {
	var err error
	if l.end != nil {
		if err = netlink.LinkDel(l.end); err != nil {
			err = fmt.Errorf("remove the link: %w", err)
		}
	}
	for _, f := range []*os.File{l.inside, l.outside} {
		if f != nil {
			f.Close()
		}
	}
	return err
}
