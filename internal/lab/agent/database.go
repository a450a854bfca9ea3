package agent

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "github.com/lib/pq" // the driver "postgres"
)

// application is a service that needs its database: it is ready while it can
// query it, and alive whether it can or not.
type application struct {
	db *sql.DB
	// query is what a probe asks, and timeout how long it may take.
	query   string
	timeout time.Duration

	mu   sync.Mutex
	made bool // the table and its record are there
}

// app serves an application.
func app(ctx context.Context, args []string, out io.Writer) error {
	address, database, timeout, work := ":8080", "", 5*time.Second, 1
	_, err := parse(args, 0, func(f *flag.FlagSet) {
		f.StringVar(&address, "address", address, "where to listen")
		f.StringVar(&database, "database", "", "host:port of the database")
		f.DurationVar(&timeout, "timeout", timeout, "how long a query may take")
		f.IntVar(&work, "work", work, "rows that a query goes through")
	})
	switch {
	case err != nil:
		return err
	case database == "":
		return &usageError{errors.New("-database is missing")}
	case work < 1:
		return &usageError{fmt.Errorf("-work %d: a query goes through one row at least", work)}
	}
	db, err := sql.Open("postgres", "postgres://postgres@"+database+"/postgres?sslmode=disable&connect_timeout="+
		fmt.Sprint(max(1, int(timeout.Seconds()))))
	if err != nil {
		return &usageError{err}
	}
	defer db.Close()
	// One connection, as a small service has one; a database holds a hundred.
	db.SetMaxOpenConns(1)
	a := &application{db: db, timeout: timeout,
		query: fmt.Sprintf("SELECT count(*) FROM records, generate_series(1, %d)", work)}
	mux := http.NewServeMux()
	mux.HandleFunc("/live", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") })
	mux.HandleFunc("/ready", a.ready)
	return listen(ctx, address, out, mux)
}

func (a *application) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), a.timeout)
	defer cancel()
	if err := a.ask(ctx); err != nil {
		http.Error(w, "database: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// ask makes the table and its record if they are unknown to be there, and
// queries it.
func (a *application) ask(ctx context.Context) error {
	a.mu.Lock()
	made := a.made
	a.mu.Unlock()
	if !made {
		for _, statement := range []string{
			"CREATE TABLE IF NOT EXISTS records (id int PRIMARY KEY, made timestamptz NOT NULL)",
			"INSERT INTO records VALUES (1, now()) ON CONFLICT DO NOTHING",
		} {
			if _, err := a.db.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
	}
	var rows int64
	err := a.db.QueryRowContext(ctx, a.query).Scan(&rows)
	if err == nil && rows == 0 {
		err = errors.New("the record is gone")
	}
	// A database that was started again has lost its table.
	a.mu.Lock()
	a.made = err == nil
	a.mu.Unlock()
	return err
}

// Where the image of PostgreSQL has its parts.
const (
	// PostgresBin is the directory of its programs, by a link to that of the
	// version.
	PostgresBin = "/postgresql/bin"
	// PostgresVolume is where the database is kept: the image's user owns it, and so
	// does the group 0, of which every user is that a cluster chooses.
	PostgresVolume = "/data"
	// PostgresData is its directory there: the server wants one of its own user's.
	PostgresData = PostgresVolume + "/db"
)

// named gives the user that this runs as a line in the file of accounts, if it has
// none: a cluster may choose any user, and initdb refuses one without a name.
func named(accounts string, uid int) error {
	text, err := os.ReadFile(accounts)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(line, ":"); len(fields) > 2 && fields[2] == fmt.Sprint(uid) {
			return nil
		}
	}
	f, err := os.OpenFile(accounts, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "user%d:x:%[1]d:0::/tmp:/bin/sh\n", uid)
	return errors.Join(err, f.Close())
}

// postgres becomes a PostgreSQL server, with a new database if there is none.
func postgres(ctx context.Context, args []string, out io.Writer) error {
	port, data := 5432, PostgresData
	_, err := parse(args, 0, func(f *flag.FlagSet) {
		f.IntVar(&port, "port", port, "where to listen")
		f.StringVar(&data, "data", data, "directory of the database")
	})
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); errors.Is(err, os.ErrNotExist) {
		if err := named("/etc/passwd", os.Getuid()); err != nil {
			return fmt.Errorf("give the database's user a name: %w", err)
		}
		text, err := exec.CommandContext(ctx, PostgresBin+"/initdb", "--pgdata="+data, "--username=postgres", "--auth=trust",
			"--encoding=UTF8", "--locale=C").CombinedOutput()
		if err != nil {
			return fmt.Errorf("make a database: %w: %s", err, strings.TrimSpace(string(text)))
		}
		// Whoever reaches it may use it: it holds nothing.
		f, err := os.OpenFile(filepath.Join(data, "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString("host all all all trust\n")
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return fmt.Errorf("make a database: %w", err)
		}
	}
	server := exec.CommandContext(ctx, PostgresBin+"/postgres", "-D", data, "-p", fmt.Sprint(port), "-h", "*",
		"-c", "unix_socket_directories=/tmp")
	server.Stdout, server.Stderr = out, out
	// A fast shutdown, which does not wait for clients.
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	server.WaitDelay = 10 * time.Second
	if err := server.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the server ended: %w", err)
	}
	return nil
}
