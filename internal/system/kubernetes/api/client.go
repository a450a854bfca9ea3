// Package api talks to one Kubernetes API server: requests of a load, lists and
// watches, with what the server says of them. What is on the wire is decoded here.
//
// Requests bypass client-go's request type, which retries 429 silently and
// decodes answers that nobody reads. Its configuration, authentication and
// transports are used. A pod costs half a millisecond of this program's CPU
// time, from request to record.
//
// Pods are decoded in part, by hand: the observer needs a twentieth of the
// message. Other objects are watched as JSON, of which only the paths are read
// that the workload names, and a milestone that was reached is not looked for
// again: decoding a whole virtual machine instance (14 kB) takes ten times as
// long. Each watch has a connection of its own by HTTP/1.1, for with HTTP/2
// half of the cost was handing frames from goroutine to goroutine.
package api

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"plimsoll.dev/plimsoll/internal/system"
)

// Client talks to one API server. Requests of the load go straight to the
// transport: client-go's own request type retries 429 silently, and decodes
// answers that nobody reads.
type Client struct {
	Config *rest.Config
	Base   *url.URL
	load   [loadConnections]*http.Client // requests of the load, see Send
	stream atomic.Pointer[http.Client]   // watches, on connections of their own
	Typed  kubernetes.Interface
	agent  string
	logins *logins // nil where no program logs in

	// Patience is how long a request is made again; 0 is Patience.
	Patience time.Duration

	Answers  atomic.Int64 // to all requests but watches, so far
	Worked   atomic.Int64 // those of them that are no trouble of the server's own
	Wanted   atomic.Int64 // things asked for and neither made nor refused yet
	inFlight atomic.Int64

	discovering sync.Mutex
	discovered  meta.RESTMapper // nil until the API was first asked what it knows
}

// ProtobufType is the media type of the API's protobuf encoding.
const ProtobufType = "application/vnd.kubernetes.protobuf"

// RequestTimeout bounds one request of the load, as kubectl does by default
// nowhere and the API server does at a minute.
const RequestTimeout = time.Minute

// NewClient makes a client that calls itself agent. It asks the server nothing.
func NewClient(config *rest.Config, agent string) (*Client, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = agent
	// The load is bounded by the engine, and set-up must not wait.
	config.QPS, config.Burst = -1, 0
	config.Timeout = 0
	routed := rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return masking{newRoute(routed, next)} })
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("server address %q: %w", config.Host, err)
	}
	c := &Client{Config: config, Base: base, agent: agent}
	c.logins = newLogins(c)
	for i := range c.load {
		if c.load[i], err = c.httpClient(config); err != nil {
			return nil, err
		}
	}
	if err := c.RenewStream(); err != nil {
		return nil, err
	}
	typed := rest.CopyConfig(config)
	typed.ContentType = ProtobufType
	typed.AcceptContentTypes = ProtobufType + ",application/json"
	typed.Wrap(func(next http.RoundTripper) http.RoundTripper { return &patient{c, next} })
	transport, err := rest.TransportFor(typed)
	if err != nil {
		return nil, fmt.Errorf("make transport: %w", err)
	}
	if c.Typed, err = kubernetes.NewForConfigAndClient(typed, &http.Client{Transport: c.logins.over(transport)}); err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return c, nil
}

