// Package machine makes machines within this machine: processes with namespaces of their own for processes,
// mounts and the network. When the first process of a machine ends, even by SIGKILL, the kernel removes every
// process, mount and interface of the machine.
package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Namespaces lists the namespaces in which a machine's first process must be started.
const Namespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET

// Component names the first process among the program's components.
const Component = "machine"

// Spec says which of this machine's files a machine sees.
type Spec struct {
	// Keep is a directory that stays visible, even below one of Hide, which the machine sees empty.
	Keep  string   `json:"keep"`
	Hide  []string `json:"hide"`
	Binds []Bind   `json:"binds"`
}

// Bind shows a directory at another path.
type Bind struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Run acts as a machine's first process: it sets up, writes to out, and reaps processes until it fails.
func Run(args []string, out io.WriteCloser) error {
	if os.Getpid() != 1 || len(args) != 1 {
		return errors.New("this is the first process of a machine within the machine, which other commands start")
	}
	var s Spec
	if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
		return fmt.Errorf("read what the machine is like: %w", err)
	}
	if err := s.mount(); err != nil {
		return err
	}
	if _, err := io.WriteString(out, ready); err != nil {
		return fmt.Errorf("say that the machine is set up: %w", err)
	}
	out.Close()
	Reap(func(int, syscall.WaitStatus) {})
	return nil
}

// ready is printed by the first process once the machine is set up.
const ready = "ready\n"

func (s Spec) mount() error {
	if err := Detach(); err != nil {
		return err
	}
	if err := Hide(s.Keep, s.Hide...); err != nil {
		return err
	}
	for _, b := range s.Binds {
		if err := BindDir(b.From, b.To); err != nil {
			return err
		}
	}
	return nil
}

// Detach separates this process's mounts from the system's, and mounts the /proc of its processes.
func Detach() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("detach own mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share mounts within: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount own /proc: %w", err)
	}
	return nil
}

// Hide lays empty directories over some, except for keep.
func Hide(keep string, dirs ...string) error {
	dir, err := unix.Open(keep, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", keep, err)
	}
	defer unix.Close(dir)
	for _, hidden := range dirs {
		if err := unix.Mount("tmpfs", hidden, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
			return fmt.Errorf("hide %s: %w", hidden, err)
		}
		if strings.HasPrefix(keep, hidden+"/") {
			if err := BindDir(fmt.Sprintf("/proc/self/fd/%d", dir), keep); err != nil {
				return err
			}
		}
	}
	return nil
}

// BindDir shows a directory at another path too, which it makes.
func BindDir(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("mount %s: %w", to, err)
	}
	return BindFile(from, to)
}

// BindFile shows a file or directory at another path too, which must exist.
func BindFile(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", to, err)
	}
	return nil
}

// Reap calls ended for every ended process of the machine, also orphans. It does not return.
func Reap(ended func(pid int, status syscall.WaitStatus)) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err != nil {
			time.Sleep(10 * time.Millisecond) // no child now
			continue
		}
		ended(pid, status)
	}
}
