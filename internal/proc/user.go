package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// User is whom a program runs as.
type User struct {
	ID, Group int
	Name      string // "" where it has none
}

// nobodyID is the number of the user without rights where the system knows no name
// for one.
const nobodyID = 65534

// Least returns the user for other programs: one without rights if this program is root, else its own.
func Least() User {
	if os.Geteuid() != 0 || !mapped(nobodyID) {
		return Self()
	}
	u := User{ID: nobodyID, Group: nobodyID, Name: "nobody"}
	if found, err := user.Lookup(u.Name); err == nil {
		id, idErr := strconv.Atoi(found.Uid)
		group, groupErr := strconv.Atoi(found.Gid)
		if idErr == nil && groupErr == nil && id != 0 {
			u.ID, u.Group = id, group
		}
	}
	return u
}

// mapped reports whether this program's namespace of users has one of that number.
func mapped(id int) bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	var first, outside, n int
	if _, scanErr := fmt.Sscan(string(text), &first, &outside, &n); err != nil || scanErr != nil {
		return false
	}
	return id >= first && id-first < n
}

// Self returns the user that this program runs as.
func Self() User {
	u := User{ID: os.Geteuid(), Group: os.Getegid()}
	if found, err := user.LookupId(strconv.Itoa(u.ID)); err == nil {
		u.Name = found.Username
	}
	return u
}

// String names the user with its number.
func (u User) String() string {
	if u.Name == "" {
		return "user " + strconv.Itoa(u.ID)
	}
	return fmt.Sprintf("%s (%d)", u.Name, u.ID)
}

// Give makes files or directories the user's. What is at their ends is not followed.
func (u User) Give(paths ...string) error {
	for _, path := range paths {
		if u.ID == os.Geteuid() {
			return nil
		}
		if err := os.Lchown(path, u.ID, u.Group); err != nil {
			return fmt.Errorf("give %s to %s: %w", path, u, err)
		}
	}
	return nil
}

// Write writes a file that the user may read, and others may not.
func (u User) Write(path string, text []byte) error {
	err := os.WriteFile(path, text, 0o600)
	if err == nil && u.ID != os.Geteuid() {
		err = errors.Join(os.Chown(path, -1, u.Group), os.Chmod(path, 0o640))
	}
	return err
}

// prepare has a command started as the user, once in all that the caller holds until
// it was started. Its directory and program may lie where the user itself cannot go.
func (u User) prepare(cmd *exec.Cmd) (holds []*os.File, err error) {
	if u.ID == os.Geteuid() {
		return nil, nil
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(u.ID), Gid: uint32(u.Group)}
	// Root may lock any memory, as rings of IO are.
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	at := func(path string) (string, error) {
		f, err := os.OpenFile(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return "", err
		}
		holds = append(holds, f)
		return fmt.Sprintf("/proc/self/fd/%d", f.Fd()), nil
	}
	if cmd.Dir != "" {
		if cmd.Dir, err = at(cmd.Dir); err != nil {
			return holds, err
		}
	}
	if !Reachable(cmd.Path) {
		cmd.Path, err = at(cmd.Path)
	}
	return holds, err
}

// Reachable reports whether every user may go to a file.
func Reachable(path string) bool {
	path, err := filepath.EvalSymlinks(path)
	if err != nil || !filepath.IsAbs(path) {
		return false
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode()&1 == 0 {
			return false
		}
		if dir == "/" {
			return true
		}
	}
}
