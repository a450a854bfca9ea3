package kubernetes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// client talks to one API server. Requests of the load go straight to the
// transport: client-go's own request type retries 429 silently, and decodes
// answers that nobody reads.
type client struct {
	config *rest.Config
	base   *url.URL
	load   [loadConnections]*http.Client // requests of the load, see send
	stream atomic.Pointer[http.Client]   // watches, on connections of their own
	typed  kubernetes.Interface
	agent  string

	answers  atomic.Int64 // answers to requests of the load, so far
	inFlight atomic.Int64

	discovering sync.Mutex
	discovered  meta.RESTMapper // nil until the API was first asked what it knows
}

const protobufType = "application/vnd.kubernetes.protobuf"

// requestTimeout bounds one request of the load, as kubectl does by default
// nowhere and the API server does at a minute.
const requestTimeout = time.Minute

func newClient(config *rest.Config, agent string) (*client, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = agent
	// The load is bounded by the engine, and set-up must not wait.
	config.QPS, config.Burst = -1, 0
	config.Timeout = 0
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("server address %q: %w", config.Host, err)
	}
	c := &client{config: config, base: base, agent: agent}
	for i := range c.load {
		if c.load[i], err = httpClient(config); err != nil {
			return nil, err
		}
	}
	if err := c.renewStream(); err != nil {
		return nil, err
	}
	typed := rest.CopyConfig(config)
	typed.ContentType = protobufType
	typed.AcceptContentTypes = protobufType + ",application/json"
	if c.typed, err = kubernetes.NewForConfig(typed); err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return c, nil
}

// httpClient makes a client with a transport, and so connections, of its own:
// client-go shares transports between equal configurations, and a dialer of
// one's own makes a configuration equal to no other.
func httpClient(config *rest.Config) (*http.Client, error) {
	config = rest.CopyConfig(config)
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			raw, err := tcp.SyscallConn()
			if err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			return &readAhead{conn, bufio.NewReaderSize(socket{raw}, 32<<10)}, nil
		}
		return conn, nil
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("make transport: %w", err)
	}
	return &http.Client{Transport: transport}, nil
}

// readAhead is a connection that is read as far as it goes: TLS by itself asks
// the system twice for each of its records, of which a message has several.
type readAhead struct {
	net.Conn
	ahead *bufio.Reader
}

func (r *readAhead) Read(p []byte) (int, error) { return r.ahead.Read(p) }

// socket reads a connection without telling Go's runtime of the system call,
// which never blocks: being told wakes the thread that looks after such calls,
// and of a program that waits that is a quarter of what each message costs.
type socket struct{ syscall.RawConn }

