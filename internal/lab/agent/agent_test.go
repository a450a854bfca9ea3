package agent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestCommandLines(t *testing.T) {
	sick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no database", http.StatusServiceUnavailable)
	}))
	defer sick.Close()
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	for _, c := range []struct {
		args []string
		code int
		says string
		why  string
	}{
		{nil, 2, "pause", "without a role the roles are told"},
		{[]string{"paws"}, 2, "pause", "a role that there is not"},
		{[]string{"pause", "now"}, 2, "arguments", "an argument that is not taken"},
		{[]string{"serve", "-size", "-1"}, 2, "negative", "a size that cannot be"},
		{[]string{"serve", "-port", "1"}, 2, "port", "an option that there is not"},
		{[]string{"serve", "-address", "256.0.0.1:1"}, 1, "256.0.0.1", "an address that nobody has"},
		{[]string{"app"}, 2, "-database is missing", "an application without a database"},
		{[]string{"app", "-database", "127.0.0.1:1", "-work", "0"}, 2, "one row", "a query of nothing"},
		{[]string{"postgres", "now"}, 2, "arguments", "a server with an argument"},
		{[]string{"postgres", "-data", "/nowhere"}, 1, "make a database", "a system without PostgreSQL"},
		{[]string{"get"}, 2, "arguments", "no address to ask"},
		{[]string{"get", sick.URL}, 1, "503", "an answer without success is a failure"},
		{[]string{"get", "-timeout", "20ms", slow.URL}, 1, "deadline", "no answer in time is a failure"},
	} {
		var log bytes.Buffer
		if code := Run(t.Context(), c.args, io.Discard, &log); code != c.code || !strings.Contains(log.String(), c.says) {
			t.Errorf("%s: %q ends with %d and says %q; want %d and %q", c.why, c.args, code, log.String(), c.code, c.says)
		}
	}
}

func TestServeAnswersGetUntilItIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- Run(ctx, []string{"serve", "-address", "127.0.0.1:0", "-size", "3"}, writer, io.Discard)
	}()
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	var log bytes.Buffer
	if code := Run(t.Context(), []string{"get", "-timeout", "5s", url}, io.Discard, &log); code != 0 {
		t.Errorf("get: %d, %s", code, log.String())
	}
	reply, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if body, err := io.ReadAll(reply.Body); err != nil || string(body) != "xxx" {
		t.Errorf("served %q, %v; want three bytes", body, err)
	}
	stop()
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("stopped: %d", code)
		}
	case <-time.After(5 * time.Second):
		t.Error("serve does not end")
	}
}

func TestPauseEndsWhenStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if code := Run(ctx, []string{"pause"}, io.Discard, io.Discard); code != 0 {
		t.Errorf("pause ended with %d", code)
	}
}

// Without its database an application is alive and not ready.
func TestApplicationWithoutItsDatabase(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- Run(ctx, []string{"app", "-address", "127.0.0.1:0", "-database", "127.0.0.1:1", "-timeout", "2s"}, writer, io.Discard)
	}()
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	for path, want := range map[string]int{"/live": http.StatusOK, "/ready": http.StatusServiceUnavailable} {
		reply, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if reply.StatusCode != want || err != nil || want != http.StatusOK && !strings.Contains(string(body), "database: ") {
			t.Errorf("%s: %s %q, %v; want %d", path, reply.Status, body, err, want)
		}
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("stopped: %d", code)
	}
}

// A relay calls each address until it accepts a connection, and says why the last call failed.
func TestRelay(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	go Run(ctx, []string{"relay", "-address", "127.0.0.1:0", "-node", "127.0.0.1"}, writer, io.Discard)
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	at := "http://" + strings.TrimSpace(strings.TrimPrefix(line, "listening on ")) + RelayPath + "?"
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	_, port, _ := net.SplitHostPort(open.Addr().String())
	for _, tt := range []struct {
		why, within string
		to          []string
		code        int
		says        string
	}{
		{"all accept", "5s", []string{open.Addr().String(), ":" + port}, 200, ""},
		{"one refuses for as long as it may take", "500ms", []string{open.Addr().String(), closed.Addr().String()}, 504, "connection refused"},
		{"no time", "soon", []string{open.Addr().String()}, 400, "soon"},
	} {
		reply, err := http.Get(at + url.Values{RelayTo: tt.to, RelayFor: {tt.within}}.Encode())
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(reply.Body)
		reply.Body.Close()
		if reply.StatusCode != tt.code || !strings.Contains(string(text), tt.says) {
			t.Errorf("%s: %d %s", tt.why, reply.StatusCode, text)
		}
	}
}

// The time of a relay may end during a call, which then fails for that alone: the call before it knows why.
func TestTheTimeEndsDuringACall(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	refused, calls := errors.New("connection refused"), 0
	err := reach(ctx, func(ctx context.Context, _, _ string) (net.Conn, error) {
		if calls++; calls == 1 {
			return nil, refused
		}
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	}, "a:1")
	if err != refused {
		t.Errorf("%d calls: %v, want %v", calls, err, refused)
	}
}

// Orders are carried out once: each address is called until it answers with success, and told.
func TestTry(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) < 3 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	reader, writer := io.Pipe()
	go Run(t.Context(), []string{"try", "-address", "127.0.0.1:0"}, writer, io.Discard, Try(func() time.Time { return time.Unix(7, 0) }))
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	give := func(orders string) int {
		reply, err := http.Post(url+TryGive, "application/json", strings.NewReader(orders))
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		return reply.StatusCode
	}
	orders := `[{"addresses":["127.0.0.1"],"ports":[1],"netpol":"a"},{"addresses":["127.0.0.1"],"ports":[` + port + `],"netpol":"b"}]`
	for _, tt := range []struct {
		why, orders string
		want        int
	}{{"no orders", "orders", http.StatusBadRequest}, {"orders", orders, http.StatusOK}, {"others", orders, http.StatusConflict}} {
		if got := give(tt.orders); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.why, got, tt.want)
		}
	}
	want := `[{"address":"127.0.0.1","port":` + port + `,"connectionidx":1,"npname":"b","timestamp":"` + time.Unix(7, 0).Format(time.RFC3339) + `"}]`
	for got := ""; got != want; {
		reply, err := http.Get(url + TryTells)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(reply.Body)
		reply.Body.Close()
		if got = strings.TrimSpace(string(text)); got != want && got != "[]" {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	if calls.Load() < 3 {
		t.Error("an answer without success was one")
	}
}
