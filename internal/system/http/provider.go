// Package http loads somebody's server with a user's list of requests, and sees nothing but its answers.
package http

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/streams"
	"plimsoll.dev/plimsoll/internal/text/size"
)

// The axes that a server can be raised along.
const (
	axisConnections = "connections"
	axisRate        = "rate"
)

const sourceLoad = "generator" // names what is read of the generator, among the sources of samples

const name = "http" // of the target

// requests returns the kind of object of an HTTP load.
func requests() record.ObjectKind {
	return record.ObjectKind{
		Object: record.Noun{One: "request", Many: "requests"},
		Milestones: []record.Milestone{
			{Name: load.Connected, Owner: "listener"}, {Name: load.Secured, Owner: "TLS handshake"}, {Name: load.Response, Owner: "server"},
		},
		There:    load.Response,
		Measures: []record.Measure{record.RequestErrors(0)},
		Metrics:  []record.Metric{record.AchievedRate("requests answered per second")},
		Bounds:   []record.Bound{{Name: "generator", What: "the processor of the generator", Source: sourceLoad, Value: "demand", Full: 0.9, Generator: true}},
	}
}

// listFact tells what was asked for.
func listFact(digest string) record.Fact {
	return record.Fact{Name: "requests", What: "what was asked for, by its digest", Value: digest, Bearing: record.Refuses}
}

// Provider opens servers that are not ours.
type Provider struct{}

// Declare implements system.Provider.
func (Provider) Declare() workload.Target {
	kind := requests()
	return workload.Target{Name: name, Kind: kind, Files: []string{"urls", "ca"}, Axes: map[string]workload.TargetAxis{
		axisConnections: {Loop: workload.Closed, Stream: &kind}, axisRate: {Loop: workload.Open, Stream: &kind},
	}, Facts: []record.Fact{listFact("")}, Takes: map[string]string{"yes": "load the server without asking", "ignore-health": "load it though a request failed before the load"}}
}

// Needs implements system.Provider: it runs no program.
func (Provider) Needs() []proc.Program { return nil }

// Outline implements system.Provider: nothing is made there, but for what the requests make.
func (Provider) Outline(_ context.Context, r system.Request) ([]system.Change, error) {
	if r.Workload == nil {
		return []system.Change{}, nil
	}
	s := &session{Session: local.Session{Request: r}}
	if err := s.read(); err != nil {
		return nil, err
	}
	return []system.Change{{Action: system.ChangeIt, What: s.extent() + ": whatever these requests change there"}}, nil
}

// Open implements system.Provider.
func (Provider) Open(ctx context.Context, r system.Request) (system.Session, error) {
	s := &session{Session: local.Session{Request: r}}
	if r.Workload == nil {
		return nil, system.Mistakef("name a workload: plimsoll check http --set server=URL", "which server is not said")
	}
	if err := s.read(); err != nil {
		return nil, err
	}
	return s, s.server.find(ctx)
}

type session struct {
	local.Session
	server server
	arms   map[string]settings
	most   float64 // requests a second, in any arm
}

type settings struct {
	plan        load.Plan
	connections int
	digest      string
}

// read reads what the plan says. Nothing is asked of the server.
func (s *session) read() error {
	s.arms = make(map[string]settings)
	return s.EachArm(func(arm string, given map[string]string) error {
		p, err := s.Resolve(given)
		if err != nil {
			return err
		}
		server, err := parseServer(p.Get("server"))
		if err != nil {
			return err
		}
		if arm != "" && server.String() != s.server.String() {
			return system.ParamMistake("server", "compare two runs: plimsoll compare", "an arm cannot be another server than the one that is confirmed, %s", s.server)
		}
		s.server = server
		one, err := settingsOf(p, server, s.Host)
		if err != nil {
			return err
		}
		if s.Plan.Axis.Name == axisRate {
			if one.plan.Streams > 1 {
				return system.ParamMistake("streams", "the axis connections", "a schedule sends each request on a connection that has none under way")
			}
			for _, level := range s.Plan.Levels() {
				if level > one.plan.Pace {
					return system.ParamMistake("maxRate", "a higher one, if the server may be loaded so: --set maxRate="+strconv.FormatFloat(level, 'g', -1, 64),
						"the plan goes up to %g requests/s, and the server is asked for %g at most", level, one.plan.Pace)
				}
			}
		}
		s.most = max(s.most, one.plan.Pace)
		s.arms[arm] = one
		return nil
	})
}

