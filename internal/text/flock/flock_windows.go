package flock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Exclusive locks an open file, or returns ErrHeld at once. Windows has no locks of directories.
func Exclusive(f *os.File) error { return try(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// Shared locks like Exclusive, but several processes may hold the lock together.
func Shared(f *os.File) error { return try(f, 0) }

func try(f *os.File, how uint32) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), how|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrHeld
	}
	return os.NewSyscallError("LockFileEx", err)
}
