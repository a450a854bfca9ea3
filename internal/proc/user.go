package proc

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
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
