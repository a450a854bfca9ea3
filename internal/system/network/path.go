package network

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
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
	takes int    // bytes of the MTU, for headers besides those of the packet
	hides string // directory that its programs must have each for themselves
	needs string // option of the kernel, "" for one that is not needed
	lay   func(*network) error
}

func kindsOfPath() []kindOfPath {
	return []kindOfPath{
		{name: "direct", needs: "CONFIG_VETH", lay: (*network).cable},
		{name: "bridge", hops: 1, needs: "CONFIG_BRIDGE", lay: (*network).bridge},
		{name: "routed", hops: 2, needs: "CONFIG_VETH", lay: (*network).route},
		{name: "vxlan", takes: 50, needs: "CONFIG_VXLAN", lay: tunnel(func(a netlink.LinkAttrs, own, peer net.IP) netlink.Link {
			return &netlink.Vxlan{LinkAttrs: a, VxlanId: 1, SrcAddr: own, Group: peer, Port: 4789}
		})},
		{name: "geneve", takes: 50, needs: "CONFIG_GENEVE", lay: tunnel(func(a netlink.LinkAttrs, _, peer net.IP) netlink.Link {
			return &netlink.Geneve{LinkAttrs: a, ID: 1, Remote: peer, Dport: 6081}
		})},
		{name: "gre", takes: 24, needs: "CONFIG_NET_IPGRE", lay: tunnel(func(a netlink.LinkAttrs, own, peer net.IP) netlink.Link {
			return &netlink.Gretun{LinkAttrs: a, Local: own, Remote: peer, Ttl: 64, PMtuDisc: 1}
		})},
		{name: "ipip", takes: 20, needs: "CONFIG_NET_IPIP", lay: tunnel(func(a netlink.LinkAttrs, own, peer net.IP) netlink.Link {
			return &netlink.Iptun{LinkAttrs: a, Local: own, Remote: peer, Ttl: 64, PMtuDisc: 1}
		})},
		{name: "wireguard", takes: 60, lay: (*network).wireguard},
		{name: "ipsec", hides: "/run", needs: "CONFIG_INET_ESP", lay: (*network).encrypt},
		{name: "ovs", hops: 2, needs: "CONFIG_VETH", lay: (*network).switches},
	}
}

func kindNamed(name string) *kindOfPath {
	list := kindsOfPath()
	i := slices.IndexFunc(list, func(k kindOfPath) bool { return k.name == name })
	return &list[max(i, 0)]
}

const (
	linkName   = "link0"     // of client and server
	clientLink = "192.0.2.1" // addresses of the links, and of the tunnels over them
	serverLink = "192.0.2.2"
	clientEnd  = "198.51.100.1"
	serverEnd  = "198.51.100.2"
	tunnelName = "tunnel0"
	bridgeName = "bridge0"
	prefixBits = 24 // of the network of an address set aside for examples (RFC 5737)
)

// network is a path with its two ends.
type network struct {
	settings
	client, server *machine.Machine
	hops           []*machine.Machine
	at             netip.Addr      // the server's address, through the path
	tunnel         string          // interface of client and server, "" where there is no tunnel
	carriers       []carrier       // programs that carry packets
	carried        string          // what they are, "" for none
	served         int             // process of the server
	sockets        *netlink.Handle // asks the kernel for those of the server
	links          map[*machine.Machine]*netlink.Handle
	executable     string
	now            func() time.Time
	keep           string // directory that every machine sees
	switched       []openSwitch
}

// build builds a path. Where it fails nothing is left.
func build(tied *proc.Tie, h system.Host, keep string, s settings) (*network, error) {
	n := &network{settings: s, links: make(map[*machine.Machine]*netlink.Handle), executable: h.Executable, now: h.Now, keep: keep}
	n.offloads = make(map[string]bool)
	maps.Copy(n.offloads, s.offloads)
	kind := *s.kind // of which a program may take more
	n.kind = &kind
	err := n.build(tied)
	if err != nil {
		n.close()
		return nil, fmt.Errorf("build the path %s: %w", s.kind.name, err)
	}
	return n, nil
}

