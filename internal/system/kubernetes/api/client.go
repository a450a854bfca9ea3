// Package api talks to one Kubernetes API server: requests of a load, lists and watches. Requests bypass
// client-go's request type, which retries 429 silently and decodes answers that nobody reads. A pod costs
// half a millisecond of this program's CPU time, from request to record.
//
// Pods are decoded in part, by hand: the observer needs a twentieth of the message. Of other objects only the
// workload's paths are read, as JSON: decoding a whole virtual machine instance (14 kB) takes ten times as
// long. Each watch has its own HTTP/1.1 connection: with HTTP/2, half of the cost was passing frames between
// goroutines.
package api

import (
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
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
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

// Client talks to one API server.
type Client struct {
	Config *rest.Config
	Base   *url.URL
	load   [loadConnections]*http.Client // requests of the load, see Send
	stream atomic.Pointer[http.Client]   // watches, on connections of their own
	Typed  kubernetes.Interface
	agent  string
	logins *logins // nil where no program logs in

	Patience time.Duration // bounds the retries of a request; 0 is Patience

	Answers  atomic.Int64 // counts answers to all requests but watches
	Worked   atomic.Int64 // counts the answers below 500
	Wanted   atomic.Int64 // counts requested objects that are neither made nor refused yet
	inFlight atomic.Int64

	discovering sync.Mutex
	discovered  meta.RESTMapper // nil before the first discovery
}

const ProtobufType = "application/vnd.kubernetes.protobuf" // media type of the API

// RequestTimeout bounds one request of the load, as the API server does; kubectl has no bound.
const RequestTimeout = time.Minute

// NewClient makes a client with the user agent agent. It sends no request.
func NewClient(config *rest.Config, agent string) (*Client, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = agent
	// The engine bounds the load, and the set-up must not wait.
	config.QPS, config.Burst = -1, 0
	config.Timeout = 0
	proxy := config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return masking{wrapped{route{wrapped{next}, proxy}}} })
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("server address %q: %w", config.Host, err)
	}
	c := &Client{Config: config, Base: base, agent: agent}
	if config.ExecProvider != nil {
		c.logins = &logins{client: c, program: config.ExecProvider.Command, turn: make(chan struct{}, 1)}
	}
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

// httpClient makes a client with its own connections: client-go shares transports of equal
// configurations, but none with an own dialer.
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
		return ahead(conn)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("make transport: %w", err)
	}
	return &http.Client{Transport: c.logins.over(transport)}, nil
}

// RenewStream gives new connections to watches that begin from now on: the present ones seem dead.
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

// Close closes idle connections.
func (c *Client) Close() {
	for _, l := range c.load {
		l.CloseIdleConnections()
	}
	c.stream.Load().CloseIdleConnections()
}

// Reply holds the answer to one request.
type Reply struct {
	Code   int
	Body   []byte
	Header http.Header

	creates bool // the request creates an object
}

// creates reports whether a request creates an object. Evictions are posted, but create none.
func creates(r *http.Request) bool {
	return r.Method == http.MethodPost && !strings.HasSuffix(r.URL.Path, "/eviction")
}

// Level returns the UID of the request's priority level, "" where the server does not say.
func (r Reply) Level() string { return r.Header.Get("X-Kubernetes-PF-PriorityLevel-UID") }

// Do sends a request patiently and reads the answer into buf. After an error its effect is unknown.
func (c *Client) Do(ctx context.Context, method, path string, query url.Values, contentType string, body []byte, buf *bytes.Buffer) (Reply, error) {
	request, err := c.Request(ctx, method, path, query, contentType, body)
	if err != nil {
		return Reply{}, err
	}
	return c.Send(request, buf)
}

// Try does a single attempt; see Do.
func (c *Client) Try(ctx context.Context, method, path string, query url.Values, contentType string, body []byte, buf *bytes.Buffer) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	request, err := c.Request(ctx, method, path, query, contentType, body)
	if err != nil {
		return Reply{}, err
	}
	return c.attempt(request, buf, 0)
}

// Call calls Do without a body.
func (c *Client) Call(ctx context.Context, method, path string, query url.Values) (Reply, error) {
	return c.Do(ctx, method, path, query, "", nil, new(bytes.Buffer))
}

// An API server serves 100 requests at once per connection; the next is used once each has half as many.
const (
	loadConnections = 8
	perConnection   = 50
)

// attempt sends a request once and reads its answer into buf, at most one byte beyond most; 0 is any.
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

// Request builds a request for Send.
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

// RetryAfter returns the pause that an answer asks for, 0 for none. The API server sends whole seconds.
func (r Reply) RetryAfter() time.Duration {
	s, err := strconv.Atoi(r.Header.Get("Retry-After"))
	if err != nil || s < 0 {
		return 0
	}
	return time.Duration(s) * time.Second
}

