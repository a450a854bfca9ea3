package virt

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/client-go/rest"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"

	"plimsoll.dev/plimsoll/internal/test/ring"
)

// callsTo returns the caller of servers, through the API server at an address if it has one.
func callsTo(t *testing.T, server string) *calls {
	t.Helper()
	c, err := api.NewClient(&rest.Config{Host: server}, "test")
	if err != nil {
		t.Fatal(err)
	}
	made := newCalls(&prepared.Run{Client: c, Clock: record.StartClock(time.Now)}, keys{})
	made.forward.Store(server != "")
	return made
}

// What a call comes to, both ways: an answer, a word that is alike for all
// machines, or a refusal that ends the calls.
func TestCalls(t *testing.T) {
	t.Parallel()
	status := func(code int, message string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, map[int]string{403: "Forbidden", 409: "Conflict", 500: "InternalError"}[code], message)
		}
	}
	guest := func(protocol, greeting string, silent bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachineinstances/vm-0/portforward/22/tcp" {
				t.Errorf("asked for %s", r.URL.Path)
			}
			up := websocket.Upgrader{Subprotocols: []string{protocol}}
			conn, err := up.Upgrade(w, r, nil)
			if err != nil {
				return
			}
			defer conn.Close()
			for _, part := range []string{greeting[:len(greeting)/2], greeting[len(greeting)/2:]} {
				conn.WriteMessage(websocket.BinaryMessage, []byte(part))
			}
			if silent {
				<-r.Context().Done()
			}
		}
	}
	p := observe.Probe{Server: "ns/vm-0", Probe: described.Probe{Port: 22, Banner: "SSH-"}}
	for _, tt := range []struct {
		why     string
		answer  http.HandlerFunc
		want    string // in the word, "" for an answer
		refused bool
	}{
		{"a greeting in two messages", guest("plain.kubevirt.io", "SSH-2.0-x\r\n", false), "", false},
		{"a greeting of something else", guest("plain.kubevirt.io", "HTTP/1.1 400", false), `no answer through the API server: it begins with "HTTP"`, false},
		{"a server that says another protocol", guest("v4.channel.k8s.io", "SSH-2.0-x\r\n", false), "no answer through the API server: ", false},
		{"a guest that closes", guest("plain.kubevirt.io", "", false), "no answer through the API server: closed without a greeting", false},
		{"a guest on which nothing listens yet", status(500, "Internal error occurred: dialing VM: dial tcp 10.0.2.7:22: connect: connection refused"), "no answer through the API server: connection refused", false},
		{"a guest that is paused", status(409, `Operation cannot be fulfilled on virtualmachineinstance "vm-0": VMI is paused`), "no answer through the API server: VMI is paused", false},
		{"a user who may not", status(403, `virtualmachineinstances.subresources.kubevirt.io "vm-0" is forbidden: User "u" cannot get resource "virtualmachineinstances/portforward"`), `virtualmachineinstances/portforward`, true},
		{"a guest that says nothing", guest("plain.kubevirt.io", "", true), "no answer through the API server: nothing came in time", false},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.answer)
			t.Cleanup(server.CloseClientConnections)
			c := callsTo(t, server.URL)
			_, err := c.hears(t.Context(), p, "127.0.0.1:1")
			switch {
			case tt.want == "":
				if err != nil {
					t.Errorf("no answer: %v", err)
				}
			case err == nil:
				t.Error("it was heard")
			case tt.refused != (forbidden(err) != nil):
				t.Errorf("refused for good: %v, %v", forbidden(err), err)
			case tt.refused && !strings.Contains(err.Error(), tt.want), !tt.refused && !strings.HasPrefix(c.silentFor(err), tt.want):
				t.Errorf("it is told that %q, of %v", c.silentFor(err), err)
			}
		})
	}
}

// From this machine, what cannot be reached says what would.
func TestCallsFromHere(t *testing.T) {
	ring.Long(t, "it waits for calls that time out")
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // it takes connections and says nothing
	closed, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	serve := func(answer func(*net.TCPConn)) string {
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.AcceptTCP()
				if err != nil {
					return
				}
				answer(conn)
				conn.Close()
			}
		}()
		return l.Addr().String()
	}
	c := callsTo(t, "")
	for _, pause := range []time.Duration{0, 20 * time.Millisecond} {
		address := serve(func(conn *net.TCPConn) {
			for _, part := range []string{"SS", "H-2.0-x\r\n"} {
				time.Sleep(pause)
				_, _ = conn.Write([]byte(part)) // the client may have gone
			}
		})
		if _, err := c.hears(t.Context(), observe.Probe{Probe: described.Probe{Banner: "SSH-"}}, address); err != nil {
			t.Errorf("a greeting in two parts, each after %v: %v", pause, err)
		}
	}
	for address, want := range map[string]string{
		serve(func(conn *net.TCPConn) { _ = conn.SetLinger(0) }):                                    "no answer to this machine: connection reset by peer",
		serve(func(conn *net.TCPConn) { time.Sleep(20 * time.Millisecond); _ = conn.SetLinger(0) }): "no answer to this machine: connection reset by peer",
		serve(func(*net.TCPConn) {}): "no answer to this machine: closed without a greeting",
		serve(func(conn *net.TCPConn) { _, _ = conn.Write([]byte("HTTP/1.1 400")); time.Sleep(time.Second) }): `no answer to this machine: it begins with "HTTP"`,
		listener.Addr().String(): "no answer to this machine: nothing came in time; if its address cannot be reached from here, sshFrom=portforward goes through the API server",
		closed.Addr().String():   "no answer to this machine: connection refused",
	} {
		if _, err := c.hears(t.Context(), observe.Probe{Probe: described.Probe{Banner: "SSH-"}}, address); err == nil || c.silentFor(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Bytes go both ways, as a login needs it.
func TestForwardBothWays(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up := websocket.Upgrader{Subprotocols: []string{"plain.kubevirt.io"}}
		conn, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		for {
			kind, data, err := conn.ReadMessage()
			if err != nil || conn.WriteMessage(kind, bytes.ToUpper(data)) != nil {
				return
			}
		}
	}))
	t.Cleanup(server.CloseClientConnections)
	conn, _, err := callsTo(t, server.URL).open(t.Context(), observe.Probe{Server: "ns/vm-0", Probe: described.Probe{Port: 22}}, "", probePatience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i := range 3 {
		fmt.Fprintf(conn, "hello %d", i)
		got := make([]byte, 7)
		if _, err := conn.Read(got); err != nil || string(got) != fmt.Sprintf("HELLO %d", i) {
			t.Errorf("%q, %v", got, err)
		}
	}
}
