//go:build unix

package flock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Exclusive locks an open file or directory, or returns ErrHeld at once. File systems without locks give
// other errors.
func Exclusive(f *os.File) error { return try(f, unix.LOCK_EX) }

// Shared locks like Exclusive, but several processes may hold the lock together.
func Shared(f *os.File) error { return try(f, unix.LOCK_SH) }

func try(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrHeld
	}
	return os.NewSyscallError("flock", err)
}
