// Package ingress loads pods, a service, an ingress, a route of a gateway or of OpenShift, or a URL, from pods of the
// cluster. The run makes the back ends, except for a URL. Instead of requests such pods also do IO on claims of a storage
// class.
package ingress

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/plan"
	own "plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
	"plimsoll.dev/plimsoll/internal/system/local/clients"
	"plimsoll.dev/plimsoll/internal/system/local/load"
)

const name = "ingress" // of the target

// The axes that it can be raised along.
const (
	axisRate        = "rate"
	axisConnections = "connections"
)

// The ways to the back ends.
const (
	viaPod     = "pod"  // their addresses
	viaHost    = "host" // likewise, in the network of their nodes
	viaService = "service"
	viaIngress = "ingress"
	viaGateway = "gateway"
	viaRoute   = "route"
	viaURL     = "url"
	viaClaim   = "claim" // no requests, but IO
)

// The places of back ends.
const (
	placeAny   = "any"   // away from the clients if possible
	placeSame  = "same"  // on a node with a client
	placeOther = "other" // on nodes without clients
)

const sourceClients = "clients" // source of the clients' readings

// requests returns the kind of object of the load.
func requests() record.ObjectKind {
	return record.ObjectKind{
		Object: record.Noun{One: "request", Many: "requests"}, Place: clientNoun(),
		Milestones: []record.Milestone{
			{Name: load.Connected, Owner: "listener"}, {Name: load.Secured, Owner: "TLS handshake"}, {Name: load.Response, Owner: "back end"},
			{Name: created, Owner: "API server"}, {Name: programmed, Owner: "what makes routes"}, {Name: changed, Owner: "what makes routes"},
		},
		There:    load.Response,
		Measures: []record.Measure{record.RequestErrors(0)},
		Metrics: append(controllerMetrics(), record.AchievedRate("requests answered per second"), changeMetric(), record.Metric{
			Name: "throughput", Unit: "Gbit/s", Help: "bits of right answers per second, with their heads", LessIsWorse: true,
			Of: record.Fold{Source: sourceClients, Value: "answeredGbit", Fold: record.FoldPerSecond},
		}),
		Bounds: []record.Bound{{Name: "clients", What: "the processor of a client", Source: sourceClients, Value: "demand", Full: mostDemand, Generator: true}},
	}
}

const mostDemand = 0.9 // of the processor time that a client may have, from which on it is the limit

func clientNoun() record.Noun { return record.Noun{One: "client", Many: "clients"} }

// facts returns the facts of the record, of the sites of all arms; a nil arm gives the declaration.
func facts(version string, one *settings, sites []*site, paths network) []record.Fact {
	if one == nil {
		one = new(settings)
	}
	var programmed time.Duration
	var controllers []string
	for _, s := range sites {
		programmed = max(programmed, s.programmed)
		if s.controller != "" {
			controllers = append(controllers, s.controller)
		}
	}
	slices.Sort(controllers)
	return []record.Fact{
		{Name: "kubernetes", What: "version of the API server", Value: version, Bearing: record.Refuses},
		{Name: "via", What: "way that requests take", Value: one.way(), Bearing: record.Refuses},
		{Name: "controller", What: "ingress controller", Value: strings.Join(slices.Compact(controllers), ", "), Bearing: record.Refuses},
		{Name: "back-ends", What: "pods that answer, and how", Value: one.backEndsText(), Bearing: record.Refuses},
		{Name: "network", What: "network plug-in of the nodes", Value: paths.plugIn, Bearing: record.MayExplain},
		{Name: "encapsulation", What: "how packets go from node to node", Value: paths.encapsulation, Bearing: record.MayExplain},
		{Name: "mtu", What: "MTU of the clients' interfaces, and the largest segment to the server", Value: paths.mtu, Unit: "bytes", Bearing: record.MayExplain},
		{Name: "programmed", What: "time until every client had a right answer, from its first request on", Value: strconv.FormatFloat(programmed.Seconds(), 'f', 3, 64), Unit: "s", Bearing: record.Noted},
	}
}

func clientFacts() []record.Fact {
	return []record.Fact{
		{Name: "client-node", What: "node of the client", Bearing: record.Noted},
		{Name: "client-zone", What: "zone of its node", Bearing: record.Noted},
		{Name: "client-cpu", What: "CPU limit of the client", Bearing: record.Refuses},
	}
}