// httpClient makes a client with a transport, and so connections, of its own:
// client-go shares transports between equal configurations, and a dialer of
// one's own makes a configuration equal to no other.
func (c *Client) httpClient(config *rest.Config) (*http.Client, error) {
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
	return &http.Client{Transport: c.logins.over(transport)}, nil
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

// RenewStream makes watches that begin from now on use new connections: the
// present ones are believed dead. Each watch has one of its own, by HTTP/1.1: a
// message is then read where it arrives, with no frames to be taken apart by one
// goroutine and handed to others.
func (c *Client) RenewStream() error {
	config := rest.CopyConfig(c.Config)
	config.NextProtos = []string{"http/1.1"}
	stream, err := c.httpClient(config)
	if err != nil {
		return err
	}
	if old := c.stream.Swap(stream); old != nil {
		old.CloseIdleConnections()
	}
	return nil
}

// Close lets go of idle connections.
func (c *Client) Close() {
	for _, l := range c.load {
		l.CloseIdleConnections()
	}
	c.stream.Load().CloseIdleConnections()
}

// Reply is the answer to one request.
type Reply struct {
	Code   int
	Body   []byte
	Header http.Header

	creates bool // it answers the creation of an object
}

// creates reports whether a request creates an object, and asks nothing of one.
func creates(r *http.Request) bool {
	return r.Method == http.MethodPost && !strings.HasSuffix(r.URL.Path, "/eviction")
}

// Level is the UID of the priority level that the server has put the request
// in, "" where it does not say.
func (r Reply) Level() string { return r.Header.Get(headerLevel) }

// headerLevel is where the API server says which priority level a request got.
const headerLevel = "X-Kubernetes-PF-PriorityLevel-UID"

// Do makes a request, patiently as Send does, and reads its answer into buf. An
// error means that no whole answer came: whether the request took effect is then
// not known.
func (c *Client) Do(ctx context.Context, method, path string, query url.Values, contentType string, body []byte, buf *bytes.Buffer) (Reply, error) {
	request, err := c.Request(ctx, method, path, query, contentType, body)
	if err != nil {
		return Reply{}, err
	}
	return c.Send(request, buf)
}

// Try is Do with a single attempt.
func (c *Client) Try(ctx context.Context, method, path string, query url.Values, contentType string, body []byte, buf *bytes.Buffer) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	request, err := c.Request(ctx, method, path, query, contentType, body)
	if err != nil {
		return Reply{}, err
	}
	return c.attempt(request, buf, 0)
}

// Call is Do for a request without a body.
func (c *Client) Call(ctx context.Context, method, path string, query url.Values) (Reply, error) {
	return c.Do(ctx, method, path, query, "", nil, new(bytes.Buffer))
}

// An API server takes 100 requests at once over a connection, and further ones
// wait for no fault of its own. So each connection of the load gets about half as
// many before the next one is used.
const (
	loadConnections = 8
	perConnection   = 50
)

// attempt sends a request once and reads its answer into buf: no more than a byte
// beyond most, unless that is 0.
func (c *Client) attempt(request *http.Request, buf *bytes.Buffer, most int64) (Reply, error) {
	defer c.inFlight.Add(-1)
	at := int(c.inFlight.Add(1)-1) / perConnection
	response, err := c.load[min(at, loadConnections-1)].Do(request)
	if err != nil {
		return Reply{}, err
	}
	defer response.Body.Close()
	buf.Reset()
	var body io.Reader = response.Body
	if most > 0 {
		body = io.LimitReader(body, most+1)
	}
	if _, err := buf.ReadFrom(body); err != nil {
		return Reply{}, fmt.Errorf("read answer: %w", err)
	}
	c.Answers.Add(1)
	if response.StatusCode < http.StatusInternalServerError {
		c.Worked.Add(1)
	}
	return Reply{response.StatusCode, buf.Bytes(), response.Header, creates(request)}, nil
}

// Request makes a request, to be sent by Send.
func (c *Client) Request(ctx context.Context, method, path string, query url.Values, contentType string, body []byte) (*http.Request, error) {
	u := c.Base.JoinPath(path)
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
	request.Header.Set("Accept", ProtobufType+",application/json")
	request.Header.Set("User-Agent", c.agent)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	return request, nil
}

// RetryAfter is the pause that an answer asks for, in whole seconds as the API
// server sends it; 0 for none.
func (r Reply) RetryAfter() time.Duration {
	s, err := strconv.Atoi(r.Header.Get("Retry-After"))
	if err != nil || s < 0 {
		return 0
	}
	return time.Duration(s) * time.Second
}

// ErrBut is Err but for some codes, which are as good as success.
func (r Reply) ErrBut(codes ...int) error {
	if slices.Contains(codes, r.Code) {
		return nil
	}
	return r.Err()
}

