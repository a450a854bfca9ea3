package agent

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// The role try listens at this port and these paths, as kube-burner's netpolvalidator does.
const (
	TryPort  = 9001
	TryGive  = "/check"   // takes orders, once
	TryTells = "/results" // tells the connections that were made
)

// Order asks for connections to addresses. Its JSON and that of Connection are kube-burner's.
type Order struct {
	Addresses []string `json:"addresses"`
	Ports     []int32  `json:"ports"`
	Policy    string   `json:"netpol"`
}

// Connection is one that was made, at a time by the clock of its pod.
type Connection struct {
	Address string    `json:"address"`
	Port    int32     `json:"port"`
	Order   int       `json:"connectionidx"` // index of its order
	Policy  string    `json:"npname"`
	At      time.Time `json:"timestamp"`
}

const (
	tryInterval = 50 * time.Millisecond
	tryTimeout  = 500 * time.Millisecond // before a lost SYN is sent again
	triedAtOnce = 50
)

// trying holds the connections of the role try.
type trying struct {
	now  func() time.Time
	room chan struct{}

	mu    sync.Mutex
	given bool
	made  []Connection
}

// Try returns the role that calls addresses, as its orders ask, each until it answers with success.
func Try(now func() time.Time) Role {
	return Role{Name: "try", Help: "call addresses until they answer, as orders ask: try [-address :9001]", Run: func(ctx context.Context, args []string, out io.Writer) error {
		address := fmt.Sprintf(":%d", TryPort)
		if _, err := Parse(args, 0, func(f *flag.FlagSet) { f.StringVar(&address, "address", address, "where to listen") }); err != nil {
			return err
		}
		t := &trying{now: now, room: make(chan struct{}, triedAtOnce), made: []Connection{}}
		mux := http.NewServeMux()
		mux.HandleFunc("POST "+TryGive, func(w http.ResponseWriter, r *http.Request) { t.take(ctx, w, r) })
		mux.HandleFunc("GET "+TryTells, func(w http.ResponseWriter, _ *http.Request) {
			t.mu.Lock()
			defer t.mu.Unlock()
			_ = json.NewEncoder(w).Encode(t.made)
		})
		return listen(ctx, address, out, mux)
	}}
}

// take begins to call the addresses of the orders of a request.
func (t *trying) take(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	var orders []Order
	if err := json.NewDecoder(r.Body).Decode(&orders); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t.mu.Lock()
	twice := t.given
	t.given = true
	t.mu.Unlock()
	if twice {
		http.Error(w, "it has its orders already", http.StatusConflict)
		return
	}
	for i, o := range orders {
		for _, address := range o.Addresses {
			for _, port := range o.Ports {
				go t.call(ctx, Connection{Address: address, Port: port, Order: i, Policy: o.Policy})
			}
		}
	}
}

// call calls one address until it answers.
func (t *trying) call(ctx context.Context, c Connection) {
	url := "http://" + net.JoinHostPort(c.Address, strconv.Itoa(int(c.Port)))
	for {
		select {
		case t.room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		err := ask(ctx, url, tryTimeout)
		c.At = t.now()
		<-t.room
		if err == nil {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.made = append(t.made, c)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(tryInterval):
		}
	}
}