// Provider opens clusters whose ways to back ends are loaded.
type Provider struct{}

// Declare implements system.Provider.
func (Provider) Declare() workload.Target {
	kind := requests()
	return workload.Target{
		Name: name, Kind: kind, Settings: func() own.Own { return new(kubernetes.Settings) },
		Axes: map[string]workload.TargetAxis{
			axisConnections: {Loop: workload.Closed, Stream: &kind}, axisRate: {Loop: workload.Open, Stream: &kind},
		},
		Facts: slices.Concat(facts("", nil, nil, network{}), clientFacts()),
		Takes: map[string]string{
			"wait": "wait until no other run loads the cluster, or until it counts as dead", "yes": "load a cluster that is not a lab, or a URL, without asking",
			"ignore-health": "load the cluster even if its API server or all of its nodes are not ready",
		},
	}
}

// Needs implements system.Provider.
func (Provider) Needs() []proc.Program { return []proc.Program{lab.Traefik()} }

// Outline implements system.Provider.
func (Provider) Outline(_ context.Context, r system.Request) ([]system.Change, error) {
	list := []system.Change{}
	if r.Workload == nil {
		return list, nil
	}
	arms, err := read(r, settingsOf)
	if err != nil {
		return nil, err
	}
	list = append(list, system.Change{Action: system.Make, What: "namespace plimsoll-" + r.Run})
	for _, arm := range slices.Sorted(maps.Keys(arms)) {
		one := arms[arm]
		if use := (system.Change{Action: system.Use, What: "image " + one.image}); !slices.Contains(list, use) {
			list = append(list, use)
		}
		if one.via == viaURL {
			list = append(list, system.Change{Action: system.ChangeIt, What: one.server + ": whatever these requests change there"})
			continue
		}
		list = append(list, system.Change{Action: system.Make, What: one.backEndsText() + ", with a service"})
		if one.event == eventChange {
			list = append(list, system.Change{Action: system.Make, What: "as many others, to which the route is switched"})
		}
		if one.via != viaService && one.route() != (route{}) {
			list = append(list, system.Change{Action: system.Make, What: one.way()})
		}
		if one.bringsController(r) {
			class := map[string]string{viaIngress: "an ingress class", viaGateway: "a gateway"}[one.via]
			list = append(list, system.Change{Action: system.Make, What: record.Noun{One: "Traefik", Many: "Traefiks"}.Count(one.shards) + ", each with " + class + " of its own"})
			if one.via == viaGateway {
				list = append(list, system.Change{Action: system.Make, What: "the definitions of the Gateway API, if the lab lacks them; they stay"})
			}
		}
	}
	base := arms[""]
	return append(list, system.Change{Action: system.Make, What: fmt.Sprintf("a job of %s, at most %d, that send requests", clientNoun().Count(base.least), base.most)}), nil
}

// Account returns the service account for runs of a request's workload, which make their own namespace.
func (Provider) Account(r system.Request, namespace string) (kubernetes.Account, error) {
	if namespace != "" {
		return kubernetes.Account{}, ownNamespace()
	}
	arms, err := read(r, settingsOf)
	if err != nil {
		return kubernetes.Account{}, err
	}
	list := clientRights()
	put := func(optional bool, what, resource string, verbs ...string) {
		for _, verb := range verbs {
			list = append(list, ceiling.Right{Verb: verb, Resource: resource, For: what, Optional: optional})
		}
	}
	need := func(what, resource string, verbs ...string) { put(false, what, resource, verbs...) }
	put(true, "names the network policies that may block requests", "networkpolicies.networking.k8s.io", "list")
	put(true, "says why the cluster makes no pod of a client", "events", "list")
	for _, arm := range slices.Sorted(maps.Keys(arms)) {
		if arms[arm].via != viaURL {
			need("makes the back ends", "deployments.apps", "create", "get")
			need("makes the back ends", "services", "create")
		}
		one := arms[arm]
		if one.route() == (route{}) {
			continue
		}
		group, _, _ := strings.Cut(one.route().version, "/")
		resource, verbs := one.route().plural+"."+group, []string{"create", "get"}
		switch one.event {
		case eventRoute:
			verbs = append(verbs, "delete")
		case eventChange:
			verbs = append(verbs, "patch")
		}
		switch one.via {
		case viaService:
			resource, verbs = one.route().plural, slices.Delete(verbs, 1, 2)
		case viaGateway:
			verbs = slices.Delete(verbs, 1, 2)
			need("makes the way to them", "gateways.gateway.networking.k8s.io", "get")
			put(true, "knows the gateway's controller", "gatewayclasses.gateway.networking.k8s.io", "get")
		case viaIngress:
			put(true, "knows the ingress classes and their controllers", "ingressclasses.networking.k8s.io", "list")
		}
		need("makes the way to them", resource, verbs...)
		if one.via != viaService || one.pods != "" {
			put(true, "reads what the ingress controller uses", "pods.metrics.k8s.io", "list")
		}
	}
	return kubernetes.AccountOf(r, list), nil
}

