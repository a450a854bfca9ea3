package metrics

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/value"
	walrecord "github.com/prometheus/prometheus/tsdb/record"
)

// Remote is a Prometheus of somebody else, or alike, whose samples of a step a run keeps like scrapes.
type Remote struct {
	URL       string            // without a secret
	Transport http.RoundTripper // adds the credentials
	Selectors []string          // of the wanted series
}

// Access holds credentials for a Remote and how to verify it; zero trusts the machine's certificates.
type Access struct {
	Token          string // a bearer's
	User, Password string
	CA             []byte // further trusted certificates in PEM
	Insecure       bool   // trusts any certificate
}

// Transport returns a transport with the credentials, for one host alone.
func (a Access) Transport() (http.RoundTripper, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{InsecureSkipVerify: a.Insecure}
	if len(a.CA) > 0 {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(a.CA) {
			return nil, errors.New("there is no certificate in PEM in it")
		}
		t.TLSClientConfig.RootCAs = roots
	}
	return authorized{t, a}, nil
}

type authorized struct {
	http.RoundTripper
	Access
}

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	switch {
	case r.Response != nil: // a redirection, which may lead to another host
		return nil, errors.New("it redirects")
	case a.Token != "":
		r.Header.Set("Authorization", "Bearer "+a.Token)
	case a.User != "":
		r.SetBasicAuth(a.User, a.Password)
	}
	return a.RoundTripper.RoundTrip(r)
}

const (
	remoteJob     = "remote-prometheus" // of a Remote as an endpoint
	remoteBefore  = time.Minute         // before the run's start, so that a first step has samples
	remoteLate    = 30 * time.Second    // the longest delay of a sample on its way to a Remote
	remoteTimeout = 15 * time.Second    // for all answers
	mostAhead     = 2 * time.Second     // tolerated difference of clocks
)

func (r *Remote) host() string {
	if u, err := url.Parse(r.URL); err == nil && u.Host != "" {
		return u.Host
	}
	return "it"
}

type bounded struct {
	http.RoundTripper
	most int64
}

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{&boundedReader{io.LimitedReader{R: answer.Body, N: b.most + 1}, b.most}, answer.Body}
	}
	return answer, err
}

type boundedReader struct {
	io.LimitedReader
	most int64
}

func (r *boundedReader) Read(p []byte) (int, error) {
	n, err := r.LimitedReader.Read(p)
	if r.N <= 0 {
		return n, fmt.Errorf("it answered more than %d MiB", r.most>>20)
	}
	return n, err
}

// Fetch asks the Remote for new samples until a time. A failure is a gap, and the next call asks again.
func (s *Scraper) Fetch(ctx context.Context, until time.Time) {
	if s.Remote == nil || ctx.Err() != nil {
		return
	}
	s.rounds.Lock()
	defer s.rounds.Unlock()
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	if s.remote == nil {
		s.remote = &source{Endpoint: Endpoint{Job: remoteJob, Instance: s.Remote.host()}, refs: make(map[string]int), there: true}
		s.fetched = until.Add(-remoteBefore)
		if !s.Start.IsZero() {
			s.fetched = s.Start.Add(-remoteBefore)
		}
	}
	began := s.Now()
	found, err := s.ask(ctx, until)
	took := s.Now().Sub(began)
	if outer.Err() != nil {
		return // the run has ended
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.remote
	if err != nil {
		text := strings.ReplaceAll(err.Error(), s.Remote.URL, s.Remote.host())
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			text = fmt.Sprintf("it did not answer within %v", remoteTimeout)
		}
		s.say("remote", "the Prometheus at %s could not be asked at %s: %s; what depends on it is unknown", e.Instance, began.UTC().Format(time.TimeOnly), text)
		s.write(e, until.UnixMilli(), took, 0, s.Secrets.Message(text))
		return
	}
	s.fetched = until
	s.keep(e, found, until, took)
}

// fetched is a series of a Remote, with its samples since the last time, by time.
type fetched struct {
	model.Metric
	values []model.SamplePair
	ended  bool
}

