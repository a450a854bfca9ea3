// Package router loads a real HAProxy, in the shape of OpenShift's router, with its own generator. A link
// of limited rate is a network namespace without a name. It holds the servers, too, so that the link
// carries what clients send and get, as the published arithmetic counts it.
package router

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"

	"plimsoll.dev/plimsoll/internal/advise/tune/host"
	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/internal/system/local/backend"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/router/haproxy"
)

// Provider opens routers.
type Provider struct{}

// Name is the target's name.
const Name = "router"

func rooms() local.Rooms {
	return local.Rooms{Target: Name, Kind: "routers", Elsewhere: "plimsoll-router-"}
}

// SweepHost implements system.Sweeper.
func (Provider) SweepHost(ctx context.Context, h system.Host, removes func(run string) bool) ([]system.Leftover, error) {
	return rooms().SweepHost(ctx, h, removes)
}

// Declare implements system.Provider.
func (Provider) Declare() workload.Target {
	kind := requests()
	return workload.Target{Name: Name, Kind: kind, Programs: []string{"haproxy"}, Files: []string{"template", "hosts", "certificate"}, Axes: map[string]workload.TargetAxis{
		axisConnections: {Loop: workload.Closed, Stream: &kind}, axisRate: {Loop: workload.Open, Stream: &kind},
		axisIdle: {Loop: workload.Closed, Stream: &kind}, axisRoutes: {Loop: workload.Closed, Stream: &kind},
	}, Facts: append(record.Versions(map[string]string{"haproxy": "", "haproxy TLS": "", "nginx": ""}), record.RunsAs("haproxy", ""), record.RunsAs("the servers", "")),
		Takes: map[string]string{"scrape": "", "max-series": ""}}
}

// Needs implements system.Provider.
func (Provider) Needs() []proc.Program {
	return []proc.Program{haproxy.Program(), backend.NginxProgram()}
}

// Outline implements system.Provider.
func (Provider) Outline(ctx context.Context, r system.Request) ([]system.Change, error) {
	if err := outlined(ctx, r); err != nil {
		return nil, err
	}
	each := "step"
	if len(r.Plan.Arms) > 0 {
		each = "run of an arm"
	}
	return []system.Change{
		{Action: system.Make, What: "an HAProxy of its own, on addresses of the loopback interface", Each: each},
		{Action: system.Make, What: "servers with pages behind it, and a certificate", Each: each},
	}, nil
}

