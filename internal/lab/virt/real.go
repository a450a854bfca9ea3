package virt

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"k8s.io/apimachinery/pkg/types"
	kubevirt "kubevirt.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/proc"
)

// GuestAnnotation of an instance says what its guest is: GuestReal, or nothing of
// one that is played.
const (
	GuestAnnotation = "plimsoll.dev/guest"
	GuestReal       = "qemu"
)

// RealOptions are those of guests that run.
type RealOptions struct {
	Most int    // how many machines have one
	QEMU string // the program
	// Image is the directory of what they boot from, Dir that of their disks.
	Image, Dir string
}

// realGuests are the guests that run: those of the first machines to start.
type realGuests struct {
	RealOptions
	tied *proc.Tie

	mu    sync.Mutex
	slots map[string]int // by the key of the machine, from 1 on
	runs  map[types.UID]*realGuest
}

type realGuest struct {
	cmd   *exec.Cmd
	port  int
	dir   string
	ended chan struct{}
}

// slot is the place of a machine among those that have a real guest, 0 for none.
// Gone reports whether a machine that has one is no more.
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

// start starts the guest of an instance, unless it runs, and returns the port at
// which its address answers. Ended is called when its process has ended, with how.
func (g *realGuests) start(vmi *kubevirt.VirtualMachineInstance, slot int, address string, capacity func(claim string) (file string, bytes int64), ended func(how string)) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if it := g.runs[vmi.UID]; it != nil {
		return it.port, nil
	}
	it := &realGuest{dir: filepath.Join(g.Dir, string(vmi.UID)), ended: make(chan struct{})}
	// The address is the guest's own: nobody takes the port in between.
	free, err := net.Listen("tcp4", net.JoinHostPort(address, "0"))
	if err != nil {
		return 0, err
	}
	it.port = free.Addr().(*net.TCPAddr).Port
	free.Close()
	if err := os.MkdirAll(it.dir, 0o700); err != nil {
		return 0, err
	}
	disks, err := g.disks(vmi, it.dir, capacity)
	if err != nil {
		return 0, errors.Join(err, os.RemoveAll(it.dir))
	}
	name := lab.GuestPrefix + strconv.Itoa(slot)
	it.cmd = exec.Command(g.QEMU, append([]string{
		"-name", name, "-pidfile", filepath.Join(it.dir, "pid"), "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot",
		"-machine", "pc", "-accel", "tcg,tb-size=32", "-cpu", "max", "-smp", "1", "-m", strconv.Itoa(lab.GuestMemory >> 20),
		"-kernel", filepath.Join(g.Image, image.GuestKernel), "-initrd", filepath.Join(g.Image, image.GuestInitrd), "-append", "console=ttyS0 quiet panic=-1",
		"-serial", "file:" + filepath.Join(it.dir, "console"),
		"-netdev", fmt.Sprintf("user,id=net,restrict=on,hostfwd=tcp:%s:%d-:22", address, it.port), "-device", "virtio-net-pci,netdev=net,romfile=",
	}, disks...)...)
	var said bytes.Buffer
	it.cmd.Dir, it.cmd.Stderr = it.dir, &said
	it.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := g.tied.Do(it.cmd.Start); err != nil {
		return 0, errors.Join(fmt.Errorf("start the guest of %s/%s: %w", vmi.Namespace, vmi.Name, err), os.RemoveAll(it.dir))
	}
	g.runs[vmi.UID] = it
	go func() {
		err := it.cmd.Wait()
		close(it.ended)
		ended(fmt.Sprintf("%v %s", err, bytes.TrimSpace(said.Bytes())))
	}()
	return it.port, nil
}

// disks are the arguments for the disks of an instance that a real guest has: its
// user data, volumes of claims, and empty ones. Its own system takes the place of
// any other.
func (g *realGuests) disks(vmi *kubevirt.VirtualMachineInstance, dir string, capacity func(claim string) (file string, bytes int64)) ([]string, error) {
	var args []string
	// What stands in paths has no comma, but for what a user made of it.
	add := func(serial, options string) {
		id := "disk" + strconv.Itoa(len(args))
		args = append(args, "-drive", "if=none,id="+id+",format=raw,"+options, "-device", "virtio-blk-pci,drive="+id+",serial="+serial)
	}
	folder := func(label, dir string) {
		add(label, "read-only=on,file.driver=vvfat,file.label="+label+",file.dir="+strings.ReplaceAll(dir, ",", ",,"))
	}
	file := func(serial, name string, bytes int64) error {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		if info, statErr := f.Stat(); statErr == nil && info.Size() < bytes {
			err = f.Truncate(bytes)
		}
		add(serial, "discard=unmap,file.filename="+strings.ReplaceAll(name, ",", ",,"))
		return errors.Join(err, f.Close())
	}
	if tools := filepath.Join(g.Image, image.GuestTools); exists(tools) {
		folder("tools", tools)
	}
	serials := make(map[string]string)
	for _, d := range vmi.Spec.Domain.Devices.Disks {
		serials[d.Name] = cmp.Or(d.Serial, d.Name)
	}
	for _, v := range vmi.Spec.Volumes {
		var err error
		switch {
		case v.CloudInitNoCloud != nil:
			data := []byte(v.CloudInitNoCloud.UserData)
			if v.CloudInitNoCloud.UserDataBase64 != "" {
				data, err = base64.StdEncoding.DecodeString(v.CloudInitNoCloud.UserDataBase64)
			}
			seed := filepath.Join(dir, "seed")
			err = errors.Join(err, os.MkdirAll(seed, 0o700), os.WriteFile(filepath.Join(seed, "user-data"), data, 0o600),
				os.WriteFile(filepath.Join(seed, "meta-data"), []byte("instance-id: "+string(vmi.UID)+"\nlocal-hostname: "+vmi.Name+"\n"), 0o600))
			folder("cidata", seed)
		case v.EmptyDisk != nil:
			err = file(serials[v.Name], filepath.Join(dir, v.Name+".img"), v.EmptyDisk.Capacity.Value())
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
	return args, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// runsNow reports whether the guest of an instance runs, and lets it stand still
// or go on.
func (g *realGuests) runsNow(id types.UID, still bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	it := g.runs[id]
	if it == nil {
		return false
	}
	select {
	case <-it.ended:
		return false
	default:
	}
	signal := syscall.SIGCONT
	if still {
		signal = syscall.SIGSTOP
	}
	_ = it.cmd.Process.Signal(signal) // it may have ended meanwhile
	return true
}

// end ends the guest of an instance, if it has one, as a loss of power does.
func (g *realGuests) end(id types.UID) {
	g.mu.Lock()
	it := g.runs[id]
	delete(g.runs, id)
	g.mu.Unlock()
	if it != nil {
		_ = it.cmd.Process.Kill() // it may have ended
		<-it.ended
		_ = os.RemoveAll(it.dir) // the lab's directory goes at the latest
	}
}

// startReal starts the real guest of an instance, if its machine has one, and
// returns the port at which it answers, 0 for one that is played.
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
			return vmi.Namespace + "." + claim, 0
		}
		return string(pvc.UID), pvc.Spec.Resources.Requests.Storage().Value()
	}, func(how string) {
		w.Log.Info("a real guest ended", "instance", key(vmi), "how", how)
		w.instanceControl.queue.Add(key(vmi))
	})
}

// silence ends the guest of an instance, of whatever kind.
func (w *world) silence(id types.UID) {
	w.guests.end(id)
	w.real.end(id)
}
