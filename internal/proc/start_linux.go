package proc

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

func (how How) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: how.Namespaces}
	if how.As != nil {
		holds, err := how.As.prepare(cmd)
		defer func() {
			for _, f := range holds {
				f.Close()
			}
		}()
		if err != nil {
			return err
		}
	}
	if how.On == nil {
		return keptTo(how.CPUs, cmd.Start)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return how.On(func() error {
		if how.As != nil {
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				return fmt.Errorf("keep it from further rights: %w", err)
			}
		}
		_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr}, 0) // at worst it has our priority
		return keptTo(how.CPUs, cmd.Start)
	})
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

// keptTo calls f on a thread that is kept to some processors, and so are
// processes that f starts. None means no change.
func keptTo(processors []int, f func() error) error {
	if len(processors) == 0 {
		return f()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, wanted unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("read the processors of a thread: %w", err)
	}
	for _, c := range processors {
		wanted.Set(c)
	}
	if err := unix.SchedSetaffinity(0, &wanted); err != nil {
		return fmt.Errorf("keep a thread to processors %v: %w", processors, err)
	}
	defer unix.SchedSetaffinity(0, &before)
	return f()
}

// Processors returns the processors that a process may use; pid 0 is the calling thread.
func Processors(pid int) (list []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return nil, fmt.Errorf("read the processors: %w", err)
	}
	for cpu := 0; len(list) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list, nil
}

func onFirstThread() bool { return syscall.Gettid() == syscall.Getpid() }

func signal(pid int, s syscall.Signal) { _ = syscall.Kill(pid, s) } // it may have ended

func self() (Usage, error) {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return Usage{}, fmt.Errorf("read own usage: %w", err)
	}
	u := Usage{CPUSeconds: float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9}
	proc, err := procfs.Self()
	var status procfs.ProcStatus
	if err == nil {
		status, err = proc.NewStatus()
	}
	if err != nil {
		return u, fmt.Errorf("read own usage: %w", err)
	}
	u.RSSBytes, u.PeakBytes, u.IOBytes = int64(status.VmRSS), int64(status.VmHWM), moved(proc)
	return u, nil
}

// ReadAny reads the usage of a process of whatever view of processes, with its
// threads and open files; on request with its proportional share of memory, and
// with the CPU time of children of its that have ended.
func ReadAny(proc procfs.Proc, share, children bool) (Usage, error) {
	stat, err := proc.Stat()
	if err != nil {
		return Usage{}, fmt.Errorf("read usage of process %d: %w", proc.PID, err)
	}
	u := Usage{CPUSeconds: stat.CPUTime(), RSSBytes: int64(stat.ResidentMemory()), IOBytes: moved(proc), Threads: stat.NumThreads}
	if children {
		own := stat
		own.UTime, own.STime = uint(own.CUTime), uint(own.CSTime)
		u.CPUSeconds += own.CPUTime()
	}
	if u.Handles, err = proc.FileDescriptorsLen(); err != nil {
		return Usage{}, fmt.Errorf("read open files of process %d: %w", proc.PID, err)
	}
	if share {
		rollup, err := proc.ProcSMapsRollup()
		if err != nil {
			return Usage{}, fmt.Errorf("read memory of process %d: %w", proc.PID, err)
		}
		u.ShareBytes = int64(rollup.Pss)
	}
	return u, nil
}
