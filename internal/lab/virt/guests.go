package virt

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/portforward"
	kubevirt "kubevirt.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/proc"
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

// GuestAnnotation of an instance with a real guest is GuestReal.
const (
	GuestAnnotation = "plimsoll.dev/guest"
	GuestReal       = "qemu"
)

// RealOptions configure real guests.
type RealOptions struct {
	Most       int    // how many machines have one
	QEMU       string // the program
	Image, Dir string // the directory that they boot from, and that of their disks
}

// realGuests runs the guests of the first machines to start.
type realGuests struct {
	RealOptions
	tied *proc.Tie

	mu    sync.Mutex
	slots map[string]int // by the key of the machine, from 1 on
	runs  map[types.UID]*realGuest
}

type realGuest struct {
	*proc.Process
	port int
	dir  string
}

// slot returns a machine's place among those with real guests, 0 for none. gone reports removed machines.
func (g *realGuests) slot(key string, gone func(key string) bool) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.slots[key]; n > 0 {
		return n
	}
	taken := make(map[int]bool)
	for other, n := range g.slots {
		if taken[n] = !gone(other); !taken[n] {
			delete(g.slots, other)
		}
	}
	for n := 1; n <= g.Most; n++ {
		if !taken[n] {
			g.slots[key] = n
			return n
		}
	}
	return 0
}

// start starts an instance's guest unless it runs, and returns its port. ended gets the reason of its end.
func (g *realGuests) start(vmi *kubevirt.VirtualMachineInstance, slot int, address string, capacity func(claim string) (file string, bytes int64), ended func(how string)) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if it := g.runs[vmi.UID]; it != nil {
		return it.port, nil
	}
	it := &realGuest{dir: filepath.Join(g.Dir, string(vmi.UID))}
	// The address is the guest's own: nobody takes the port in between.
	free, err := net.Listen("tcp4", net.JoinHostPort(address, "0"))
	if err != nil {
		return 0, err
	}
	it.port = free.Addr().(*net.TCPAddr).Port
	free.Close()
	disks, err := g.disks(vmi, it.dir, capacity)
	if err != nil {
		return 0, errors.Join(err, os.RemoveAll(it.dir))
	}
	defer disks.close()
	name := protocol.GuestPrefix + strconv.Itoa(slot)
	cmd := exec.Command(g.QEMU, append([]string{
		// Its directory tells whose it is; the firmware is elsewhere.
		"-name", name, "-L", it.dir, "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot", "-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny",
		"-machine", "pc", "-accel", "tcg,tb-size=32", "-cpu", "max", "-smp", "1", "-m", strconv.Itoa(protocol.GuestMemory >> 20),
		"-kernel", disks.kernel, "-initrd", disks.initrd, "-append", "console=ttyS0 quiet panic=-1",
		"-serial", "file:console",
		"-netdev", fmt.Sprintf("user,id=net,restrict=on,hostfwd=tcp:%s:%d-:22", address, it.port), "-device", "virtio-net-pci,netdev=net,romfile=",
	}, disks.args...)...)
	user := proc.Least()
	cmd.Dir, cmd.ExtraFiles = it.dir, disks.files
	if it.Process, err = proc.Start(cmd, proc.How{Name: "the guest of " + vmi.Namespace + "/" + vmi.Name, As: &user, On: g.tied.Do}); err != nil {
		return 0, errors.Join(err, os.RemoveAll(it.dir))
	}
	g.runs[vmi.UID] = it
	go func() {
		err := it.Wait()
		ended(fmt.Sprintf("%v %s", err, it.Said()))
	}()
	return it.port, nil
}

// guestFiles holds the arguments and open files of a real guest: its user may not enter their directories.
type guestFiles struct {
	args           []string
	kernel, initrd string
	files          []*os.File
}

func (d *guestFiles) close() {
	for _, f := range d.files {
		f.Close()
	}
}

