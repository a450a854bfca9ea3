package network

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/system"
)

// kindOfPath is a way in which client and server are joined.
type kindOfPath struct {
	name  string
	hops  int    // machines between the two
	takes int    // bytes of the MTU, for the headers of a tunnel
	needs string // option of the kernel, "" for one that is always there
	// tunnel is the interface of a tunnel between two addresses; nil for none.
	tunnel func(a netlink.LinkAttrs, own, peer net.IP) netlink.Link
}

// kindsOfPath are all.
func kindsOfPath() []kindOfPath {
	return []kindOfPath{
		{name: "direct", needs: "CONFIG_VETH"},
		{name: "bridge", hops: 1, needs: "CONFIG_BRIDGE"},
		{name: "routed", hops: 2, needs: "CONFIG_VETH"},
		{name: "vxlan", takes: 50, needs: "CONFIG_VXLAN", tunnel: func(a netlink.LinkAttrs, own, peer net.IP) netlink.Link {
			return &netlink.Vxlan{LinkAttrs: a, VxlanId: 1, SrcAddr: own, Group: peer, Port: 4789}
		}},
		{name: "geneve", takes: 50, needs: "CONFIG_GENEVE", tunnel: func(a netlink.LinkAttrs, _, peer net.IP) netlink.Link {
			return &netlink.Geneve{LinkAttrs: a, ID: 1, Remote: peer, Dport: 6081}
		}},
		{name: "gre", takes: 24, needs: "CONFIG_NET_IPGRE", tunnel: func(a netlink.LinkAttrs, own, peer net.IP) netlink.Link {
			return &netlink.Gretun{LinkAttrs: a, Local: own, Remote: peer, Ttl: 64, PMtuDisc: 1}
		}},
		{name: "ipip", takes: 20, needs: "CONFIG_NET_IPIP", tunnel: func(a netlink.LinkAttrs, own, peer net.IP) netlink.Link {
			return &netlink.Iptun{LinkAttrs: a, Local: own, Remote: peer, Ttl: 64, PMtuDisc: 1}
		}},
	}
}

// kindNamed is the one of that name; the workload allows no other.
func kindNamed(name string) *kindOfPath {
	list := kindsOfPath()
	i := slices.IndexFunc(list, func(k kindOfPath) bool { return k.name == name })
	return &list[max(i, 0)]
}

const (
	linkName   = "link0" // of client and server
	tunnelName = "tunnel0"
	bridgeName = "bridge0"
	// prefixBits is how many bits of an address name its network: of those that are
	// set aside for examples (RFC 5737), which these machines alone see.
	prefixBits = 24
)

// network is a path with its two ends.
type network struct {
	settings
	client, server *machine.Machine
	hops           []*machine.Machine
	at             netip.Addr // the server's address, through the path
	links          map[*machine.Machine]*netlink.Handle
}

// build builds a path. Where it fails nothing is left.
func build(tied *proc.Tie, h system.Host, keep string, s settings) (*network, error) {
	n := &network{settings: s, links: make(map[*machine.Machine]*netlink.Handle)}
	err := n.build(tied, h.Executable, keep)
	if err == nil {
		err = n.tryMTU(h.Now)
	}
	if err != nil {
		n.close()
		return nil, fmt.Errorf("build the path %s: %w", s.kind.name, err)
	}
	return n, nil
}