// Err is the error that an answer with a code of 400 or more tells.
func (r Reply) Err() error {
	if r.Code < 400 {
		return nil
	}
	decoder := scheme.Codecs.UniversalDeserializer()
	if object, _, err := decoder.Decode(r.Body, nil, nil); err == nil {
		if status, ok := object.(*metav1.Status); ok {
			return &apierrors.StatusError{ErrStatus: *status}
		}
	}
	text := fmt.Sprintf("HTTP %d: %s", r.Code, bytes.TrimSpace(r.Body[:min(len(r.Body), 200)]))
	if r.Code == http.StatusNotFound {
		// A group that the cluster does not have is answered in plain text.
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: text}}
	}
	return errors.New(text)
}

// Transient reports whether an answer says that the same request may succeed
// later: too many requests, and the server's own troubles. A store that is full
// stays so until somebody does something about it.
func (r Reply) Transient() bool {
	return !bytes.Contains(r.Body, []byte("mvcc: database space exceeded")) && slices.Contains([]int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout}, r.Code)
}

// Overtaken reports whether what the server has to change with an object that is
// created, such as the use of a quota, was changed by somebody else meanwhile: nothing
// was created, and the same request may succeed. That the name is taken has another
// reason.
func (r Reply) Overtaken() bool {
	return r.creates && r.Code == http.StatusConflict && apierrors.IsConflict(r.Err())
}

// Sleep waits for d. It reports false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// Denied reports whether an answer says that the user has no right to it, as
// against a quota or a policy that the request runs into.
func (r Reply) Denied() bool {
	if r.Code == http.StatusUnauthorized {
		return true
	}
	return r.Code == http.StatusForbidden && strings.Contains(r.Err().Error(), " cannot ") && strings.Contains(r.Err().Error(), " resource ")
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

// Unreachable makes an UnreachableError of an error of the network's, or of one on the
// way to it, and leaves any other as it is. What no retry helps has its advice.
func (c *Client) Unreachable(err error) error {
	if _, told := errors.AsType[*UnreachableError](err); told {
		return err
	}
	if failed, is := errors.AsType[*LoginError](err); is {
		return &system.UnableError{Err: &UnreachableError{c.Base.Redacted(), failed}, Hint: "run it by itself, and correct what it says: " + failed.Program}
	}
	if dead, is := errors.AsType[*WebhookError](err); is {
		return &system.UnableError{Err: dead, Hint: dead.Remedy()}
	}
	var network net.Error
	var status apierrors.APIStatus
	if errors.As(err, &status) || !errors.As(err, &network) {
		return err
	}
	unreachable := &UnreachableError{c.Base.Redacted(), err}
	if by, is := errors.AsType[*ProxyError](err); is {
		return &system.UnableError{Err: unreachable, Hint: "start the proxy " + by.Proxy + ", or correct proxy-url in the kubeconfig (without one, HTTPS_PROXY and NO_PROXY of the environment)"}
	}
	return unreachable
}

// Exemption tells whether priority and fairness does not apply to the user, by
// the level that the server gave a request: a load of such a user is not held
// back as others are, and can starve them. Nil is unknown.
func (c *Client) Exemption(ctx context.Context) (*bool, error) {
	r, err := c.Call(ctx, http.MethodGet, "/api/v1/namespaces/default", nil)
	if err != nil {
		return nil, c.Unreachable(err)
	}
	name := c.PriorityLevels(ctx)[r.Level()]
	if name == "" {
		return nil, nil
	}
	return new(name == "exempt"), nil
}

// PriorityLevels are the names of the cluster's priority levels by their UIDs,
// nil where they are not ours to see: that is no reason to stop.
func (c *Client) PriorityLevels(ctx context.Context) map[string]string {
	levels, err := c.Typed.FlowcontrolV1().PriorityLevelConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	names := make(map[string]string, len(levels.Items))
	for _, level := range levels.Items {
		names[string(level.UID)] = level.Name
	}
	return names
}

// ClockOffset is the server's clock less ours by the date of an answer, in
// seconds; nil where it has none.
func ClockOffset(header http.Header, before, after time.Time) *float64 {
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return nil
	}
	// The header has whole seconds; half of one is its mean.
	middle := before.Add(after.Sub(before) / 2)
	return new(date.Add(500 * time.Millisecond).Sub(middle).Seconds())
}

