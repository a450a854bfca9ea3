package io

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
)

// installPostgres is the command that installs a PostgreSQL with pgbench.
const installPostgres = "apt-get install --no-install-recommends postgresql"

// findPostgres is the directory of the programs of the newest PostgreSQL.
func findPostgres() (string, error) {
	unable := func(format string, args ...any) error {
		return &target.UnableError{Err: fmt.Errorf("beside=pgbench: "+format, args...), Hint: "install it: " + installPostgres + ", or leave beside out"}
	}
	if os.Geteuid() != 0 {
		return "", unable("PostgreSQL gets a user and a mount of its own, which takes root")
	}
	for _, name := range []string{"unshare", "setpriv"} {
		if _, err := exec.LookPath(name); err != nil {
			return "", unable("%w", err)
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if err != nil || len(found) == 0 {
		return "", unable("there is no pgbench of PostgreSQL in /usr/lib/postgresql")
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4])
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}

// postgresScript runs a PostgreSQL on a volume ($1) by programs of a directory
// ($2), and pgbench on it. The volume lies over /mnt, where its user may go; the
// socket is an abstract one of the network's namespace.
const postgresScript = `set -e
rm -rf "$1/postgres"
mkdir "$1/postgres"
chown postgres: "$1/postgres"
mount --bind "$1/postgres" /mnt
cd /mnt
as() { program=$1; shift; setpriv --reuid=postgres --regid=postgres --init-groups --no-new-privs "$bin/$program" "$@"; }
bin=$2
at=@plimsoll-pgbench-$3
as initdb -D data -A trust >/dev/null
as postgres -D data -c listen_addresses= -c unix_socket_directories=$at >/dev/null 2>&1 &
until as pg_isready -q -h $at; do sleep 0.05; done
as pgbench -i -q -s 2 -h $at postgres >/dev/null 2>&1
exec setpriv --reuid=postgres --regid=postgres --init-groups --no-new-privs "$bin/pgbench" -n -P 1 -T 8640000 -c 4 -h $at postgres 2>&1
`

// database is a PostgreSQL under pgbench on a volume, as a second load.
type database struct {
	cmd  *exec.Cmd
	done chan struct{}

	mu        sync.Mutex
	seconds   int // that it told of
	rate, lat float64
	// Of all of them: transactions, and their latencies times these.
	sum, weighed float64
	last         string
}

// databaseBound is how long it may take until there are transactions.
const databaseBound = 2 * time.Minute

// startDatabase starts one on a directory of a ground and returns once it tells
// of transactions.
func startDatabase(ctx context.Context, g ground, dir, programs, name string) (*database, error) {
	d := &database{done: make(chan struct{})}
	// The first process of a namespace takes all others along, and ends with the
	// one that made it.
	d.cmd = g.command("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "/bin/sh", "-c", postgresScript, "sh", dir, programs, name)
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start pgbench: %w", err)
	}
	d.cmd.Stderr = d.cmd.Stdout
	if err := g.start(d.cmd); err != nil {
		return nil, fmt.Errorf("start pgbench: %w", err)
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			d.read(lines.Text())
		}
		_ = d.cmd.Wait() // that it has ended is what counts
		close(d.done)
	}()
	err = wait(ctx, databaseBound, func() bool { n, _, _, _ := d.told(); return n > 0 || d.ended() })
	if n, _, _, last := d.told(); err == nil && n == 0 {
		err = errors.New("it makes no transactions: " + last)
	}
	if err != nil {
		d.stop()
		return nil, fmt.Errorf("start pgbench: %w", err)
	}
	return d, nil
}

var progressLine = regexp.MustCompile(`^progress: [0-9.]+ s, ([0-9.]+) tps, lat ([0-9.]+) ms`)

// read reads a line of pgbench.
func (d *database) read(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := progressLine.FindStringSubmatch(line)
	if m == nil {
		if line = strings.TrimSpace(line); line != "" {
			d.last = line
		}
		return
	}
	d.seconds++
	d.rate, _ = strconv.ParseFloat(m[1], 64)
	ms, _ := strconv.ParseFloat(m[2], 64)
	d.lat = ms / 1000
	d.sum, d.weighed = d.sum+d.rate, d.weighed+d.rate*d.lat
}

// told is of how many seconds it told, and what they sum up to.
func (d *database) told() (seconds int, sum, weighed float64, last string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seconds, d.sum, d.weighed, d.last
}

func (d *database) ended() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// reading is what it last told.
func (d *database) reading() record.Reading {
	d.mu.Lock()
	defer d.mu.Unlock()
	return record.Reading{Source: sourcePgbench, Values: map[string]float64{"transactionsPerSecond": d.rate, "latencySeconds": d.lat}}
}

// stop ends it: the program that made its namespace is the child of one that
// enters a machine, or what was started itself.
func (d *database) stop() {
	if d.ended() {
		return
	}
	pids := []int{d.cmd.Process.Pid}
	for i := 0; i < len(pids); i++ {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pids[i], pids[i]))
		for word := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				pids = append(pids, n)
			}
		}
	}
	for _, pid := range slices.Backward(pids) {
		_ = unix.Kill(pid, unix.SIGKILL) // it may have ended with another
	}
	_ = wait(context.Background(), endBound, d.ended)
}
