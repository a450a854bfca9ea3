package io

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
)

func postgresNeeds() []proc.Program {
	pgbench := proc.Program{Name: pgbenchName, Package: "postgresql", Look: func() string {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + pgbenchName)
		if len(found) == 0 {
			return ""
		}
		version := func(path string) int {
			n, _ := strconv.Atoi(strings.Split(path, "/")[4])
			return n
		}
		return slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })
	}}
	needs := []proc.Program{pgbench, {Name: "unshare", Package: "util-linux"}, {Name: "setpriv", Package: "util-linux"}}
	for i := range needs {
		needs[i].For = Name
	}
	return needs
}

const pgbenchName = "pgbench"

// findPostgres returns the directory of the newest PostgreSQL's programs, to run as its user by root.
func findPostgres() (string, error) {
	paths, missing := proc.Look("beside="+pgbenchName, "", postgresNeeds())
	return filepath.Dir(paths[pgbenchName]), system.Lacking(missing.Err(), ", or leave beside out")
}

// postgresScript runs PostgreSQL and pgbench on a volume ($1) with the programs of a directory ($2). The
// volume is mounted at /mnt for its user; the socket is an abstract one.
const postgresScript = `set -e
exec 2>&1
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
	*proc.Process

	mu           sync.Mutex
	seconds      int // reported
	rate, lat    float64
	sum, weighed float64 // Sums over all seconds: transactions, and latencies times transactions
	last         string
}

const databaseBound = 2 * time.Minute // bounds the time until the first transactions

// startDatabase starts PostgreSQL and pgbench in a ground's directory, and awaits transactions.
func startDatabase(ctx context.Context, g ground, dir, programs, name string) (*database, error) {
	d := &database{}
	// The first process of a namespace takes all others along, and ends with its parent.
	cmd := g.command("/", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "/bin/sh", "-c", postgresScript, "sh", dir, programs, name)
	var err error
	d.Process, err = g.start(cmd, proc.How{Name: pgbenchName, Output: func(out io.Reader) {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			d.read(lines.Text())
		}
	}})
	if err != nil {
		return nil, err
	}
	err = wait(ctx, databaseBound, func() bool { n, _, _, _ := d.told(); return n > 0 || d.Ended() })
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

// told returns the reported seconds and their sums.
func (d *database) told() (seconds int, sum, weighed float64, last string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seconds, d.sum, d.weighed, d.last
}

// reading returns the last report.
func (d *database) reading() record.Reading {
	d.mu.Lock()
	defer d.mu.Unlock()
	return record.Reading{Source: sourcePgbench, Values: map[string]float64{"transactionsPerSecond": d.rate, "latencySeconds": d.lat}}
}

// stop ends it: the namespace's parent is the started process, or its child.
func (d *database) stop() {
	d.KillAll()
	_ = wait(context.Background(), endBound, d.Ended)
}
