package lab

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/lab/machine"
)

const (
	// GuestPrefix begins the names of the processes of real guests, which then
	// have a number.
	GuestPrefix = "guest-"
	// GuestMemory is that of a real guest in bytes, whatever its machine asks for.
	GuestMemory = 160 << 20
	qemu        = "qemu-system-x86_64"
)

// findQEMU is what runs real guests.
func findQEMU() machine.Need {
	found, _ := machine.FindProgram(qemu) // that there is none is what is told
	return machine.Need{What: qemu, Package: "qemu-system-x86", Found: found}
}

// guestImage is the directory of what real guests boot from, kept for labs to come.
func (s Store) guestImage() string {
	return filepath.Join(s.Root, ImagesDir, "guest-"+image.GuestKey())
}

// needGuests finds what runs real guests and makes what they boot from, unless it
// is there.
func (s Store) needGuests(ctx context.Context) error {
	if n := findQEMU(); n.Found == "" {
		return &machine.MissingError{For: "a real guest", What: []string{n.What}, Packages: []string{n.Package}}
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
	// In one move, so that a lab never boots half of it; another lab may have been
	// faster.
	if err := os.Rename(made, s.guestImage()); err != nil && !os.IsExist(err) {
		return err
	}
	return nil
}

// RealGuests are the processes of the guests that run, by their names.
func (l *Lab) RealGuests() map[string]int {
	guests := make(map[string]int)
	processes, _ := processesOf(string(l.dir)) // what is not known is not shown
	for _, p := range processes {
		if strings.HasPrefix(p.component, GuestPrefix) {
			guests[p.component] = p.pid
		}
	}
	return guests
}
