package lab

import (
	"errors"
	"os"
	"syscall"
)

// lock is the right to change one lab. It is a lock on the directory
// itself: there is no lock file to leave behind, and the kernel gives it back
// when its holder dies, however it dies.
type lock struct{ dir *os.File }

// tryLock locks a directory. It returns nil, nil if another process holds it,
// and an error that is fs.ErrNotExist if it is gone.
func tryLock(dir string) (*lock, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
	// Between opening and locking the directory may have been removed and made
	// again; a lock on the old one protects nothing.
	locked, err := f.Stat()
	if err == nil {
		var now os.FileInfo
		now, err = os.Stat(dir)
		if err == nil && !os.SameFile(locked, now) {
			err = &os.PathError{Op: "lock", Path: dir, Err: os.ErrNotExist}
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &lock{f}, nil
}

func (l *lock) release() { l.dir.Close() }