// clientRights returns the rights of a run for its namespace and its clients.
func clientRights() (list []ceiling.Right) {
	put := func(optional bool, what, resource string, verbs ...string) {
		for _, verb := range verbs {
			list = append(list, ceiling.Right{Verb: verb, Resource: resource, For: what, Optional: optional})
		}
	}
	put(false, "makes the namespace of the run, signs that it is alive, and removes it", "namespaces", "create", "get", "list", "patch", "delete")
	put(false, "makes the namespace of the run, signs that it is alive, and removes it", "serviceaccounts", "get")
	put(false, "looks at the cluster before the load", "nodes", "list")
	put(false, "makes the clients, and sends them their orders", "jobs.batch", "create", "patch")
	put(false, "makes the clients, and sends them their orders", "pods", "list")
	put(false, "makes the clients, and sends them their orders", "pods/portforward", "get", "create")
	put(true, "makes the clients again, where their job waits longer and longer for a lost one", "jobs.batch", "delete")
	put(true, "replaces silent clients, and removes the pods before the cluster does, which is faster", "pods", "deletecollection", "delete")
	return list
}

func ownNamespace() error {
	return system.Mistakef("leave it out", "--namespace: the clients of a load, and its back ends, are in a namespace of the run's own")
}

// Open implements system.Provider.
func (Provider) Open(ctx context.Context, r system.Request) (system.Session, error) {
	return open(ctx, r, settingsOf)
}

// open opens the cluster of a run with settings that of reads; a private lab has the images, too.
func open(ctx context.Context, r system.Request, of func(p workload.Params, images string) (*settings, error), images ...string) (system.Session, error) {
	if r.Workload == nil {
		o, err := kubernetes.Open(ctx, r)
		return o, err
	}
	arms, err := read(r, of)
	if err != nil {
		return nil, err
	}
	if r.Plan.Own.(*kubernetes.Settings).Namespace != "" {
		return nil, ownNamespace()
	}
	for _, one := range arms {
		if one.bringsController(r) && !slices.Contains(images, lab.ImageTraefik) {
			images = append(images, lab.ImageTraefik)
		}
	}
	o, err := kubernetes.Open(ctx, r, images...)
	if err != nil {
		return nil, err
	}
	return &session{Opened: o, Request: r, arms: arms}, nil
}

type session struct {
	*kubernetes.Opened
	system.Request
	arms     map[string]*settings // of the workload itself for ""
	instance *instance            // nil before Target
	held     func(clean bool)
}

// settings holds the load of one arm.
type settings struct {
	via, server, host, path, class, gateway, mark string
	event, pods                                   string // pods of the controller, as NAMESPACE/SELECTOR
	place                                         string // of the back ends
	secure                                        bool
	trust                                         *clients.Trust
	backEnds, atOnce, size, shards                int
	controllerCPU                                 string
	took                                          time.Duration
	least, most                                   int // clients
	cpu, image                                    string
	nodes                                         map[string]string
	rate                                          int // requests a second at most, 0 for none
	keepAlive, random                             bool
	recorded                                      int      // requests that each client keeps one by one
	io                                            *volumes // instead of requests, nil for them
}

// unit names what the clients send.
func (s *settings) unit() string {
	if s.io != nil {
		return "IOs"
	}
	return "requests"
}

