package harness

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// MeasureVariable names the environment variable that asks for the tests that
// measure.
const MeasureVariable = "PLIMSOLL_MEASURE"

const (
	// busy is the most processors that other programs may use during a test that measures.
	busy = 0.2
	// glance is the time for which such a test watches the machine first.
	glance = 300 * time.Millisecond
)

// lockMachine takes the lock of this machine's tests until the process ends:
// alone for a test binary that measures, shared with others for any other one.
func lockMachine(alone bool) error {
	how := unix.LOCK_SH
	if alone {
		how = unix.LOCK_EX
	}
	path := filepath.Join(os.TempDir(), "plimsoll-tests.lock")
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	for {
		if err = unix.Flock(fd, how); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	return nil
}

// Quiet tells whether the machine did something else while a test measured.
type Quiet struct{ before others }

// Measures begins a test whose verdict depends on how long things take. It is
// skipped unless such tests are asked for: then each test binary has the machine
// for itself. Where other programs keep the processors busy the test is skipped,
// and names them. The name of the test begins with TestMeasured.
func (s *Suite) Measures(t testing.TB) *Quiet {
	t.Helper()
	if s.getenv(MeasureVariable) == "" {
		t.Skip("it measures: make test-long runs it by itself, after the others")
	}
	q := &Quiet{before: lookAtOthers(t)}
	time.Sleep(glance)
	q.Needed(t)
	q.before = lookAtOthers(t)
	return q
}

// Needed skips the test if other programs have kept the processors busy since it
// began, and names them. A test calls it before it fails by what it measured.
func (q *Quiet) Needed(t testing.TB) {
	t.Helper()
	if used, names := q.before.until(lookAtOthers(t)); used >= busy {
		t.Skipf("other programs use %.1f of this machine's processors: %s", used, names)
	}
}

// others is the CPU time of the processes that are not ours.
type others struct {
	at   time.Time
	used map[int]float64 // seconds, by process
	name map[int]string
}

// lookAtOthers reads the CPU time of each process that this test binary, or the
// go command above it, has not started, but for the kernel's own.
func lookAtOthers(t testing.TB) others {
	t.Helper()
	list, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	o := others{time.Now(), make(map[int]float64), make(map[int]string)}
	parent := make(map[int]int)
	for _, p := range list {
		if stat, err := p.Stat(); err == nil { // else it has ended
			o.used[p.PID], o.name[p.PID], parent[p.PID] = stat.CPUTime(), stat.Comm, stat.PPID
		}
	}
	ours := os.Getppid()
	if ours == 1 {
		ours = os.Getpid()
	}
	const kernel = 2
	for pid := range o.used {
		for up := pid; up > 1; up = parent[up] {
			if up == ours || up == kernel {
				delete(o.used, pid)
				break
			}
		}
	}
	return o
}

// until returns how many processors others have used from one look to a later one,
// and which programs did, the busiest first.
func (o others) until(later others) (used float64, names string) {
	seconds := later.at.Sub(o.at).Seconds()
	by := make(map[int]float64)
	for pid, now := range later.used {
		if d := (now - o.used[pid]) / seconds; d > 0 {
			by[pid] = d
			used += d
		}
	}
	var list []int
	for pid := range by {
		list = append(list, pid)
	}
	slices.SortFunc(list, func(a, b int) int { return cmp.Compare(by[b], by[a]) })
	var text []string
	for _, pid := range list[:min(len(list), 3)] {
		text = append(text, fmt.Sprintf("%s (process %d) %.0f%%", later.name[pid], pid, 100*by[pid]))
	}
	return used, strings.Join(text, ", ")
}