func settingsOf(p workload.Params, at server, host system.Host) (settings, error) {
	var one settings
	hosts, err := readList(p.Get("urls"), at.name)
	if err == nil {
		one.connections, err = local.Connections(int(p.Int("connections")))
	}
	if err != nil {
		return one, err
	}
	one.digest = digest(hosts)
	one.plan = load.Plan{
		Hosts: hosts, Close: !p.Flag("keepAlive"), Retry: p.Get("retry") == "browser", Random: p.Get("arrivals") == "random",
		HTTP2: p.Get("http") == "2", Streams: int(p.Int("streams")), Pace: float64(p.Int("maxRate")), Record: int(p.Int("recordRequests")),
	}
	if one.plan.Streams > 1 && (!one.plan.HTTP2 || one.plan.Close) {
		return one, system.ParamMistake("streams", "http=2 and keepAlive=true", "only connections of HTTP/2 that are kept take %d requests at once", one.plan.Streams)
	}
	if one.plan.HTTP2 && !at.secure {
		return one, system.ParamMistake("http", "server=https://...", "HTTP/2 is spoken by TLS alone, and the server is %s", at)
	}
	if !at.secure {
		return one, nil
	}
	one.plan.TLS = &tls.Config{InsecureSkipVerify: !p.Flag("verify"), Time: host.Now} //nolint:gosec // the user says so
	if file := p.Get("ca"); file != "" {
		text, err := size.ReadFile(file)
		if err != nil {
			return one, system.ParamMistake("ca", "give a file of certificates in PEM", "%w", err)
		}
		one.plan.TLS.RootCAs = x509.NewCertPool()
		if !one.plan.TLS.RootCAs.AppendCertsFromPEM(text) {
			return one, system.ParamMistake("ca", "give a file of certificates in PEM", "%s has no certificate", file)
		}
	}
	if p.Flag("resumption") {
		one.plan.TLS.ClientSessionCache = tls.NewLRUClientSessionCache(2 * len(hosts))
	}
	return one, nil
}

// extent says what is asked of the server.
func (s *session) extent() string {
	n := 0
	for _, h := range s.arms[""].plan.Hosts {
		n += len(h.Requests)
	}
	return fmt.Sprintf("%s, with %s, at most %g a second", s.server, record.Noun{One: "request", Many: "requests"}.Count(n), s.most)
}

// Consent implements system.Session: the server is not ours.
func (s *session) Consent(context.Context) (*system.Consent, error) {
	c := &system.Consent{System: s.extent() + " (" + s.server.address + ")", Why: "is not a server of plimsoll's"}
	for _, h := range s.arms[""].plan.Hosts {
		for _, r := range h.Requests {
			if r.Method != "GET" && r.Method != "HEAD" && r.Method != "OPTIONS" {
				c.Warnings = append(c.Warnings, fmt.Sprintf("%s %s may change what the server holds", r.Method, r.Path))
			}
		}
	}
	if n := len(c.Warnings); n > 3 {
		c.Warnings = append(c.Warnings[:3], fmt.Sprintf("and %d more requests that may", n-3))
	}
	return c, nil
}

// Sweep implements system.Session: nothing was made.
func (*session) Sweep(context.Context) error { return nil }

// Prepare implements system.Session.
func (s *session) Prepare(context.Context) error {
	for name, one := range s.arms {
		cpus, _ := proc.Processors(0) // none known is one
		one.plan.Address, one.plan.Threads = s.server.address, max(1, len(cpus)/2)
		s.arms[name] = one
	}
	return nil
}

const probed = 20 // requests that are tried before the load

// Survey implements system.Session: requests that change nothing are tried once.
func (s *session) Survey(_ context.Context, _ bool) (system.Survey, error) {
	found := system.Survey{Target: s.naming(), Server: s.server.String(), Kind: requests(), Findings: []record.HealthFinding{}}
	s.probe(s.arms[""].plan, func(request, failed string) bool {
		found.Findings = append(found.Findings, record.HealthFinding{
			Severity: record.SeverityError, What: request, Text: "the request failed before any load: " + failed, Stops: true,
			Hint: remedy(failed),
		})
		return true
	})
	return found, nil
}

// remedy returns the hint for a request that failed before the load.
func remedy(failed string) string {
	switch status, isStatus := strings.CutPrefix(failed, load.FailedStatus); {
	case status == "429" || status == "503":
		return "the server sheds load already: wait, or ask its owner"
	case isStatus:
		return "if that is right, say so in the list of urls: status: " + status
	case failed == load.FailedTLS:
		return "give its certificate authority with --set ca=FILE, or trust any with --set verify=false"
	case failed == load.FailedRefused || failed == record.FailedTimeout:
		return "is the server running, and can this machine reach it?"
	}
	return "is this an HTTP server? Look at the answer with: curl -i"
}