func (s socket) Read(p []byte) (n int, err error) {
	var errno syscall.Errno
	err = s.RawConn.Read(func(fd uintptr) bool {
		var got uintptr
		for errno = syscall.EINTR; errno == syscall.EINTR; {
			got, _, errno = syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		}
		n = int(got)
		return errno != syscall.EAGAIN
	})
	switch {
	case err != nil:
		return 0, err
	case errno != 0:
		return 0, os.NewSyscallError("read", errno)
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// renewStream makes watches that begin from now on use new connections: the
// present ones are believed dead. Each watch has one of its own, by HTTP/1.1: a
// message is then read where it arrives, with no frames to be taken apart by one
// goroutine and handed to others.
func (c *client) renewStream() error {
	config := rest.CopyConfig(c.config)
	config.NextProtos = []string{"http/1.1"}
	stream, err := httpClient(config)
	if err != nil {
		return err
	}
	if old := c.stream.Swap(stream); old != nil {
		old.CloseIdleConnections()
	}
	return nil
}

// close lets go of idle connections.
func (c *client) close() {
	for _, l := range c.load {
		l.CloseIdleConnections()
	}
	c.stream.Load().CloseIdleConnections()
}

// reply is the answer to one request.
type reply struct {
	code   int
	body   []byte
	header http.Header
}

// level is the UID of the priority level that the server has put the request
// in, "" where it does not say.
func (r reply) level() string { return r.header.Get(headerLevel) }

// headerLevel is where the API server says which priority level a request got.
const headerLevel = "X-Kubernetes-PF-PriorityLevel-UID"

// do makes one request and reads its answer into buf. An error means that no
// whole answer came: whether the request took effect is then not known.
func (c *client) do(ctx context.Context, method, path string, query url.Values, contentType string, body []byte, buf *bytes.Buffer) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := c.request(ctx, method, path, query, contentType, body)
	if err != nil {
		return reply{}, err
	}
	return c.send(request, buf)
}

// call is do for a request without a body.
func (c *client) call(ctx context.Context, method, path string, query url.Values) (reply, error) {
	return c.do(ctx, method, path, query, "", nil, new(bytes.Buffer))
}

// An API server takes 100 requests at once over a connection, and further ones
// wait for no fault of its own. So each connection of the load gets about half as
// many before the next one is used.
const (
	loadConnections = 8
	perConnection   = 50
)

// send sends a request and reads its answer into buf.
func (c *client) send(request *http.Request, buf *bytes.Buffer) (reply, error) {
	defer c.inFlight.Add(-1)
	at := int(c.inFlight.Add(1)-1) / perConnection
	response, err := c.load[min(at, loadConnections-1)].Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	buf.Reset()
	if _, err := buf.ReadFrom(response.Body); err != nil {
		return reply{}, fmt.Errorf("read answer: %w", err)
	}
	c.answers.Add(1)
	return reply{code: response.StatusCode, body: buf.Bytes(), header: response.Header}, nil
}

func (c *client) request(ctx context.Context, method, path string, query url.Values, contentType string, body []byte) (*http.Request, error) {
	u := c.base.JoinPath(path)
	u.RawQuery = query.Encode()
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, u.String(), reader)
	if err != nil {
		return nil, err
	}
	// Custom resources have no protobuf encoding.
	request.Header.Set("Accept", protobufType+",application/json")
	request.Header.Set("User-Agent", c.agent)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	return request, nil
}

// retryAfter is the pause that an answer asks for, in whole seconds as the API
// server sends it; 0 for none.
func (r reply) retryAfter() time.Duration {
	s, err := strconv.Atoi(r.header.Get("Retry-After"))
	if err != nil || s < 0 {
		return 0
	}
	return time.Duration(s) * time.Second
}

// errorOf is the error that an answer with a code of 400 or more tells.
func (r reply) error() error {
	if r.code < 400 {
		return nil
	}
	decoder := scheme.Codecs.UniversalDeserializer()
	if object, _, err := decoder.Decode(r.body, nil, nil); err == nil {
		if status, ok := object.(*metav1.Status); ok {
			return &apierrors.StatusError{ErrStatus: *status}
		}
	}
	text := fmt.Sprintf("HTTP %d: %s", r.code, bytes.TrimSpace(r.body[:min(len(r.body), 200)]))
	if r.code == http.StatusNotFound {
		// A group that the cluster does not have is answered in plain text.
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: text}}
	}
	return errors.New(text)
}

// transient reports whether an answer says that the same request may succeed
// later: too many requests, and the server's own troubles. A store that is full
// stays so until somebody does something about it.
func (r reply) transient() bool {
	return !bytes.Contains(r.body, []byte("mvcc: database space exceeded")) && slices.Contains([]int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout}, r.code)
}

// retry makes a request until it succeeds, fails for good or the patience
// is over. Codes of acceptable are as good as success.
func retry(ctx context.Context, patience time.Duration, request func(context.Context) (reply, error), acceptable ...int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pause := firstPause
	for {
		r, err := request(ctx)
		switch {
		case err == nil && (r.code < 400 || slices.Contains(acceptable, r.code)):
			return nil
		case err == nil && !r.transient():
			return r.error()
		case err == nil:
			err = r.error()
			pause = max(pause, r.retryAfter())
		}
		if !sleep(ctx, pause) {
			return err
		}
		pause = min(2*pause, lastPause)
	}
}