// outlined checks a plan as a run does, in a temporary directory, and runs no foreign HAProxy.
func outlined(ctx context.Context, r system.Request) (err error) {
	if r.Workload == nil {
		return nil
	}
	l, err := readLimits()
	if err != nil {
		return err
	}
	s := &session{Session: local.Session{Request: r, Tied: proc.NewTie()}, limits: l}
	defer s.Tied.Close()
	own := *r.Plan // what is assumed is assumed again by the run
	own.Params = maps.Clone(own.Params)
	s.Plan = &own
	s.assumeAll()
	if s.dir, err = os.MkdirTemp("", "plimsoll-outline-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	user := proc.Least()
	if user.ID != proc.Self().ID {
		err = errors.Join(os.Chown(s.dir, -1, user.Group), os.Chmod(s.dir, 0o750))
	}
	if err = errors.Join(err, haproxy.Prepare(s.dir, user)); err != nil {
		return err
	}
	return s.EachArm(func(_ string, given map[string]string) error {
		one, path, err := s.read(given)
		if err != nil {
			return err
		}
		one.rate = 0 // no link is made
		if path == "" || r.Trusted {
			err = one.find(ctx, path)
			if _, lacking := errors.AsType[*proc.MissingError](err); lacking {
				one.binary = haproxy.Binary{}
			} else if err != nil {
				return err
			}
		}
		return s.check(ctx, one)
	})
}

// Open implements system.Provider.
func (Provider) Open(ctx context.Context, r system.Request) (system.Session, error) {
	l, err := readLimits()
	if err != nil {
		return nil, err
	}
	return &session{Session: local.Session{Request: r, Rooms: rooms(), Tied: proc.NewTie()}, limits: l}, nil
}

type session struct {
	local.Session
	limits limits
	dir    string // that HAProxy and its servers work in
	arms   map[string]settings
}

// Endpoints implements system.Publisher: HAProxy's exporter, while a step is made.
func (s *session) Endpoints(context.Context) ([]metrics.Endpoint, error) {
	i, is := s.Loaded().(*instance)
	if !is {
		return nil, nil
	}
	d, is := i.Current().(*step)
	if !is || !d.router.Publishes {
		return nil, nil
	}
	return []metrics.Endpoint{{Job: sourceRouter, Instance: sourceRouter, URL: haproxy.MetricsURL(len(d.router.Routes)), Transport: d.proxy.Stats().Metrics()}}, nil
}

// Prepare implements system.Session.
func (s *session) Prepare(ctx context.Context) error {
	s.arms = make(map[string]settings)
	s.assumeAll()
	return s.EachArm(func(arm string, given map[string]string) error {
		one, path, err := s.read(given)
		if err == nil {
			err = one.find(ctx, path)
		}
		if err != nil {
			return err
		}
		one.router.Publishes = one.binary.Publishes && one.router.Template == "" && s.Plan.Scrape.Every > 0
		if err := s.MakeRoom(); err != nil {
			return err
		}
		user := proc.Least()
		if s.dir, err = s.MakeWorkplace(user); err == nil {
			err = haproxy.Prepare(s.dir, user)
		}
		if err != nil {
			return err
		}
		s.arms[arm] = one
		// What HAProxy itself refuses is refused before any load.
		return s.check(ctx, one)
	})
}

// assumeAll gives the plan what follows from what it says.
func (s *session) assumeAll() {
	if s.asksForTLS() {
		s.assume("termination", string(haproxy.Edge))
	}
	if s.Plan.Axis.Name == axisRoutes && !s.says("event") {
		s.assume("event", string(evRoute))
	}
}

// asksForTLS reports whether the plan says how TLS is to be but not where it ends: that changes nothing.
func (s *session) asksForTLS() bool {
	return s.says("resumption", "tlsVersion", "certificate", "certificates") && !s.says("termination")
}

// says reports whether the plan or an arm of it gives one of some parameters.
func (s *session) says(params ...string) bool {
	return slices.ContainsFunc(append([]plan.Arm{{Params: s.Plan.Params}}, s.Plan.Arms...), func(arm plan.Arm) bool {
		return slices.ContainsFunc(params, func(name string) bool { _, given := arm.Params[name]; return given })
	})
}

// assume gives the plan a parameter that it does not say.
func (s *session) assume(param, value string) {
	if s.Plan.Params == nil {
		s.Plan.Params = make(plan.Params)
	}
	s.Plan.Params[param] = value
}

// read checks what an arm and its files say, and runs nothing. path is the HAProxy's, or "".
func (s *session) read(given map[string]string) (one settings, path string, err error) {
	most := slices.Max(append(s.Plan.Levels(), 0))
	switch s.Plan.Axis.Name {
	case axisIdle:
		given["idle"] = strconv.Itoa(int(most))
	case axisRoutes:
		if given["hosts"] != "" {
			return one, "", system.ParamMistake("hosts", "another axis, or no file", "the axis routes makes up as many hosts as it is at")
		}
		given["routes"] = strconv.Itoa(int(most))
	}
	params, err := s.Resolve(given)
	if err != nil {
		return one, "", err
	}
	if one, err = settingsOf(params, s.limits); err != nil {
		return one, "", err
	}
	if one.byNginx = params.Get("backend") == "nginx"; one.byNginx {
		if err := one.plainPages(); err != nil {
			return one, "", err
		}
	}
	if s.Plan.Axis.Name == axisRate && one.streams > 1 {
		return one, "", system.ParamMistake("streams", "the axis connections", "a schedule sends each request on a connection that has none under way")
	}
	if s.Plan.Axis.Name == axisConnections {
		if err := checkConnections("the level", int(most)+one.idle, s.limits.handles); err != nil {
			return one, "", err
		}
	}
	return one, params.Get("haproxy"), nil
}

func (s *settings) find(ctx context.Context, path string) (err error) {
	if s.byNginx {
		if s.nginx, err = backend.FindNginx(ctx); err != nil {
			return system.Lacking(err, "")
		}
	}
	if s.binary, err = haproxy.Find(ctx, path); err != nil {
		if path != "" {
			return system.ParamMistake("haproxy", "give the path of an HAProxy", "%w", err)
		}
		return system.Lacking(err, ", or give its path: --set haproxy=PATH")
	}
	return nil
}

// refused returns the mistake of a template that is refused.
func (s settings) refused(err error) error {
	if err == nil || s.router.Template == "" {
		return err
	}
	hint := ""
	if line, ok := errors.AsType[*haproxy.LineError](err); ok {
		hint = line.Hint
	}
	return system.ParamMistake("template", hint, "%s: %w", s.template, err)
}

// check reads the certificate, and has HAProxy read its configuration where one is known.
func (s *session) check(ctx context.Context, one settings) error {
	sys := &deployment{settings: one, dir: s.dir, host: s.Host, tied: s.Tied}
	if err := sys.draw(); err != nil {
		return err
	}
	// The kernel may not make links, and not let this user.
	if err := sys.connect(); err != nil {
		return &system.UnableError{Err: err, Hint: "run as root, on a kernel with veth and tbf; 'plimsoll tune router --run DIR --link RATE' computes what a link allows of a run without one"}
	}
	if sys.link != nil {
		defer sys.link.remove()
	}
	if err := sys.write(); err != nil {
		return err
	}
	if one.binary.Path == "" {
		return one.refused(haproxy.Allowed(sys.settings.router))
	}
	return one.refused(haproxy.Check(ctx, one.binary, s.dir, sys.settings.router, sys.how("HAProxy", nil)))
}

// Survey implements system.Session.
func (s *session) Survey(context.Context, bool) (system.Survey, error) {
	one := s.arms[""]
	return system.Survey{
		Target: naming(), Version: one.binary.Version, Kind: requests(),
		Findings: []record.HealthFinding{},
	}, nil
}

func naming() record.TargetNaming {
	return record.TargetNaming{Kind: Name, Name: "haproxy", Private: true}
}

// Bounds implements system.Session.
func (s *session) Bounds() system.Bounds {
	most := 0
	for _, one := range s.arms {
		most = max(most, one.connections)
	}
	return system.Bounds{Pace: plan.Pace{Max: true}, MaxInFlight: most, MaxInFlightOpen: most}
}

// Target implements system.Session.
func (s *session) Target(_ context.Context, rec system.Recorder) (system.Instance, error) {
	i := &instance{session: s}
	i.Rig = local.Rig[settings]{Rec: rec, Seed: s.Plan.Seed, Arms: s.arms, Start: i.start}
	s.Loads(i)
	return i, nil
}

// The axes that a router can be raised along.
const (
	axisConnections = "connections"
	axisRate        = "rate"
	axisIdle        = "idle"
	axisRoutes      = "routes"
)

// changed is reached by a step's event: a reload once the new process serves, a route once answered.
const changed = "Changed"

// Names of what is read of the parts, among the sources of samples.
const (
	sourceRouter  = "haproxy"
	sourceServers = "backend"
	sourceFigures = "haproxy figures" // what it reports of itself
	sourceLoad    = "generator"       // what its connections came to
	sourceChange  = "change"          // of what a plan changes under load
)

func requests() record.ObjectKind {
	return record.ObjectKind{
		Object: record.Noun{One: "request", Many: "requests"},
		Milestones: []record.Milestone{
			{Name: load.Connected, Owner: "listener"}, {Name: load.Secured, Owner: "TLS handshake"}, {Name: load.Response, Owner: "router and its servers"},
			{Name: changed, Owner: "HAProxy"},
		},
		There:        load.Response,
		FreshPerStep: true,
		Measures:     []record.Measure{record.RequestErrors(0)},
		Metrics: slices.Concat([]record.Metric{
			{
				Name: "requestsPerCPUSecond", Title: "requests per HAProxy CPU second", Unit: "/s", Help: "requests that HAProxy served for each second of CPU time that it used",
				LessIsWorse: true,
				Of:          record.Fold{Source: record.SourceStep, Value: record.ValueDone, Fold: record.FoldLast},
				Per:         &record.Fold{Source: sourceRouter, Value: record.ValueCPU, Fold: record.FoldDifference},
			},
			record.AchievedRate("requests answered per second"),
		}, record.UseOf(sourceRouter, "HAProxy"), []record.Metric{
			{Name: "change", Unit: "s", Help: "time that the event took: a reload until the new process serves, a route until its first right answer", Of: record.Fold{Source: sourceChange, Value: "seconds", Fold: record.FoldLast}},
		}),
		Charts: []record.Chart{
			{Title: "HAProxy: sessions per second", Source: sourceFigures, Values: []record.Value{{Key: "sessRate", Name: "new"}, {Key: "tlsRate", Name: "by TLS"}}},
			{Title: "HAProxy: connections", Source: sourceFigures, Values: []record.Value{
				{Key: "currConns", Name: "current"}, {Key: "backlog", Name: "waiting"}, {Key: "queue", Name: "queue"}, {Key: "idleHeld", Name: "idle"},
			}},
			{Title: "HAProxy: since its start", Source: sourceFigures, Values: []record.Value{
				{Key: "retries", Name: "retries"}, {Key: "denied", Name: "denied"}, {Key: "badRequests", Name: "bad"}, {Key: "serverErrors", Name: "no server"},
			}},
			{Title: "Link: share of its rate", Source: sourceFigures, Values: []record.Value{{Key: "linkShare", Name: "used"}}},
		},
		Bounds: []record.Bound{
			{Name: "maxconn", What: "HAProxy's maxconn: further connections waited in the listener's queue", Source: sourceFigures, Value: "currConns", Limit: "maxconn", Full: 0.8, Waiting: "backlog"},
			{Name: "server queue", What: "the queue of a server: requests waited for a place among its connections (maxconn of the server)", Source: sourceFigures, Value: "queueShare", Full: 0.5},
			{Name: "link", What: "the rate of the link to the router", Source: sourceFigures, Value: "linkShare", Full: 0.9},
			{Name: host.BoundProcessor, What: "HAProxy's processor time", Source: sourceFigures, Value: "busiestThread", Full: 0.9},
			// Before the servers, whose requests wait for the processor that the generator shares.
			{Name: "generator", What: "the processor of the generator", Source: sourceLoad, Value: "demand", Full: 0.9, Generator: true},
			{Name: "servers", What: "the servers: requests spent most of their time there", Source: sourceFigures, Value: "serverShare", Full: 0.7, Slow: true},
		},
	}
}