// way says how requests get to the back ends.
func (s *settings) way() string {
	switch s.via {
	case viaURL:
		return s.server
	case viaClaim:
		return s.io.text()
	case viaPod:
		return "the pods' addresses"
	case viaHost:
		return "the pods' addresses in the network of their nodes"
	case viaIngress:
		text := "ingress of class " + cmp.Or(s.class, "(default)")
		if s.shards > 1 {
			text += fmt.Sprintf(", %d shards", s.shards)
		}
		if s.controllerCPU != "" {
			text += ", by controllers with " + s.controllerCPU + " CPUs"
		}
		return text
	case viaGateway:
		return "route of gateway " + cmp.Or(s.gateway, "(the run's own)")
	case viaRoute:
		return "route of OpenShift"
	}
	return s.via
}

func (s *settings) backEndsText() string {
	if s.via == viaURL || s.backEnds == 0 {
		return ""
	}
	text := record.Noun{One: "back end", Many: "back ends"}.Count(s.backEnds)
	switch s.place {
	case placeSame:
		text += " on a node with a client"
	case placeOther:
		text += " on nodes without clients"
	}
	if s.took > 0 {
		text += fmt.Sprintf(" that work on %s at once, for %v each", record.Noun{One: "request", Many: "requests"}.Count(s.atOnce), s.took)
	}
	return text
}

// bringsController reports whether an arm needs an ingress controller of the run's own: a private lab has none.
func (s *settings) bringsController(r system.Request) bool {
	own := r.Plan.Own.(*kubernetes.Settings)
	if own.Kubeconfig != "" || own.InCluster {
		return false
	}
	return s.via == viaIngress && s.class == "" && own.LabName == "" || s.via == viaGateway && s.gateway == ""
}

// read reads the settings of all arms from the plan. It sends no request to the cluster.
func read(r system.Request, of func(p workload.Params, images string) (*settings, error)) (map[string]*settings, error) {
	arms := make(map[string]*settings)
	err := r.EachArm(func(arm string, given map[string]string) error {
		p, err := r.Resolve(given)
		if err != nil {
			return err
		}
		one, err := of(p, r.Plan.Own.(*kubernetes.Settings).Images)
		if err != nil {
			return err
		}
		if base := arms[""]; base != nil && (one.least != base.least || one.most != base.most || one.cpu != base.cpu || one.image != base.image || !maps.Equal(one.nodes, base.nodes) || !one.io.claimsAs(base.io) || one.via == viaURL && one.server != base.server) {
			return system.Mistakef("compare two runs: plimsoll compare", "arms share their clients, and the server that was confirmed: clients, clientCPU, clientNodes, image, url, class and claim cannot differ")
		}
		if r.Plan.Axis.Name == axisRate && one.rate > 0 {
			if level := slices.Max(append(r.Plan.Levels(), 0)); level > float64(one.rate) {
				return system.ParamMistake("maxRate", fmt.Sprintf("a higher one, if that may be: --set maxRate=%g", level), "the plan goes up to %g %s/s, and at most %d are allowed", level, one.unit(), one.rate)
			}
		}
		arms[arm] = one
		return nil
	})
	return arms, err
}