// ErrBut returns Err, or nil for the given codes.
func (r Reply) ErrBut(codes ...int) error {
	if slices.Contains(codes, r.Code) {
		return nil
	}
	return r.Err()
}

// Err returns the error of an answer with a code of 400 or more.
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
		// A server answers in plain text for a group that it does not have.
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: text}}
	}
	return errors.New(text)
}

// Transient reports whether the request may succeed later. A full store stays full until somebody acts.
func (r Reply) Transient() bool {
	return !bytes.Contains(r.Body, []byte("mvcc: database space exceeded")) && slices.Contains([]int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout}, r.Code)
}

// Overtaken reports whether a creation failed since somebody changed another object, such as the use of a
// quota: a retry may succeed. A taken name has another reason.
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

// Denied reports whether the user lacks the right, as opposed to a quota or policy that refuses.
func (r Reply) Denied() bool {
	if r.Code == http.StatusUnauthorized {
		return true
	}
	return r.Code == http.StatusForbidden && strings.Contains(r.Err().Error(), " cannot ") && strings.Contains(r.Err().Error(), " resource ")
}

// UnreachableError says that the server gives no answers at all.
type UnreachableError struct {
	Server string
	Err    error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the cluster at %s cannot be reached: %v", e.Server, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Unreachable turns network errors into an UnreachableError, and adds advice to errors that no retry helps.
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

// Exemption reports whether the user is exempt from priority and fairness, so that the load can starve
// others; nil is unknown.
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

// PriorityLevels returns the names of priority levels by UID, nil where the user may not list them.
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

// ClockOffset returns the server's clock less ours in seconds, by an answer's date; nil without one.
func ClockOffset(header http.Header, before, after time.Time) *float64 {
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return nil
	}
	// The header has whole seconds: the mean of the truth is half a second later.
	middle := before.Add(after.Sub(before) / 2)
	return new(date.Add(500 * time.Millisecond).Sub(middle).Seconds())
}

// Probe gets a health path of the server on a new connection, and returns the code of the answer.
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

// Know sets the result of discovery, so that the server is not asked.
func (c *Client) Know(mapper meta.RESTMapper) { c.discovered = mapper }

// Mapper returns the mapping of kinds to resources. It discovers the API once.
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

// InJSON reads an object as JSON into into; with a patch that is not nil it merges that first.
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

// Settle returns a creation's error, but nil if the object exists and is this run's: an answer was lost.
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
	o := new(metav1.PartialObjectMetadata)
	raw, err := OpenEnvelope(body)
	if err != nil {
		return o, json.Unmarshal(body, o) // a custom resource
	}
	return o, o.Unmarshal(raw)
}

// ObjectName returns namespace/name, or the name without a namespace.
func ObjectName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Collection returns the path of a resource's objects, in a namespace if it is not "".
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

// VersionNumber returns a resource version as a number, 0 where it is not one.
func VersionNumber[T string | []byte](version T) (n uint64) {
	for i := range len(version) {
		d := version[i]
		if d < '0' || d > '9' || n > (math.MaxUint64-9)/10 {
			return 0
		}
		n = 10*n + uint64(d-'0')
	}
	return n
}

// PodPath returns the path of the pod "namespace/name".
func PodPath(pod string) string {
	namespace, name, _ := strings.Cut(pod, "/")
	return "/api/v1/namespaces/" + namespace + "/pods/" + name
}

// OutOfReachError says that a cluster stopped answering during a run.
type OutOfReachError struct {
	Server   string
	Patience time.Duration // the time of retries
	Last     string        // the last failure
}

// OutOfReach reports that waiting for an answer is pointless; see system.Outlive.
func (e *OutOfReachError) OutOfReach() bool { return true }

func (e *OutOfReachError) Error() string {
	return fmt.Sprintf("API server %s is out of reach: no answer for %v (%s)", e.Server, e.Patience, e.Last)
}

// InParallel calls work for 0 <= i < n from several goroutines, at a bounded rate (0 is any), until an error.
func InParallel(ctx context.Context, n, workers int, rate float64, work func(context.Context, int) error) error {
	group, going := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	var pace <-chan time.Time
	if rate > 0 {
		ticker := time.NewTicker(max(1, time.Duration(float64(time.Second)/rate)))
		defer ticker.Stop()
		pace = ticker.C
	}
	for i := range n {
		if pace != nil && i > 0 {
			select {
			case <-pace:
			case <-going.Done():
			}
		}
		if going.Err() != nil {
			break
		}
		group.Go(func() error { return work(going, i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}
