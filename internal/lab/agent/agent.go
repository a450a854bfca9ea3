package agent

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	_ "github.com/lib/pq" // the driver "postgres"
)

// Role runs one of the agent's tasks, which its first argument names.
type Role struct {
	Name, Help string
	Run        func(ctx context.Context, args []string, out io.Writer) error // an error of UsageError is the caller's
}

func roles() []Role {
	return []Role{
		{"pause", "wait to be stopped", pause},
		{"serve", "answer HTTP requests: serve [-address :8080] [-size BYTES] [-mark TEXT] [-time 0s] [-at-once N]", serve},
		{"get", "make one HTTP request, and fail unless it is answered with success: get [-timeout 1s] URL", get},
		{"relay", "call addresses until they accept connections, as requests ask: relay [-address 127.0.0.1:7070] [-node IP]", relay},
		{"app", "be ready while a database can be queried: app -database HOST:PORT [-address :8080] [-timeout 5s] [-work ROWS]", app},
		{"postgres", "be a PostgreSQL server: postgres [-port 5432] [-data DIR]", postgres},
	}
}

// Run plays the role that args begin with, its own or a further one, and returns an exit code: 0, 1 for
// failure, 2 for bad arguments.
func Run(ctx context.Context, args []string, out, log io.Writer, further ...Role) int {
	all := append(roles(), further...)
	for _, r := range all {
		if len(args) == 0 || r.Name != args[0] {
			continue
		}
		err := r.Run(ctx, args[1:], out)
		if err == nil {
			return 0
		}
		fmt.Fprintf(log, "agent %s: %v\n", r.Name, err)
		if errors.As(err, new(*UsageError)) {
			return 2
		}
		return 1
	}
	fmt.Fprintf(log, "agent: want one of these roles:\n")
	for _, r := range all {
		fmt.Fprintf(log, "  %s\t%s\n", r.Name, r.Help)
	}
	return 2
}

// UsageError says that the arguments of a role are wrong.
type UsageError struct{ error }

// Relay describes the server of the role relay: its port, its path, and the keys of its query.
const (
	RelayPort = 7070
	RelayPath = "/reach"
	RelayTo   = "to"     // an address, for each one; without a host it is of the pod's node
	RelayFor  = "within" // how long to try, all together
)