func settingsOf(p workload.Params, images string) (*settings, error) {
	s := &settings{
		via: p.Get("via"), host: p.Get("host"), class: p.Get("class"), gateway: p.Get("gateway"), server: p.Get("address"), path: "/",
		secure: p.Flag("tls"), backEnds: int(p.Int("backEnds")), atOnce: int(p.Int("backEndAtOnce")), size: int(p.Int("responseSize")), took: p.Duration("backEndTime"),
		cpu: p.Get("clientCPU"), image: p.Get("image"), rate: int(p.Int("maxRate")), keepAlive: p.Flag("keepAlive"), random: p.Get("arrivals") == "random", mark: p.Get("mark"), event: p.Get("event"), place: p.Get("place"), shards: int(p.Int("shards")), controllerCPU: p.Get("controllerCPU"), pods: p.Get("controller"), recorded: int(p.Int("recordRequests")),
	}
	if err := s.readClients(p, images, image.AgentReference); err != nil {
		return nil, err
	}
	switch {
	case s.via != viaURL && s.mark != "":
		return nil, system.ParamMistake("mark", "leave it out", "the answers of the run's own back ends have a mark of their own")
	case s.shards > 1 && s.via != viaIngress:
		return nil, system.ParamMistake("shards", "--set via=ingress", "only ingresses are shared among controllers, and via is %s", s.via)
	case s.shards > 1 && s.class != "" && strings.Count(s.class, "+") != s.shards-1:
		return nil, system.ParamMistake("class", "name as many: --set class=a+b", "%q names other than %d classes", s.class, s.shards)
	case s.shards > 1 && s.server != "":
		return nil, system.ParamMistake("address", "leave it out", "each of %d controllers has an address of its own", s.shards)
	case s.via == viaURL && s.event != eventNone:
		return nil, system.ParamMistake("event", "leave it out, or load a route of the run's own: --set via=ingress", "a run changes only routes of its own, and via is url")
	case s.via == viaURL:
		return s, s.parse(p.Get("url"))
	case (s.via == viaPod || s.via == viaHost) && (s.event != eventNone || s.secure || s.server != ""):
		return nil, system.ParamMistake("via", "leave event, tls and address out, or --set via=service", "the addresses of pods are loaded as they are, and via is %s", s.via)
	case p.Get("url") != "":
		return nil, system.ParamMistake("url", "--set via=url", "a URL is loaded with via=url alone, and via is %s", s.via)
	case s.gateway != "" && strings.Count(s.gateway, "/") != 1:
		return nil, system.ParamMistake("gateway", "for example --set gateway=infra/public", "%q names no gateway, as NAMESPACE/NAME", s.gateway)
	}
	if s.server != "" {
		if _, _, err := net.SplitHostPort(s.server); err != nil {
			return nil, system.ParamMistake("address", "for example --set address=192.0.2.1:80", "%w", err)
		}
	}
	if s.secure {
		s.trust = &clients.Trust{Any: !p.Flag("verify"), Resumption: true}
	}
	return s, nil
}

// readClients reads how many clients there are, and where. images is the registry of the standard image.
func (s *settings) readClients(p workload.Params, images, standard string) error {
	least, most, bounded := strings.Cut(p.Get("clients"), "..")
	s.least, _ = strconv.Atoi(least) // the pattern of the parameter
	if s.most = s.least; bounded {
		s.most, _ = strconv.Atoi(most)
	}
	if s.most < s.least || s.most > mostClients {
		return system.ParamMistake("clients", "for example 1..8", "%s: the second number is not below the first, and at most %d", p.Get("clients"), mostClients)
	}
	if text := p.Get("clientNodes"); text != "" {
		s.nodes = make(map[string]string)
		for label := range strings.SplitSeq(text, ",") {
			key, value, _ := strings.Cut(label, "=")
			s.nodes[key] = value
		}
	}
	if images != "" && s.image == standard {
		var err error
		if s.image, err = image.At(images, standard); err != nil {
			return system.Mistakef("", "--images: %w", err)
		}
	}
	return nil
}

const mostClients = 1000

// parse takes the server, the host and the path of a URL.
func (s *settings) parse(text string) error {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		if err == nil {
			text = u.Redacted()
		} else if strings.Contains(text, "@") {
			text = "the value" // it may hold a password
		}
		return system.ParamMistake("url", "for example --set url=http://shop.example:8080/list", "%q is not the address of a server, with http:// or https://, and without a user", text)
	}
	s.secure = u.Scheme == "https"
	s.server = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[bool]string{true: "443", false: "80"}[s.secure]))
	s.host, s.path = u.Host, cmp.Or(u.RequestURI(), "/")
	if s.secure {
		s.trust = &clients.Trust{Resumption: true}
	}
	return nil
}

// plan returns the requests of an arm, shared among its shards, with so many a second at most.
func (s *site) plan(rate int) load.Plan {
	p := s.settings.plan(rate)
	for _, shard := range s.further {
		h := p.Hosts[0]
		h.Name, h.Address = shard.host, shard.server
		p.Hosts = append(p.Hosts, h)
	}
	if len(s.further) > 0 {
		p.Hosts[0].Address = s.server
	}
	return p
}