// probe tries the first requests that change nothing, and calls failure for failed ones until false.
func (s *session) probe(p load.Plan, failure func(request, failed string) (more bool)) {
	left := probed
	clock := record.StartClock(s.Now)
	p.Address = s.server.address
	for _, h := range p.Hosts {
		for _, r := range h.Requests {
			if left--; left < 0 || r.Method != "GET" && r.Method != "HEAD" {
				continue
			}
			p.Hosts = []load.Host{{Name: h.Name, Weight: 1, Requests: []load.Request{r}}}
			failed := load.NewOne(p, clock.Now).Ask(probeBound)
			if failed != "" && !failure(r.Method+" "+h.Name+r.Path, failed) {
				return
			}
		}
	}
}

func (s *session) naming() record.TargetNaming {
	return record.TargetNaming{Kind: name, Name: s.server.String()}
}

// Bounds implements system.Session: a server that is not ours is guarded.
func (s *session) Bounds() system.Bounds {
	most := 1
	for _, one := range s.arms {
		most = max(most, one.connections)
	}
	return system.Bounds{
		Pace: plan.Pace{Max: true}, MaxInFlight: most, MaxInFlightOpen: most,
		Guards: plan.Guards{record.MeasureRequestErrors: plan.Bound{Value: mostErrors, Percent: true}},
	}
}

// Target implements system.Session.
func (s *session) Target(_ context.Context, rec system.Recorder) (system.Instance, error) {
	i := &instance{session: s}
	i.Rig = local.Rig[settings]{Rec: rec, Seed: s.Plan.Seed, Arms: s.arms, Start: i.start}
	s.Loads(i)
	return i, nil
}

const (
	probeBound = 10 * time.Second // for a request that is tried before the load
	mostErrors = 50               // percent of the latest requests that may fail before the load ends
	atPace     = 0.9              // of the pace, from which on it bounds a closed loop
)

// instance loads the server.
type instance struct {
	*session
	local.Rig[settings]
	last atomic.Pointer[settings] // of the last step, nil before the first one
}

type step struct {
	local.Requests
	here   bool // the server is one of this machine's
	sent   int  // after the warm-up
	at     record.Micros
	wanted float64 // seconds that this program ran or waited for a processor until then
}

// Describe implements system.Target.
func (i *instance) Describe(context.Context) (record.Environment, error) {
	return record.Environment{
		Start: i.Rec.Clock.Start(), Target: i.naming(),
		Fidelity: local.Fidelity(fmt.Sprintf("%s (%s) is real and not plimsoll's: nothing was seen of it but its answers", i.server, i.server.address)),
		Facts:    []record.Fact{listFact(i.arms[""].digest)},
	}, nil
}

func (i *instance) start(_ context.Context, one settings, _ *system.Level) (local.Load, error) {
	i.last.Store(&one)
	s := &step{here: i.server.here}
	s.Requests = local.Requests{Plan: one.plan, Client: "this machine", Sees: s.sees, Read: s.read, Stop: func() error { return nil }}
	return s, i.Begin(&s.Requests)
}

// sees counts the requests that are judged.
func (s *step) sees(w *record.Window) error {
	if !w.WarmUp {
		s.sent += w.Sent
	}
	return nil
}

// Stream implements local.Load.
func (s *step) Stream(ctx context.Context, schedule streams.Schedule) error {
	err := s.Requests.Stream(ctx, schedule)
	if rate := float64(s.sent) / schedule.Hold.Seconds(); !schedule.Open && rate > atPace*s.Plan.Pace {
		s.Note("the load was bound by maxRate, at most %g requests a second, and not by the server", s.Plan.Pace)
	}
	return err
}

// read reads what the generator uses, and the machine that it runs on.
func (s *step) read() []record.Reading {
	machine := telemetry.Reading()
	if s.here {
		machine.Values["targetUnread"] = 1 // the server is one of the programs of this machine
	}
	now, wanted, values := s.Rec.Clock.Now(), proc.Wanted(os.Getpid()), s.Counts().Values()
	if seconds := (now - s.at).Seconds(); s.at > 0 && seconds > 0.1 {
		values["demand"] = min((wanted-s.wanted)/seconds/float64(s.Plan.Threads), 1)
	}
	s.at, s.wanted = now, wanted
	return []record.Reading{machine, {Source: sourceLoad, Values: values}}
}

// Health implements system.Target: after a step that a guard stopped, the server has to answer again.
func (i *instance) Health(context.Context) (map[string]float64, error) {
	var err error
	if last := i.last.Load(); last != nil && i.Current() == nil {
		i.probe(last.plan, func(request, failed string) bool {
			err = fmt.Errorf("the server does not answer %s: %s", request, failed)
			return false
		})
	}
	return map[string]float64{}, err
}

// Renew implements system.Session.
func (*session) Renew(context.Context) error {
	return errors.New("a server that is not plimsoll's cannot be made again")
}
