package sweep

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"plimsoll.dev/plimsoll/internal/system"
)

// runsDir, below the state directory, has a file of each run of this user here, locked while it lives:
// the kernel unlocks it when the process ends.
const runsDir = "runs"

// Hold shows other commands of this user that a run lives, until end is called with whether nothing is left.
func Hold(host system.Host, run string) (end func(clean bool)) {
	nothing := func(bool) {}
	dir, err := host.StateDir()
	if err != nil {
		return nothing
	}
	dir = filepath.Join(dir, runsDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nothing
	}
	forgetOld(dir, host.Now())
	f, err := os.OpenFile(filepath.Join(dir, run), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nothing
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nothing // the file system has no locks
	}
	return func(clean bool) {
		if clean {
			_ = os.Remove(f.Name()) // a file that stays says that the run is dead, which is true
		}
		f.Close()
	}
}

// runHere is the state of a run of this user on this machine.
type runHere int8

const (
	runElsewhere runHere = iota // unknown: perhaps another user's or machine's
	runAlive
	runDead
)

func runState(host system.Host, run string) runHere {
	if host.StateDir == nil || run == "" || strings.ContainsRune(run, filepath.Separator) {
		return runElsewhere
	}
	dir, err := host.StateDir()
	if err != nil {
		return runElsewhere
	}
	return lockState(filepath.Join(dir, runsDir, run))
}

func lockState(path string) runHere {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return runElsewhere
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return runAlive
	case err != nil:
		return runElsewhere
	}
	return runDead
}

func forgetRun(host system.Host, run string) {
	if runState(host, run) != runDead {
		return
	}
	if dir, err := host.StateDir(); err == nil {
		_ = os.Remove(filepath.Join(dir, runsDir, run))
	}
}

// forgetOld removes the files of runs that died long ago: their signs of life are enough.
func forgetOld(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		path := filepath.Join(dir, e.Name())
		if err == nil && now.Sub(info.ModTime()) > forgetAfter && lockState(path) == runDead {
			_ = os.Remove(path) // the next run tries again
		}
	}
}

const forgetAfter = 30 * 24 * time.Hour