func (n *network) build(tied *proc.Tie, executable, keep string) error {
	for i := range 2 + n.kind.hops {
		m, err := machine.Start(tied, executable, machine.Spec{Keep: keep})
		if err != nil {
			return err
		}
		switch i {
		case 0:
			n.client = m
		case 1:
			n.server = m
		default:
			n.hops = append(n.hops, m)
		}
		if n.links[m], err = m.Network(); err != nil {
			return err
		}
	}
	var err error
	switch n.kind.hops {
	case 0:
		err = errors.Join(n.join(n.client, n.server, linkName, linkName), n.address(n.client, linkName, "192.0.2.1"), n.address(n.server, linkName, "192.0.2.2"))
		n.at = netip.MustParseAddr("192.0.2.2")
	case 1:
		err = n.bridge()
	default:
		err = n.route()
	}
	if err != nil {
		return err
	}
	if n.kind.tunnel != nil {
		if err := n.tunnel(n.client, "198.51.100.1", "192.0.2.1", "192.0.2.2"); err != nil {
			return err
		}
		if err := n.tunnel(n.server, "198.51.100.2", "192.0.2.2", "192.0.2.1"); err != nil {
			return err
		}
		n.at = netip.MustParseAddr("198.51.100.2")
	}
	for _, m := range []*machine.Machine{n.client, n.server} {
		if err := n.offload(m); err != nil {
			return err
		}
		if n.linkRate > 0 {
			link, err := n.links[m].LinkByName(linkName)
			if err == nil {
				err = machine.LimitRate(n.links[m], link, n.linkRate)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *network) attributes(name string, mtu int) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name, a.MTU = name, mtu
	return a
}

// join lays a cable (veth) between two machines.
func (n *network) join(a, b *machine.Machine, nameA, nameB string) error {
	attributes := n.attributes(nameA, n.mtu)
	attributes.NumTxQueues, attributes.NumRxQueues = n.queues, n.queues
	link := &netlink.Veth{LinkAttrs: attributes, PeerName: nameB, PeerNamespace: netlink.NsPid(b.PID()), PeerMTU: uint32(n.mtu), PeerNumTxQueues: uint32(n.queues), PeerNumRxQueues: uint32(n.queues)}
	if err := n.links[a].LinkAdd(link); err != nil {
		return n.refused(err)
	}
	return errors.Join(n.up(a, nameA), n.up(b, nameB))
}

// refused says which option a kernel lacks that knows no such link.
func (n *network) refused(err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV) {
		return &system.UnableError{Err: fmt.Errorf("this kernel has no %s", n.kind.needs), Hint: "run on a kernel that has it, or choose another path: --set path=direct"}
	}
	return fmt.Errorf("make a link: %w", err)
}

func (n *network) up(m *machine.Machine, name string) error {
	link, err := n.links[m].LinkByName(name)
	if err == nil {
		err = n.links[m].LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("set up %s: %w", name, err)
	}
	return nil
}

// address gives an interface its address.
func (n *network) address(m *machine.Machine, name, address string) error {
	link, err := n.links[m].LinkByName(name)
	if err == nil {
		err = n.links[m].AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address), Mask: net.CIDRMask(prefixBits, 32)}})
	}
	if err != nil {
		return fmt.Errorf("give %s the address %s: %w", name, address, err)
	}
	return nil
}

// bridge joins client and server by a bridge in a machine between them.
func (n *network) bridge() error {
	hub := n.hops[0]
	if err := n.links[hub].LinkAdd(&netlink.Bridge{LinkAttrs: n.attributes(bridgeName, n.mtu)}); err != nil {
		return n.refused(err)
	}
	bridge, err := n.links[hub].LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("make a bridge: %w", err)
	}
	for i, m := range []*machine.Machine{n.client, n.server} {
		port := "port" + strconv.Itoa(i)
		if err := n.join(m, hub, linkName, port); err != nil {
			return err
		}
		link, err := n.links[hub].LinkByName(port)
		if err == nil {
			err = n.links[hub].LinkSetMaster(link, bridge)
		}
		if err != nil {
			return fmt.Errorf("join a bridge: %w", err)
		}
	}
	n.at = netip.MustParseAddr("192.0.2.2")
	return errors.Join(n.up(hub, bridgeName), n.address(n.client, linkName, "192.0.2.1"), n.address(n.server, linkName, "192.0.2.2"))
}

// route joins client and server by two routers.
func (n *network) route() error {
	first, second := n.hops[0], n.hops[1]
	n.at = netip.MustParseAddr("198.51.100.1")
	if err := errors.Join(
		n.join(n.client, first, linkName, "near0"), n.join(first, second, "far0", "near0"), n.join(second, n.server, "far0", linkName),
		n.address(n.client, linkName, "192.0.2.1"), n.address(first, "near0", "192.0.2.254"),
		n.address(first, "far0", "203.0.113.1"), n.address(second, "near0", "203.0.113.2"),
		n.address(second, "far0", "198.51.100.254"), n.address(n.server, linkName, n.at.String()),
	); err != nil {
		return err
	}
	for _, x := range []struct {
		m       *machine.Machine
		to, via string
	}{{n.client, "", "192.0.2.254"}, {n.server, "", "198.51.100.254"}, {first, "198.51.100.0/24", "203.0.113.2"}, {second, "192.0.2.0/24", "203.0.113.1"}} {
		r := &netlink.Route{Gw: net.ParseIP(x.via)}
		if x.to != "" {
			_, r.Dst, _ = net.ParseCIDR(x.to)
		}
		if err := n.links[x.m].RouteAdd(r); err != nil {
			return fmt.Errorf("add a route by %s: %w", x.via, err)
		}
	}
	for _, m := range n.hops {
		if err := m.InNetwork(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600) }); err != nil {
			return fmt.Errorf("have a machine forward packets: %w", err)
		}
	}
	return nil
}

