package agent

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

type role struct {
	name, help string
	run        func(ctx context.Context, args []string, out io.Writer) error
}

func roles() []role {
	return []role{
		{"pause", "wait to be stopped", pause},
		{"serve", "answer HTTP requests: serve [-address :8080] [-size BYTES]", serve},
		{"get", "make one HTTP request, and fail unless it is answered with success: get [-timeout 1s] URL", get},
		{"app", "be ready while a database can be queried: app -database HOST:PORT [-address :8080] [-timeout 5s] [-work ROWS]", app},
		{"postgres", "be a PostgreSQL server: postgres [-port 5432] [-data DIR]", postgres},
	}
}

// Run plays the role that args begin with, and returns an exit code: 0, 1 for failure, 2 for bad arguments.
func Run(ctx context.Context, args []string, out, log io.Writer) int {
	for _, r := range roles() {
		if len(args) == 0 || r.name != args[0] {
			continue
		}
		err := r.run(ctx, args[1:], out)
		if err == nil {
			return 0
		}
		fmt.Fprintf(log, "agent %s: %v\n", r.name, err)
		if errors.As(err, new(*usageError)) {
			return 2
		}
		return 1
	}
	fmt.Fprintf(log, "agent: want one of these roles:\n")
	for _, r := range roles() {
		fmt.Fprintf(log, "  %s\t%s\n", r.name, r.help)
	}
	return 2
}

type usageError struct{ error }

func parse(args []string, operands int, define func(*flag.FlagSet)) ([]string, error) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	define(flags)
	if err := flags.Parse(args); err != nil {
		return nil, &usageError{err}
	}
	if flags.NArg() != operands {
		return nil, &usageError{fmt.Errorf("%d arguments, want %d", flags.NArg(), operands)}
	}
	return flags.Args(), nil
}

func pause(ctx context.Context, args []string, _ io.Writer) error {
	if _, err := parse(args, 0, func(*flag.FlagSet) {}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

const readTimeout = 30 * time.Second // of a request: a silent client must not hold a connection

func serve(ctx context.Context, args []string, out io.Writer) error {
	address, size := ":8080", 128
	_, err := parse(args, 0, func(f *flag.FlagSet) {
		f.StringVar(&address, "address", address, "where to listen")
		f.IntVar(&size, "size", size, "bytes of an answer")
	})
	if err != nil {
		return err
	}
	if size < 0 {
		return &usageError{fmt.Errorf("-size %d is negative", size)}
	}
	page := []byte(strings.Repeat("x", size))
	return listen(ctx, address, out, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write(page)
	}))
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
	urls, err := parse(args, 1, func(f *flag.FlagSet) { f.DurationVar(&timeout, "timeout", timeout, "how long the answer may take") })
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, urls[0], nil)
	if err != nil {
		return &usageError{err}
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if _, err := io.Copy(io.Discard, reply.Body); err != nil {
		return fmt.Errorf("get %s: %w", urls[0], err)
	}
	if reply.StatusCode/100 != 2 {
		return fmt.Errorf("get %s: %s", urls[0], reply.Status)
	}
	return nil
}