func (s *Scraper) ask(ctx context.Context, until time.Time) (map[string]*fetched, error) {
	remote, err := s.Remote.client(s.most)
	if err != nil {
		return nil, err
	}
	query := func(text string, at time.Time) (model.Value, error) {
		v, warnings, err := remote.Query(ctx, text, at)
		if of, ok := errors.AsType[*v1.Error](err); ok && of.Type == v1.ErrClient {
			return nil, fmt.Errorf("it refused: %s", of.Msg)
		}
		if err == nil && len(warnings) > 0 {
			err = fmt.Errorf("its answer is partial: %s", strings.Join(warnings, "; "))
		}
		return v, err
	}
	if !s.clocked {
		now, err := query("time()", time.Time{})
		if err != nil {
			return nil, err
		}
		if of, ok := now.(*model.Scalar); ok {
			s.clocked = true
			if ahead := of.Timestamp.Time().Sub(s.Now()); ahead.Abs() > mostAhead {
				s.mu.Lock()
				s.say("clock", "the clock of the Prometheus at %s is %.0f s ahead of this machine's: its samples are by so much at the wrong time", s.Remote.host(), ahead.Seconds())
				s.mu.Unlock()
			}
		}
	}
	found := make(map[string]*fetched)
	window := until.Sub(s.fetched) + remoteLate
	for _, selector := range s.Remote.Selectors {
		v, err := query(selector+"["+rangeText(window)+"]", until)
		if err != nil {
			return nil, err
		}
		all, ok := v.(model.Matrix)
		if !ok {
			return nil, fmt.Errorf("it answered a %s for %s", v.Type(), selector)
		}
		for _, one := range all {
			found[one.Metric.String()] = &fetched{Metric: one.Metric, values: one.Values, ended: true}
		}
		if v, err = query(selector, until); err != nil {
			return nil, err
		}
		now, _ := v.(model.Vector)
		for _, one := range now {
			if of := found[one.Metric.String()]; of != nil {
				of.ended = false
			}
		}
	}
	return found, nil
}

func (s *Scraper) keep(e *source, found map[string]*fetched, until time.Time, took time.Duration) {
	var apart []int64
	for _, key := range slices.Sorted(maps.Keys(found)) {
		of := found[key]
		place, known := e.refs[key]
		if !known {
			if s.series >= s.MaxSeries {
				s.say("series", "there are more than %d series of metrics: further ones are left out (--max-series)", s.MaxSeries)
				break
			}
			place = s.defineRemote(e, of.Metric, key)
		}
		x := &e.series[place]
		values := slices.DeleteFunc(of.values, func(p model.SamplePair) bool { return int64(p.Timestamp) <= x.time })
		for i, one := range values {
			if i > 0 {
				apart = append(apart, int64(one.Timestamp-values[i-1].Timestamp))
			}
			x.time, x.live = int64(one.Timestamp), true
			s.out = append(s.out, walrecord.RefSample{Ref: x.ref, T: x.time, V: float64(one.Value)})
		}
		if of.ended && x.live {
			x.time, x.live = max(until.UnixMilli(), x.time+1), false
			s.out = append(s.out, walrecord.RefSample{Ref: x.ref, T: x.time, V: math.Float64frombits(value.StaleNaN)})
		}
	}
	if slices.Sort(apart); len(apart) > 0 {
		if each := time.Duration(apart[len(apart)/2]) * time.Millisecond; each > s.Every*3/2 {
			s.say("sparse", "the Prometheus at %s has a sample each %v: a hold that is not much longer has no rate", s.Remote.host(), each.Round(time.Second))
		}
	}
	s.write(e, until.UnixMilli(), took, len(s.out), "")
}

// defineRemote defines a new series of a Remote, which has labels of its own.
func (s *Scraper) defineRemote(e *source, labels model.Metric, key string) int {
	list := []string{}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, string(name), s.Secrets.Message(string(labels[name])))
	}
	return s.number(e, list, key, true)
}