// open opens a file for the guest, and returns the guest's name for it.
func (d *guestFiles) open(path string, flags int) (string, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return "", err
	}
	d.files = append(d.files, f)
	return "/proc/self/fd/" + strconv.Itoa(2+len(d.files)), nil
}

// disks makes an instance's files in a directory of its own, none named by the machine's author. The lab's
// own system replaces any other.
func (g *realGuests) disks(vmi *kubevirt.VirtualMachineInstance, dir string, capacity func(claim string) (file string, bytes int64)) (_ *guestFiles, err error) {
	d := &guestFiles{}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	user := proc.Least()
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700), user.Give(dir)); err != nil {
		return nil, err
	}
	if user != proc.Self() {
		// The image is not secret, and may be this user's alone.
		err := filepath.WalkDir(g.Image, func(path string, e os.DirEntry, err error) error {
			if err != nil || path == g.Image {
				return err
			}
			return os.Chmod(path, map[bool]os.FileMode{false: 0o644, true: 0o755}[e.IsDir()])
		})
		if err != nil {
			return nil, err
		}
	}
	if d.kernel, err = d.open(filepath.Join(g.Image, image.GuestKernel), os.O_RDONLY); err != nil {
		return nil, err
	}
	if d.initrd, err = d.open(filepath.Join(g.Image, image.GuestInitrd), os.O_RDONLY); err != nil {
		return nil, err
	}
	add := func(serial, options string) {
		id := "disk" + strconv.Itoa(len(d.args))
		d.args = append(d.args, "-drive", "if=none,id="+id+",format=raw,"+options, "-device", "virtio-blk-pci,drive="+id+",serial="+strings.ReplaceAll(serial, ",", ",,"))
	}
	folder := func(label, path string) error {
		name, err := d.open(path, os.O_RDONLY)
		add(label, "read-only=on,file.driver=vvfat,file.label="+label+",file.dir="+name)
		return err
	}
	file := func(serial, path string, bytes int64) error {
		name, err := d.open(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW)
		if err != nil {
			return err
		}
		f := d.files[len(d.files)-1]
		if info, statErr := f.Stat(); statErr == nil && info.Size() < bytes {
			err = f.Truncate(bytes)
		}
		add(serial, "discard=unmap,file.filename="+name)
		return errors.Join(err, user.Give(path))
	}
	tools := filepath.Join(g.Image, image.GuestTools)
	if _, err := os.Stat(tools); err == nil {
		if err := folder("tools", tools); err != nil {
			return nil, err
		}
	}
	serials := make(map[string]string)
	for _, d := range vmi.Spec.Domain.Devices.Disks {
		serials[d.Name] = cmp.Or(d.Serial, d.Name)
	}
	for n, v := range vmi.Spec.Volumes {
		var err error
		switch {
		case v.CloudInitNoCloud != nil:
			data := []byte(v.CloudInitNoCloud.UserData)
			if v.CloudInitNoCloud.UserDataBase64 != "" {
				data, err = base64.StdEncoding.DecodeString(v.CloudInitNoCloud.UserDataBase64)
			}
			seed := filepath.Join(dir, "seed-"+strconv.Itoa(n))
			err = errors.Join(err, os.Mkdir(seed, 0o700), user.Give(seed))
			for name, data := range cloudInit(data) {
				err = errors.Join(err, user.Write(filepath.Join(seed, name), data))
			}
			if err == nil {
				err = folder("cidata", seed)
			}
		case v.EmptyDisk != nil:
			err = file(serials[v.Name], filepath.Join(dir, "empty-"+strconv.Itoa(n)+".img"), v.EmptyDisk.Capacity.Value())
		case v.PersistentVolumeClaim != nil, v.DataVolume != nil:
			claim := ""
			if v.DataVolume != nil {
				claim = v.DataVolume.Name
			} else {
				claim = v.PersistentVolumeClaim.ClaimName
			}
			name, bytes := capacity(claim)
			err = file(serials[v.Name], filepath.Join(g.Dir, name+".img"), bytes)
		}
		if err != nil {
			return nil, fmt.Errorf("make the disk %s of %s/%s: %w", v.Name, vmi.Namespace, vmi.Name, err)
		}
	}
	return d, nil
}