// relay calls the addresses of a request until each accepts a connection, for as long as the request says.
func relay(ctx context.Context, args []string, out io.Writer) error {
	address, node := fmt.Sprintf("127.0.0.1:%d", RelayPort), ""
	_, err := Parse(args, 0, func(f *flag.FlagSet) {
		f.StringVar(&address, "address", address, "where to listen")
		f.StringVar(&node, "node", node, "IP address of the node, for addresses without a host")
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc(RelayPath, func(w http.ResponseWriter, r *http.Request) {
		patience, err := time.ParseDuration(r.FormValue(RelayFor))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		for _, to := range r.Form[RelayTo] {
			if strings.HasPrefix(to, ":") {
				to = net.JoinHostPort(node, to[1:])
			}
			// A lost SYN is sent again only after a second.
			if err := reach(ctx, (&net.Dialer{Timeout: 100 * time.Millisecond}).DialContext, to); err != nil {
				http.Error(w, err.Error(), http.StatusGatewayTimeout)
				return
			}
		}
	})
	return listen(ctx, address, out, mux)
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// reach calls an address until it accepts a connection. Once ctx ends it returns why the last call failed, a refusal
// rather than that it took too long: the end may have cut the last call.
func reach(ctx context.Context, call dialer, address string) error {
	var why error
	for {
		conn, err := call(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		if late, is := errors.AsType[net.Error](err); why == nil || !is || !late.Timeout() {
			why = err
		}
		select {
		case <-ctx.Done():
			return why
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Parse reads the arguments of a role: flags, and so many operands. Its error is a *UsageError.
func Parse(args []string, operands int, define func(*flag.FlagSet)) ([]string, error) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	define(flags)
	if err := flags.Parse(args); err != nil {
		return nil, &UsageError{err}
	}
	if flags.NArg() != operands {
		return nil, &UsageError{fmt.Errorf("%d arguments, want %d", flags.NArg(), operands)}
	}
	return flags.Args(), nil
}

func pause(ctx context.Context, args []string, _ io.Writer) error {
	if _, err := Parse(args, 0, func(*flag.FlagSet) {}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

const readTimeout = 30 * time.Second // of a request: a silent client must not hold a connection

// serve answers requests, of which it works on so many at once for a time each: its capacity is then known.
func serve(ctx context.Context, args []string, out io.Writer) error {
	address, mark, size, took, atOnce := ":8080", "", 128, time.Duration(0), 1
	_, err := Parse(args, 0, func(f *flag.FlagSet) {
		f.StringVar(&address, "address", address, "where to listen")
		f.StringVar(&mark, "mark", mark, "text that answers begin with")
		f.IntVar(&size, "size", size, "bytes of an answer")
		f.DurationVar(&took, "time", took, "time that a request takes")
		f.IntVar(&atOnce, "at-once", atOnce, "requests that are worked on at once, if they take time")
	})
	if err != nil {
		return err
	}
	if size < 0 || took < 0 || atOnce < 1 {
		return &UsageError{fmt.Errorf("-size %d -time %v -at-once %d: none may be negative, and one request is worked on at least", size, took, atOnce)}
	}
	page := []byte(mark + strings.Repeat("x", max(size-len(mark), 0)))
	places := make(chan struct{}, atOnce)
	return listen(ctx, address, out, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		if took > 0 && !work(r.Context(), places, took) {
			return
		}
		_, _ = w.Write(page)
	}))
}

// work takes one of the places for a time, and reports whether the client waited for that.
func work(ctx context.Context, places chan struct{}, took time.Duration) bool {
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	time.Sleep(took)
	<-places
	return ctx.Err() == nil
}

// listen serves until ctx ends, and prints its address to out.
func listen(ctx context.Context, address string, out io.Writer, handler http.Handler) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "listening on %s\n", listener.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: readTimeout}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func get(ctx context.Context, args []string, _ io.Writer) error {
	timeout := time.Second
	urls, err := Parse(args, 1, func(f *flag.FlagSet) { f.DurationVar(&timeout, "timeout", timeout, "how long the answer may take") })
	if err != nil {
		return err
	}
	return ask(ctx, urls[0], timeout)
}

// ask makes one HTTP request, and is an error unless it is answered with success in time.
func ask(ctx context.Context, url string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return &UsageError{err}
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if _, err := io.Copy(io.Discard, reply.Body); err != nil {
		return fmt.Errorf("get %s: %w", url, err)
	}
	if reply.StatusCode/100 != 2 {
		return fmt.Errorf("get %s: %s", url, reply.Status)
	}
	return nil
}

// application is a service that needs its database: it is ready while it can query it, and always alive.
type application struct {
	db      *sql.DB
	query   string        // of a probe
	timeout time.Duration // of the query
	made    atomic.Bool   // the table and its record exist
}

func app(ctx context.Context, args []string, out io.Writer) error {
	address, database, timeout, work := ":8080", "", 5*time.Second, 1
	_, err := Parse(args, 0, func(f *flag.FlagSet) {
		f.StringVar(&address, "address", address, "where to listen")
		f.StringVar(&database, "database", "", "host:port of the database")
		f.DurationVar(&timeout, "timeout", timeout, "how long a query may take")
		f.IntVar(&work, "work", work, "rows that a query goes through")
	})
	switch {
	case err != nil:
		return err
	case database == "":
		return &UsageError{errors.New("-database is missing")}
	case work < 1:
		return &UsageError{fmt.Errorf("-work %d: a query goes through one row at least", work)}
	}
	db, err := sql.Open("postgres", "postgres://postgres@"+database+"/postgres?sslmode=disable&connect_timeout="+
		fmt.Sprint(max(1, int(timeout.Seconds()))))
	if err != nil {
		return &UsageError{err}
	}
	defer db.Close()
	// One connection, like a small service; a database takes a hundred.
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

// ask queries the table, and first makes it with its record unless they are known to exist.
func (a *application) ask(ctx context.Context) error {
	if !a.made.Load() {
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
	a.made.Store(err == nil) // a database that was started again has lost its table
	return err
}

// Paths in the image of PostgreSQL.
const (
	PostgresBin    = "/postgresql/bin" // links to the directory of the version's programs
	PostgresVolume = "/data"           // holds the database. The image's user and the group 0 of any chosen user own it.
	// PostgresData is a directory below it, because the server wants a directory of its own user's.
	PostgresData = PostgresVolume + "/db"
)

// named adds this process's user to the file of accounts: initdb refuses a user without a name.
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

// postgres runs a PostgreSQL server, with a new database unless one exists.
func postgres(ctx context.Context, args []string, out io.Writer) error {
	port, data := 5432, PostgresData
	_, err := Parse(args, 0, func(f *flag.FlagSet) {
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
		// Any client may use the database: it holds nothing.
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
