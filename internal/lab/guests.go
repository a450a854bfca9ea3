package lab

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/proc"
)

const qemu = "qemu-system-x86_64"

func qemuProgram() proc.Program {
	return proc.Program{Name: qemu, Package: "qemu-system-x86", For: "real guests", Asks: "--version"}
}

// Needs lists the system's programs that parts of labs run.
func Needs() []proc.Program { return append(realnode.Needs(), qemuProgram()) }

// guestImage returns the directory that real guests boot from, kept for later labs.
func (s Store) guestImage() string {
	return filepath.Join(s.Root, ImagesDir, "guest-"+image.GuestKey())
}

// needGuests makes the image of real guests, unless it exists. It needs QEMU.
func (s Store) needGuests(ctx context.Context) error {
	if _, err := qemuProgram().Find(ctx, ""); err != nil {
		return err
	}
	if _, err := os.Stat(s.guestImage()); err == nil {
		return nil
	}
	s.progress("making the image of real guests")
	if err := os.MkdirAll(filepath.Dir(s.guestImage()), 0o700); err != nil {
		return err
	}
	made, err := os.MkdirTemp(filepath.Dir(s.guestImage()), ".guest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	if err := image.Guest(ctx, made); err != nil {
		return err
	}
	// In one move, so that a lab never boots half of it; another lab may have been faster.
	if err := os.Rename(made, s.guestImage()); err != nil && !os.IsExist(err) {
		return err
	}
	return nil
}

// RealGuests returns the pids of the running guests by name.
func (l *Lab) RealGuests() map[string]int {
	guests := make(map[string]int)
	processes, _ := processesOf(string(l.dir))
	for _, p := range processes {
		if strings.HasPrefix(p.component, protocol.GuestPrefix) {
			guests[p.component] = p.pid
		}
	}
	return guests
}