// runsNow reports whether the guest of an instance runs, and stops or continues it.
func (g *realGuests) runsNow(id types.UID, still bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	it := g.runs[id]
	if it == nil || it.Ended() {
		return false
	}
	signal := syscall.SIGCONT
	if still {
		signal = syscall.SIGSTOP
	}
	_ = syscall.Kill(it.PID(), signal) // it may have ended meanwhile
	return true
}

// end ends the guest of an instance, if it has one, like a loss of power.
func (g *realGuests) end(id types.UID) {
	g.mu.Lock()
	it := g.runs[id]
	delete(g.runs, id)
	g.mu.Unlock()
	if it != nil {
		_ = it.Stop()            // the lab ends it at the latest
		_ = os.RemoveAll(it.dir) // the lab's directory goes at the latest
	}
}

// startReal starts an instance's real guest and returns its port, 0 for a simulated guest.
func (w *world) startReal(vmi *kubevirt.VirtualMachineInstance, address string) (int, error) {
	slot := w.real.slot(key(vmi), func(key string) bool {
		_, machine := w.machines.get(key)
		_, instance := w.instances.get(key)
		return !machine && !instance
	})
	if slot == 0 {
		return 0, nil
	}
	return w.real.start(vmi, slot, address, func(claim string) (string, int64) {
		pvc, ok := w.claims.get(vmi.Namespace + "/" + claim)
		if !ok {
			return vmi.Namespace + "." + strings.ReplaceAll(claim, "/", "-"), 0 // not the UID of any claim
		}
		return string(pvc.UID), pvc.Spec.Resources.Requests.Storage().Value()
	}, func(how string) {
		w.Log.Info("a real guest ended", "instance", key(vmi), "how", how)
		w.instanceControl.queue.Add(key(vmi))
	})
}

// silence ends an instance's guest of either kind.
func (w *world) silence(id types.UID) {
	w.guests.end(id)
	w.real.end(id)
}

// cloudInit returns the files of a real guest's seed from user data: a script, or the SSH keys and commands
// of a cloud-config. Like cloud-init it leaves out what it cannot read.
func cloudInit(userData []byte) map[string][]byte {
	files := make(map[string][]byte)
	if bytes.HasPrefix(userData, []byte("#!")) {
		files["script"] = userData
	}
	if !bytes.HasPrefix(userData, []byte("#cloud-config")) {
		return files
	}
	var config struct {
		Keys struct {
			Host string `json:"ed25519_private"`
		} `json:"ssh_keys"`
		Authorized []string `json:"ssh_authorized_keys"`
		Run        []any    `json:"runcmd"`
	}
	if yaml.Unmarshal(userData, &config) != nil {
		return files
	}
	if key, err := ssh.ParseRawPrivateKey([]byte(config.Keys.Host)); err == nil {
		if key, is := key.(*ed25519.PrivateKey); is {
			files["host-key"] = ssh.Marshal(struct {
				Type string
				Key  []byte
			}{ssh.KeyAlgoED25519, *key})
		}
	}
	if len(config.Authorized) > 0 {
		files["authorized-keys"] = []byte(strings.Join(config.Authorized, "\n") + "\n")
	}
	if len(config.Run) > 0 {
		files["script"] = []byte("#!/bin/sh\n" + commands(config.Run))
	}
	return files
}

// commands returns lines of a shell: a text as it is, a list word by word.
func commands(run []any) string {
	var lines strings.Builder
	for _, command := range run {
		switch command := command.(type) {
		case string:
			lines.WriteString(command)
		case []any:
			for _, word := range command {
				if word, is := word.(string); is {
					lines.WriteString("'" + strings.ReplaceAll(word, "'", `'\''`) + "' ")
				}
			}
		}
		lines.WriteByte('\n')
	}
	return lines.String()
}