// sleep waits, and reports false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// denied reports whether an answer says that the user has no right to it, as
// against a quota or a policy that the request runs into.
func (r reply) denied() bool {
	if r.code == http.StatusUnauthorized {
		return true
	}
	return r.code == http.StatusForbidden && strings.Contains(r.error().Error(), " cannot ") && strings.Contains(r.error().Error(), " resource ")
}

// UnreachableError says that a cluster could not be talked to at all.
type UnreachableError struct {
	Server string
	Err    error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the cluster at %s cannot be reached: %v", e.Server, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// unreachable makes an UnreachableError of an error of the network's, and
// leaves any other as it is.
func (c *client) unreachable(err error) error {
	var network net.Error
	var status apierrors.APIStatus
	if errors.As(err, &status) || !errors.As(err, &network) {
		return err
	}
	return &UnreachableError{c.base.Redacted(), err}
}

// exemption tells whether priority and fairness does not apply to the user, by
// the level that the server gave a request: a load of such a user is not held
// back as others are, and can starve them. Nil is not known.
func (c *client) exemption(ctx context.Context) (*bool, error) {
	r, err := c.call(ctx, http.MethodGet, "/api/v1/namespaces/default", nil)
	if err != nil {
		return nil, c.unreachable(err)
	}
	name := c.priorityLevels(ctx)[r.level()]
	if name == "" {
		return nil, nil
	}
	return new(name == "exempt"), nil
}

// priorityLevels are the names of the cluster's priority levels by their UIDs,
// nil where they are not ours to see: that is no reason to stop.
func (c *client) priorityLevels(ctx context.Context) map[string]string {
	levels, err := c.typed.FlowcontrolV1().PriorityLevelConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	names := make(map[string]string, len(levels.Items))
	for _, level := range levels.Items {
		names[string(level.UID)] = level.Name
	}
	return names
}

// clockOffset is the server's clock less ours by the date of an answer, in
// seconds; nil where it has none.
func clockOffset(header http.Header, before, after time.Time) *float64 {
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return nil
	}
	// The header has whole seconds; half of one is its mean.
	middle := before.Add(after.Sub(before) / 2)
	return new(date.Add(500 * time.Millisecond).Sub(middle).Seconds())
}

// know says what the API knows, which is then not asked.
func (c *client) know(mapper meta.RESTMapper) { c.discovered = mapper }

// mapper finds the resource of a kind. The API is asked once what it knows.
func (c *client) mapper() (meta.RESTMapper, error) {
	c.discovering.Lock()
	defer c.discovering.Unlock()
	if c.discovered != nil {
		return c.discovered, nil
	}
	groups, err := restmapper.GetAPIGroupResources(c.typed.Discovery())
	if err != nil {
		return nil, fmt.Errorf("discover the API: %w", c.unreachable(err))
	}
	c.discovered = restmapper.NewDiscoveryRESTMapper(groups)
	return c.discovered, nil
}

// inJSON makes a request that is answered in JSON, whatever the API knows of the
// kind; patch is nil for reading.
func (c *client) inJSON(ctx context.Context, path string, query url.Values, patch []byte, into any) error {
	method, contentType := http.MethodGet, ""
	if patch != nil {
		method, contentType = http.MethodPatch, string(types.MergePatchType)
	}
	var body []byte
	err := retry(ctx, jsonPatience, func(ctx context.Context) (reply, error) {
		request, err := c.request(ctx, method, path, query, contentType, patch)
		if err != nil {
			return reply{}, err
		}
		request.Header.Set("Accept", "application/json")
		r, err := c.send(request, new(bytes.Buffer))
		body = r.body
		return r, err
	})
	if err != nil {
		return c.unreachable(err)
	}
	return json.Unmarshal(body, into)
}

// jsonPatience is how long a request that is answered in JSON is tried again.
const jsonPatience = 15 * time.Second