// controllerShare returns the CPU limit of each controller of the run's own, which share that of the arm; "" for none.
func (s *settings) controllerShare() string {
	if s.controllerCPU == "" {
		return ""
	}
	all := resource.MustParse(s.controllerCPU)
	return resource.NewMilliQuantity(all.MilliValue()/int64(s.shards), resource.DecimalSI).String()
}

// plan returns the requests to one way, with so many a second at most.
func (s *settings) plan(rate int) load.Plan {
	return load.Plan{
		Threads: 1, Close: !s.keepAlive, Random: s.random, Pace: float64(rate), Record: s.recorded,
		Hosts: []load.Host{{Name: s.host, Weight: 1, Requests: []load.Request{{Method: "GET", Path: s.path, Weight: 1, Want: []byte(s.mark)}}}},
	}
}

const foreignRate = 200 // requests a second, where the plan says nothing, at a cluster that is not a lab, or a URL

// bound returns how many requests a second an arm may send, 0 for no bound.
func (s *session) bound(one *settings) int {
	if one.rate == 0 && (s.Lab() == nil || one.via == viaURL) {
		if one.io != nil {
			return foreignIOs
		}
		return foreignRate
	}
	return one.rate
}

// Consent implements system.Session: a cluster that is not a lab, and a URL, are not the run's own.
func (s *session) Consent(ctx context.Context) (*system.Consent, error) {
	base := s.arms[""]
	if s.Lab() != nil && base.via != viaURL {
		return nil, nil
	}
	summary, err := s.Summary(ctx)
	if err != nil {
		return nil, err
	}
	c := &system.Consent{System: summary, Why: "is not a plimsoll lab", Load: fmt.Sprintf("at most %d %s a second to %s, from at most %s", s.bound(base), base.unit(), base.way(), clientNoun().Count(base.most))}
	if base.io != nil {
		c.Load += ", each of which first writes a file of " + base.io.file()
	}
	if s.Lab() != nil {
		c.System, c.Why = base.way(), "is not a server of plimsoll's"
	}
	return c, nil
}

// Prepare implements system.Session.
func (s *session) Prepare(context.Context) error {
	for _, one := range s.arms {
		if one.via == viaGateway && one.gateway == "" && s.Lab() == nil {
			return system.ParamMistake("gateway", "for example --set gateway=infra/public", "a run brings a gateway of its own to a lab alone")
		}
		if one.io != nil && s.Lab() != nil && one.image == image.FioReference {
			if _, err := s.Image(lab.ImageFio, "name an image that nodes can pull, with --set image="); err != nil {
				return err
			}
		}
		if s.Plan.Axis.Name != axisRate {
			continue
		}
		if most, level := s.bound(one), slices.Max(append(s.Plan.Levels(), 0)); most > 0 && level > float64(most) {
			return system.ParamMistake("maxRate", fmt.Sprintf("if that may be: --set maxRate=%g, or a lower --max", level), "the plan goes up to %g %s/s, and where nothing is said at most %d are sent there", level, one.unit(), most)
		}
	}
	return nil
}

// Survey implements system.Session.
func (s *session) Survey(ctx context.Context, thorough bool) (system.Survey, error) {
	found, err := s.Opened.Survey(ctx, thorough)
	found.Kind, found.Tables = requests(), nil
	if s.arms[""].io != nil {
		found.Kind = ios()
	}
	return found, err
}

// Bounds implements system.Session.
func (s *session) Bounds() system.Bounds {
	return system.Bounds{
		Pace: plan.Pace{Max: true}, MaxInFlight: load.MostConnections, MaxInFlightOpen: load.MostConnections,
		Guards: plan.Guards{record.MeasureRequestErrors: plan.Bound{Value: 50, Percent: true}},
	}
}

// Readings implements system.Session.
func (s *session) Readings() []record.Reading {
	list := s.Opened.Readings()
	if i := s.instance; i != nil {
		if l, is := i.Current().(*step); is {
			list = append(list, i.ofController(l.site, list)...)
		}
		list = append(list, i.Rig.Readings()...)
	}
	return list
}

// Close implements system.Session.
func (s *session) Close() error {
	if s.held != nil {
		s.held(s.instance == nil || s.instance.gone)
		s.held = nil
	}
	return s.Opened.Close()
}