// Probe asks for one of the paths by which the server tells whether it is well, on a
// connection of its own, and is the code of its answer.
func (c *Client) Probe(ctx context.Context, path string) (code int, err error) {
	fresh, err := c.httpClient(c.Config)
	if err != nil {
		return 0, err
	}
	defer fresh.CloseIdleConnections()
	request, err := c.Request(ctx, http.MethodGet, path, nil, "", nil)
	if err != nil {
		return 0, err
	}
	response, err := fresh.Do(request)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return 0, failed.Err
	}
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// Know says what the API knows, which is then not asked.
func (c *Client) Know(mapper meta.RESTMapper) { c.discovered = mapper }

// Mapper finds the resource of a kind. The API is asked once what it knows.
func (c *Client) Mapper() (meta.RESTMapper, error) {
	c.discovering.Lock()
	defer c.discovering.Unlock()
	if c.discovered != nil {
		return c.discovered, nil
	}
	groups, err := restmapper.GetAPIGroupResources(c.Typed.Discovery())
	if err != nil {
		return nil, fmt.Errorf("discover the API: %w", c.Unreachable(err))
	}
	c.discovered = restmapper.NewDiscoveryRESTMapper(groups)
	return c.discovered, nil
}

// InJSON makes a request that is answered in JSON, whatever the API knows of the
// kind; patch is nil for reading.
func (c *Client) InJSON(ctx context.Context, path string, query url.Values, patch []byte, into any) error {
	method, contentType := http.MethodGet, ""
	if patch != nil {
		method, contentType = http.MethodPatch, string(types.MergePatchType)
	}
	request, err := c.Request(ctx, method, path, query, contentType, patch)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	r, err := c.Send(request, new(bytes.Buffer))
	if err = cmp.Or(err, r.Err()); err != nil {
		return c.Unreachable(err)
	}
	return json.Unmarshal(r.Body, into)
}

// Settle is what became of a creation of a run's: an object that is there already
// is its own, if an answer was lost, or another's.
func Settle(err error, run string, get func() (metav1.Object, error)) error {
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	there, getErr := get()
	if getErr != nil {
		return getErr
	}
	if there.GetLabels()[LabelRun] != run {
		return err
	}
	return nil
}

// MetadataOf reads the metadata of an object of any kind, in either encoding.
func MetadataOf(body []byte) (*metav1.PartialObjectMetadata, error) {
	o := new(metav1.PartialObjectMetadata) // the start of an object of any kind
	raw, err := OpenEnvelope(body)
	if err != nil {
		return o, json.Unmarshal(body, o) // a custom resource
	}
	return o, o.Unmarshal(raw)
}

// ObjectName is the name of an object, with its namespace where it has one.
func ObjectName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Collection is the path of a resource's objects, in a namespace if it is not "".
func Collection(r schema.GroupVersionResource, namespace string) string {
	path := "/apis/" + r.Group + "/" + r.Version
	if r.Group == "" {
		path = "/api/" + r.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + r.Resource
}

// VersionNumber is a resource version as a number, 0 where it is none.
func VersionNumber(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64) // a version that is not a number is not waited for
	return n
}

// versionNumber is VersionNumber of a message's own bytes.
func versionNumber(version []byte) (n uint64) {
	for _, d := range version {
		if d < '0' || d > '9' || n > (math.MaxUint64-9)/10 {
			return 0
		}
		n = 10*n + uint64(d-'0')
	}
	return n
}

// PodPath is the path of a pod by its name, "namespace/name".
func PodPath(pod string) string {
	namespace, name, _ := strings.Cut(pod, "/")
	return "/api/v1/namespaces/" + namespace + "/pods/" + name
}

// OutOfReachError says that a cluster that a run had begun to load stopped to
// answer.
type OutOfReachError struct {
	Server   string
	Patience time.Duration // how long a request was tried again
	Last     string        // the last failure
}

// OutOfReach says that no answer is worth waiting for, see system.Outlive.
func (e *OutOfReachError) OutOfReach() bool { return true }

// Error implements error.
func (e *OutOfReachError) Error() string {
	return fmt.Sprintf("API server %s is out of reach: no answer for %v (%s)", e.Server, e.Patience, e.Last)
}
