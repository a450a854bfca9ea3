package realnode

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
)

// Link holds the addresses of the link between this machine and the node.
type Link struct {
	Host netip.Addr `json:"host"` // this machine's, where the API server listens
	Node netip.Addr `json:"node"`
}

const linkBits = 30 // the prefix of a link's range: two addresses

func hostEnd(dir string) string { return "plm" + tag(dir) + "h" }
func nodeEnd(dir string) string { return "plm" + tag(dir) + "n" }

// ChooseLink returns unused addresses from the ranges for documentation (RFC 5737).
func ChooseLink() (Link, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return Link{}, fmt.Errorf("read the machine's addresses: %w", err)
	}
	var used []netip.Prefix
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			used = append(used, p)
		}
	}
	return chooseLink(used)
}

func chooseLink(used []netip.Prefix) (Link, error) {
	for _, first := range [][3]byte{{192, 0, 2}, {198, 51, 100}, {203, 0, 113}} {
		for last := 0; last < 256; last += 4 {
			address := func(n int) netip.Addr {
				return netip.AddrFrom4([4]byte{first[0], first[1], first[2], byte(last + n)})
			}
			candidate := netip.PrefixFrom(address(0), linkBits)
			if !slices.ContainsFunc(used, candidate.Overlaps) {
				return Link{Host: address(1), Node: address(2)}, nil
			}
		}
	}
	return Link{}, errors.New("every address for a link to the node is in use")
}

func prefixOf(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(linkBits, 32)}
}

// MakeLink makes the link, with both ends on this machine.
func (s Spec) MakeLink() error {
	if err := removeLink(s.Dir); err != nil {
		return err
	}
	name := hostEnd(s.Dir)
	attributes := netlink.NewLinkAttrs()
	attributes.Name = name
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: nodeEnd(s.Dir)}); err != nil {
		return fmt.Errorf("create the link to the node: %w", err)
	}
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.AddrAdd(link, &netlink.Addr{IPNet: prefixOf(s.Link.Host)})
	}
	if err == nil {
		err = netlink.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("create the link to the node: %w", err)
	}
	return nil
}

// Attach moves the node's end of the link to the node, whose first process is pid.
func (s Spec) Attach(pid int) error {
	end, err := netlink.LinkByName(nodeEnd(s.Dir))
	if err == nil {
		err = netlink.LinkSetNsPid(end, pid)
	}
	if err != nil {
		return fmt.Errorf("attach the node's network: %w", err)
	}
	return nil
}

// removeLink removes a link that its node has left behind. The kernel may be removing it already.
func removeLink(dir string) error {
	for _, name := range []string{hostEnd(dir), nodeEnd(dir)} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			if errors.As(err, new(netlink.LinkNotFoundError)) {
				continue
			}
			return fmt.Errorf("remove the link to the node: %w", err)
		}
		if err := netlink.LinkDel(link); err != nil {
			if _, now := netlink.LinkByName(name); now != nil {
				continue
			}
			return fmt.Errorf("remove the link to the node: %w", err)
		}
	}
	return nil
}

// Remove removes what an ended node leaves outside of its directory: control groups and a link.
func Remove(dir string) error { return errors.Join(removeGroups(dir), removeLink(dir)) }

// Leftovers lists the control groups and links of a lab.
func Leftovers(dir string) []string {
	var found []string
	if h, err := findHierarchy(); err == nil {
		for _, root := range h.roots() {
			for _, g := range []string{group(dir), controlPlaneGroup(dir)} {
				if _, err := os.Stat(root + "/" + g); err == nil {
					found = append(found, root+"/"+g)
				}
			}
		}
	}
	for _, name := range []string{hostEnd(dir), nodeEnd(dir)} {
		if _, err := netlink.LinkByName(name); err == nil {
			found = append(found, name)
		}
	}
	return found
}

const linkPatience = 20 * time.Second // of the node's first process

func (s Spec) configureNetwork() error {
	loopback, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(loopback)
	}
	if err != nil {
		return fmt.Errorf("set up the loopback: %w", err)
	}
	var end netlink.Link
	for deadline := time.Now().Add(linkPatience); ; time.Sleep(5 * time.Millisecond) {
		if end, err = netlink.LinkByName(nodeEnd(s.Dir)); err == nil {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("wait for the link: %w", err)
		}
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"name the link", func() error { return netlink.LinkSetName(end, "eth0") }},
		{"give the link its address", func() error { return netlink.AddrAdd(end, &netlink.Addr{IPNet: prefixOf(s.Link.Node)}) }},
		{"set up the link", func() error { return netlink.LinkSetUp(end) }},
		// Without a route the kernel refuses a service's address before the proxy can translate it.
		{"route by the link", func() error {
			return netlink.RouteAdd(&netlink.Route{LinkIndex: end.Attrs().Index, Gw: s.Link.Host.AsSlice()})
		}},
		{"let the node forward", func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}
