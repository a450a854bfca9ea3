package virt

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/sys/unix"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/portforward"
	kubevirt "kubevirt.io/api/core/v1"
)

// Annotations and labels by which a user controls and reads the simulation.
const (
	SSHAnnotation = "plimsoll.dev/ssh" // SSHAnnotation of an instance holds its guest's address and port
	OSLabel       = "plimsoll.dev/os"  // OSLabel of an instance names its guest's system, such as rhel9
	IOLabel       = "plimsoll.dev/io"  // marks an instance whose guest does IO
	// FaultAnnotation plants a fault: FaultStuck on a data volume or a migration, FaultStuckMigration on a
	// machine, FaultDegraded on a pool, FaultLost on a node.
	FaultAnnotation     = "plimsoll.dev/fault"
	FaultStuck          = "stuck"
	FaultStuckMigration = "stuck-migration"
	FaultDegraded       = "degraded"
	FaultLost           = "lost"
)

const banner = "SSH-2.0-plimsoll_simulated_guest\r\n"

// guests answers for all simulated guests: one listener, and an address of the loopback for each.
type guests struct {
	listener net.Listener

	mu        sync.Mutex
	next      uint32
	free      []netip.Addr
	addresses map[types.UID]netip.Addr
	answers   map[netip.Addr]guest
}

type guest struct {
	from   time.Time // the end of its boot
	paused bool
}

// Guests' addresses are 127.64.0.0/10.
const (
	firstGuest   = 127<<24 | 64<<16
	guestBitMask = 1<<22 - 1
)

// listenGuests listens on every address of the loopback, and nowhere else.
func listenGuests(port int) (*guests, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = unix.BindToDevice(int(fd), "lo") })
		if err != nil {
			return err
		}
		return failed
	}}
	listener, err := config.Listen(context.Background(), "tcp4", "0.0.0.0:"+strconv.Itoa(port))
	if err != nil {
		return nil, fmt.Errorf("listen for guests: %w", err)
	}
	return &guests{listener: listener, addresses: map[types.UID]netip.Addr{}, answers: map[netip.Addr]guest{}}, nil
}

// address returns a guest's address, which it keeps as long as it lives.
func (g *guests) address(id types.UID) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.give(id).String()
}

func (g *guests) give(id types.UID) netip.Addr {
	if a, ok := g.addresses[id]; ok {
		return a
	}
	var a netip.Addr
	if n := len(g.free); n > 1000 { // not soon again: a client may still use the last one
		a, g.free = g.free[0], g.free[1:]
	} else {
		g.next++
		v := uint32(firstGuest) + g.next&guestBitMask
		a = netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
	}
	g.addresses[id] = a
	return a
}

// keep gives a guest the address that it had before this process started.
func (g *guests) keep(id types.UID, address string) {
	a, err := netip.ParseAddr(address)
	if err != nil || !a.Is4() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.addresses[id]; !ok {
		g.addresses[id] = a
		b := a.As4()
		g.next = max(g.next, (uint32(b[1])<<16|uint32(b[2])<<8|uint32(b[3]))&guestBitMask)
	}
}

func (g *guests) answer(id types.UID, from time.Time, paused bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answers[g.give(id)] = guest{from, paused}
}

func (g *guests) end(id types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a, ok := g.addresses[id]; ok {
		delete(g.answers, a)
		delete(g.addresses, id)
		g.free = append(g.free, a)
	}
}

// serve greets callers until ctx ends.
func (g *guests) serve(ctx context.Context) error {
	context.AfterFunc(ctx, func() { g.listener.Close() })
	for {
		connection, err := g.listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		g.greet(connection.(*net.TCPConn))
	}
}

func (g *guests) up(a netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	it, ok := g.answers[a]
	return ok && !it.paused && !time.Now().Before(it.from)
}

// greet sends the banner of a guest that has booted, or resets the connection.
func (g *guests) greet(connection *net.TCPConn) {
	local, err := netip.ParseAddrPort(connection.LocalAddr().String())
	if err != nil || !g.up(local.Addr()) {
		connection.SetLinger(0)
		connection.Close()
		return
	}
	go func() {
		defer connection.Close()
		connection.SetDeadline(time.Now().Add(patience))
		if _, err := connection.Write([]byte(banner)); err == nil {
			// With unread bytes a close would reset the connection and lose the banner.
			io.Copy(io.Discard, connection)
		}
	}()
}

// forward connects a WebSocket to a port of a guest. Like virt-api it reaches the guest before it answers.
func (w *world) forward(r http.ResponseWriter, request *http.Request) {
	vmi, ok := w.instances.get(request.PathValue("namespace") + "/" + request.PathValue("name"))
	if !ok {
		refuse(r, apierrors.NewNotFound(kubevirt.Resource("virtualmachineinstances"), request.PathValue("name")))
		return
	}
	if instanceIs(vmi, kubevirt.VirtualMachineInstancePaused) {
		refuse(r, conflict("virtualmachineinstance", vmi.Name, "VMI is paused"))
		return
	}
	address, err := netip.ParseAddrPort(vmi.Annotations[SSHAnnotation])
	if err != nil {
		refuse(r, apierrors.NewBadRequest("no network interfaces are present"))
		return
	}
	var guest net.Conn
	if err = syscall.ECONNREFUSED; request.PathValue("port") == "22" && request.PathValue("protocol") == "tcp" && (vmi.Annotations[GuestAnnotation] == GuestReal || w.guests.up(address.Addr())) {
		guest, err = new(net.Dialer).DialContext(request.Context(), "tcp", address.String())
	}
	if err != nil {
		refuse(r, apierrors.NewInternalError(fmt.Errorf("dialing VM: dial tcp %s:%s: %w", address.Addr(), request.PathValue("port"), err)))
		return
	}
	defer guest.Close()
	upgrader := websocket.Upgrader{Subprotocols: []string{"plain.kubevirt.io"}, CheckOrigin: func(*http.Request) bool { return true }}
	socket, err := upgrader.Upgrade(r, request, nil)
	if err != nil {
		return // Upgrade has answered
	}
	caller := portforward.NewTunnelingConnection("guest", socket)
	go func() {
		io.Copy(guest, caller)
		guest.Close()
	}()
	io.Copy(caller, guest)
	caller.Close()
}

// patience bounds how long a guest waits for a silent client.
const patience = 5 * time.Second