func (n *network) build(tied *proc.Tie) error {
	for i := range 2 + n.kind.hops {
		spec := machine.Spec{Keep: n.keep}
		if n.kind.hides != "" {
			spec.Hide = []string{n.kind.hides}
		}
		m, err := machine.Start(tied, n.executable, spec)
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
		// Links have addresses of IPv4 alone: what IPv6 asks for on its own is not the path's.
		err = m.InNetwork(func() error { return os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0o600) })
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("do without IPv6: %w", err)
		}
	}
	if err := n.kind.lay(n); err != nil {
		return err
	}
	if err := n.server.InNetwork(func() (err error) {
		n.sockets, err = netlink.NewHandle(unix.NETLINK_INET_DIAG)
		return err
	}); err != nil {
		return fmt.Errorf("ask for the server's connections: %w", err)
	}
	if n.window > 0 {
		sizes := fmt.Appendf(nil, "%d %d %d", min(n.window, 4096), n.window, n.window)
		if err := n.client.InNetwork(func() error { return os.WriteFile("/proc/sys/net/ipv4/tcp_rmem", sizes, 0o600) }); err != nil {
			return fmt.Errorf("set the client's receive buffers: %w", err)
		}
	}
	for i := range n.carriers {
		n.carriers[i].pid = n.carriers[i].Inner()
	}
	for _, m := range []*machine.Machine{n.client, n.server} {
		if err := n.offload(m); err != nil {
			return err
		}
		if n.linkRate > 0 {
			err := n.link(m, linkName, func(h *netlink.Handle, link netlink.Link) error { return machine.LimitRate(h, link, n.linkRate) })
			if err != nil {
				return err
			}
		}
	}
	// A packet as large as the path should carry. What is not joined yet loses the first ones.
	if err := n.send(n.inner()-headers, 1, probeBound/20); errors.Is(err, errStuck) {
		return fmt.Errorf("a packet of %d bytes that may not be fragmented does not pass (mtu=%d)", n.inner(), n.mtu)
	} else if err != nil {
		return err
	}
	return n.lose()
}

// cable joins client and server by one.
func (n *network) cable() error {
	n.at = netip.MustParseAddr(serverLink)
	return errors.Join(n.join(n.client, n.server, linkName, linkName), n.address(n.client, linkName, clientLink), n.address(n.server, linkName, serverLink))
}

func (n *network) attributes(name string, mtu int) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name, a.MTU = name, mtu
	return a
}

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
	lacks := n.kind.needs
	switch {
	case errors.Is(err, unix.ENOSYS) && n.cipher == cipherGCM:
		lacks = "CONFIG_CRYPTO_GCM"
	case !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.EPROTONOSUPPORT):
		return fmt.Errorf("make a link: %w", err)
	}
	return &system.UnableError{Err: fmt.Errorf("this kernel has no %s", lacks), Hint: "run on a kernel that has it, or choose another path: --set path=direct"}
}

// link calls a function with an interface of a machine.
func (n *network) link(m *machine.Machine, name string, call func(*netlink.Handle, netlink.Link) error) error {
	link, err := n.links[m].LinkByName(name)
	if err == nil {
		err = call(n.links[m], link)
	}
	return err
}

func (n *network) up(m *machine.Machine, name string) error {
	if err := n.link(m, name, (*netlink.Handle).LinkSetUp); err != nil {
		return fmt.Errorf("set up %s: %w", name, err)
	}
	return nil
}

// fit lets an interface of a machine take what fits into the path.
func (n *network) fit(m *machine.Machine, name string) error {
	return n.link(m, name, func(h *netlink.Handle, link netlink.Link) error { return h.LinkSetMTU(link, n.inner()) })
}

func (n *network) address(m *machine.Machine, name, address string) error {
	err := n.link(m, name, func(h *netlink.Handle, link netlink.Link) error {
		return h.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address), Mask: net.CIDRMask(prefixBits, 32)}})
	})
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
		err := n.link(hub, port, func(h *netlink.Handle, link netlink.Link) error { return h.LinkSetMaster(link, bridge) })
		if err != nil {
			return fmt.Errorf("join a bridge: %w", err)
		}
	}
	n.at = netip.MustParseAddr(serverLink)
	return errors.Join(n.up(hub, bridgeName), n.address(n.client, linkName, clientLink), n.address(n.server, linkName, serverLink))
}