// tunnel makes an end of the tunnel, from one address of the link to another.
func (n *network) tunnel(m *machine.Machine, address, own, peer string) error {
	attributes := n.attributes(tunnelName, n.inner())
	if err := n.links[m].LinkAdd(n.kind.tunnel(attributes, net.ParseIP(own).To4(), net.ParseIP(peer).To4())); err != nil {
		return n.refused(err)
	}
	return errors.Join(n.address(m, tunnelName, address), n.up(m, tunnelName))
}

// offload sets the offloads that are asked for, on the link and the tunnel, and reads
// them back: the kernel leaves out without a word what an interface does not have.
func (n *network) offload(m *machine.Machine) error {
	if len(n.offloads) == 0 {
		return nil
	}
	return m.InNetwork(func() error {
		e, err := ethtool.NewEthtool()
		if err != nil {
			return fmt.Errorf("set offloads: %w", err)
		}
		defer e.Close()
		names := []string{linkName}
		if n.kind.tunnel != nil {
			names = append(names, tunnelName)
		}
		for _, name := range names {
			for _, offload := range slices.Sorted(maps.Keys(n.offloads)) {
				if err := setOffload(e, name, offload, n.offloads[offload]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func setOffload(e *ethtool.Ethtool, link, offload string, on bool) error {
	has, err := e.FeaturesWithState(link)
	if err != nil {
		return fmt.Errorf("read the offloads of %s: %w", link, err)
	}
	change := make(map[string]bool)
	for _, f := range features()[offload] {
		if state, ok := has[f]; ok && state.Available && state.Active != on {
			change[f] = on
		}
	}
	if len(change) > 0 {
		if err := e.Change(link, change); err != nil {
			return fmt.Errorf("set %s of %s: %w", offload, link, err)
		}
	}
	is, err := e.Features(link)
	if err != nil {
		return fmt.Errorf("read the offloads of %s: %w", link, err)
	}
	if first := features()[offload][0]; is[first] != on {
		return system.ParamMistake(offload, offload+"=kernel leaves it as it is", "%s of %s cannot be set to %t on this kernel (%s)", offload, link, on, first)
	}
	return nil
}

// headers of a datagram: IPv4's and UDP's.
const headers = 28

// tryMTU sends a packet that is as large as the path should carry and may not be
// fragmented.
func (n *network) tryMTU(now func() time.Time) error {
	var listener net.PacketConn
	err := n.server.InNetwork(func() (err error) {
		listener, err = net.ListenPacket("udp4", net.JoinHostPort(n.at.String(), "0"))
		return err
	})
	if err != nil {
		return fmt.Errorf("try the path: %w", err)
	}
	defer listener.Close()
	var conn net.Conn
	err = n.client.InNetwork(func() (err error) {
		conn, err = net.Dial("udp4", listener.LocalAddr().String())
		return err
	})
	if err != nil {
		return fmt.Errorf("try the path: %w", err)
	}
	defer conn.Close()
	raw, err := conn.(*net.UDPConn).SyscallConn()
	if err == nil {
		err = errors.Join(raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
		}), err)
	}
	if err != nil {
		return fmt.Errorf("try the path: %w", err)
	}
	packet, got := make([]byte, n.inner()-headers), make([]byte, n.mtu)
	for deadline := now().Add(probeBound); ; { // the first ones wait for neighbours to be found
		if _, err := conn.Write(packet); errors.Is(err, unix.EMSGSIZE) {
			break
		}
		_ = listener.SetReadDeadline(now().Add(probeBound / 20))
		if size, _, err := listener.ReadFrom(got); err == nil && size == len(packet) {
			return nil
		}
		if now().After(deadline) {
			break
		}
	}
	return fmt.Errorf("a packet of %d bytes that may not be fragmented does not pass (mtu=%d)", n.inner(), n.mtu)
}

// broken says what of the path is gone, "" for nothing.
func (n *network) broken() string {
	for name, m := range map[string]*machine.Machine{"client": n.client, "server": n.server} {
		select {
		case <-m.Ended():
			return "the " + name + "'s machine has ended"
		default:
		}
		for _, link := range n.interfaces() {
			if l, err := n.links[m].LinkByName(link); err != nil || l.Attrs().Flags&net.FlagUp == 0 {
				return link + " of the " + name + " is gone or down"
			}
		}
	}
	return ""
}

// interfaces are those that client and server both have on the path.
func (n *network) interfaces() []string {
	if n.kind.tunnel != nil {
		return []string{linkName, tunnelName}
	}
	return []string{linkName}
}

// close takes the path away with all that runs on it.
func (n *network) close() {
	for _, h := range n.links {
		if h != nil {
			h.Close()
		}
	}
	for _, m := range append([]*machine.Machine{n.client, n.server}, n.hops...) {
		if m != nil {
			m.Close()
		}
	}
}