// route joins client and server by two routers.
func (n *network) route() error {
	first, second := n.hops[0], n.hops[1]
	n.at = netip.MustParseAddr("198.51.100.1")
	if err := errors.Join(
		n.join(n.client, first, linkName, "near0"), n.join(first, second, "far0", "near0"), n.join(second, n.server, "far0", linkName),
		n.address(n.client, linkName, clientLink), n.address(first, "near0", "192.0.2.254"),
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

// tunnel lays a tunnel over a cable: one makes its ends from an address of the link to the other one.
func tunnel(one func(a netlink.LinkAttrs, own, peer net.IP) netlink.Link) func(*network) error {
	return func(n *network) error {
		if err := n.cable(); err != nil {
			return err
		}
		for _, e := range n.ends() {
			if err := n.links[e.m].LinkAdd(one(n.attributes(tunnelName, n.inner()), net.ParseIP(e.own).To4(), net.ParseIP(e.peer).To4())); err != nil {
				return n.refused(err)
			}
		}
		return n.finishTunnel(tunnelName)
	}
}

type end struct {
	m                  *machine.Machine
	own, peer, address string // of the links, and of its interface
	cpus               []int
}

func (n *network) ends() [2]end {
	return [2]end{{n.client, clientLink, serverLink, clientEnd, n.clientCPUs}, {n.server, serverLink, clientLink, serverEnd, n.serverCPUs}}
}

func (n *network) finishTunnel(name string) error {
	n.tunnel, n.at = name, netip.MustParseAddr(serverEnd)
	for _, e := range n.ends() {
		if err := errors.Join(n.address(e.m, name, e.address), n.up(e.m, name)); err != nil {
			return err
		}
	}
	return nil
}

// offload sets the offloads, and reads them back: the kernel silently leaves out what it lacks.
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
		for _, name := range n.interfaces() {
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

const headers = 28 // of a datagram: IPv4's and UDP's

var errStuck = errors.New("a packet does not pass") // says that a packet does not pass

// send sends unfragmented datagrams from client to server, each once the last has arrived, or again.
func (n *network) send(size, times int, again time.Duration) error {
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
	packet, got := make([]byte, size), make([]byte, n.mtu)
	for range times {
		for deadline := n.now().Add(probeBound); ; {
			if _, err := conn.Write(packet); errors.Is(err, unix.EMSGSIZE) {
				return errStuck
			}
			_ = listener.SetReadDeadline(n.now().Add(again))
			if got, _, err := listener.ReadFrom(got); err == nil && got == size {
				break
			}
			if n.now().After(deadline) {
				return errStuck
			}
		}
	}
	return nil
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
	for _, s := range n.switched {
		if what := s.broken(); what != "" {
			return what
		}
	}
	for _, c := range n.carriers {
		if c.Ended() {
			return c.name + " has ended: " + c.Said()
		}
	}
	return ""
}

// interfaces names those that client and server both have on the path.
func (n *network) interfaces() []string {
	if n.tunnel != "" {
		return []string{linkName, n.tunnel}
	}
	return []string{linkName}
}

func (n *network) close() {
	if n.sockets != nil {
		n.sockets.Close()
	}
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

// carrier is a program that carries packets instead of the kernel: its CPU time is the path's.
type carrier struct {
	*proc.Process
	name string
	pid  int // of the program itself
	cpus int // that it is kept to
}

// carry starts a carrier in a machine, as a user and on some processors.
func (n *network) carry(m *machine.Machine, cmd *exec.Cmd, name string, as *proc.User, cpus []int) (*proc.Process, error) {
	p, err := m.Start(cmd, proc.How{Name: name, As: as, CPUs: cpus})
	if err == nil {
		n.carriers = append(n.carriers, carrier{Process: p, name: name, cpus: len(cpus)})
	}
	return p, err
}

// lossProgram drops packets: the kernel's scheduler for it (netem) is rarely there.
func lossProgram() proc.Program { return proc.Program{Name: "nft", Package: "nftables", For: "loss"} }

// lose lets client and server drop TCP segments at random. Packets of tunnels are not dropped twice.
func (n *network) lose() error {
	if n.loss == 0 {
		return nil
	}
	paths, missing := proc.Look("loss", "", []proc.Program{lossProgram()})
	if err := missing.Err(); err != nil {
		return system.Lacking(err, "")
	}
	const of = 100_000
	rules := fmt.Sprintf("add table ip loss; add chain ip loss input { type filter hook input priority 0; }; add rule ip loss input meta l4proto tcp numgen random mod %d < %d drop", of, int(math.Round(n.loss*of)))
	for _, m := range []*machine.Machine{n.client, n.server} {
		p, err := m.Start(m.Command(paths["nft"], rules), proc.How{Name: "nft"})
		if err == nil {
			err = p.Wait()
		}
		if err != nil {
			return &system.UnableError{Err: fmt.Errorf("drop packets at random: %w", err), Hint: "the kernel needs CONFIG_NF_TABLES and CONFIG_NFT_NUMGEN"}
		}
	}
	return nil
}
