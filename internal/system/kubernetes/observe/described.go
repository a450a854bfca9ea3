package observe

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// Described follows objects that a workload describes: it passes the sum of their resources' last news to
// a Tracker. Its methods are not safe for concurrent use.
type Described struct {
	*Tracker
	spec      *described.Objects
	told      []string // paths of the values that are on record with an object
	course    Course
	resources [][]rule // by resource
	there     int      // the resource of the milestone that counts
	objects   map[string]*told
	setUp     setUp
	on        map[string][]string                       // objects by place
	then      map[int]*described.Then                   // further requests by the milestone before them
	gone      *rule                                     // the rule of the milestone of an object's end, or nil
	Ask       func(object string, then *described.Then) // takes a further request to an object
	Asked     func(object string) bool                  // tells the objects to follow, nil for all of their kind
	// Says takes a changed text; Held the time for which something held, once that ends, at first 0.
	Says    func(kind, name, text string)
	Held    func(what *described.Held, name string, since, until record.Micros)
	message message                                      // the present one
	within  bool                                         // the objects are services
	silent  bool                                         // a step has ended: unanswered objects are in trouble
	said    map[int]string                               // by resource
	held    map[*described.Held]map[string]record.Micros // by name, since when it holds; -1 while it does not
}

// rule says what to look for in messages of a resource.
type rule struct {
	when      *described.When
	milestone int // its index, 0 for none: Created needs no rule
	after     int // the milestone that must come first
	stamp     string
	place     string
	probe     *described.Probe
	trouble   *described.ObjectTrouble
	stage     int // of the set-up, -1 for none
}

// setUp holds the objects that were set up before the load.
type setUp struct {
	ready []map[string]bool // holds the names of ready objects, by stage
	asked map[string]bool   // objects whose server is called
}

// take applies the rules of the set-up to a message, and returns the probes to call.
func (s *setUp) take(rules []rule, m *message) (called []Probe) {
	for i := range rules {
		rule := &rules[i]
		if rule.stage < 0 {
			continue
		}
		// An object that was ready once stays set up, whatever the load does to it.
		name := m.namespace + "/" + m.name
		if met, _ := m.meets(rule.when); met && !s.ready[rule.stage][name] {
			if !m.has(rule.probe) {
				s.ready[rule.stage][name] = true
			} else if address := m.address(rule.probe); address != "" && !s.asked[name] {
				s.asked[name] = true
				p := m.asks(rule.probe, address)
				p.Object, p.Milestone, p.stage = name, -1, rule.stage
				called = append(called, p)
			}
		}
	}
	return called
}

// told holds the news of an object's resources.
type told struct {
	news     News
	uids     []string // by resource
	stale    []string // holds the UIDs of an earlier life, before the measured work began
	troubles []trouble
	address  string // of the present calls
	refused  Reason // a further request was refused
	unheard  string // why it has not answered, "" without calls
	probing  uint32 // milestones with a probe under way
	first    string // the first value of what begins the work by its change
	service  []byte // the last message of a service that is called once another resource has news
	changed  bool
}

// trouble holds the troubles that one resource shows.
type trouble struct {
	trouble, unplaced Reason
	class             string // of trouble
	final             bool
}

// Probe describes a server to call until it answers, which is a milestone of an object.
type Probe struct {
	Object    string
	Milestone int    // -1 for a stage of the set-up
	Server    string // "namespace/name" of the object with the address
	Address   string // with its port
	described.Probe
	stage    int
	resource int
	uid      string // of the resource's object with the address
}

// NewDescribed makes a Described that passes its events to emit.
func NewDescribed(spec *described.Objects, created string, emit func(record.Micros, record.Body)) *Described {
	d := &Described{spec: spec, told: spec.Told(), objects: make(map[string]*told), resources: make([][]rule, len(spec.Resources)), then: make(map[int]*described.Then), on: make(map[string][]string), setUp: setUp{asked: make(map[string]bool)},
		said: make(map[int]string), held: make(map[*described.Held]map[string]record.Micros)}
	d.course = Course{Names: []string{created}, Placed: -1}
	of := func(name string) int {
		i, _ := spec.Resource(name)
		return i
	}
	for i, m := range spec.Milestones {
		bit := len(d.course.Names)
		d.course.Names = append(d.course.Names, m.Name)
		at := of(m.Resource)
		if m.Name == spec.There {
			d.course.There, d.there = bit, at
		}
		if m.Place != "" {
			d.course.Placed = bit
		}
		if j := slices.IndexFunc(spec.Then, func(t described.Then) bool { return t.After == m.Name }); j >= 0 {
			d.then[bit] = &spec.Then[j]
		}
		r := rule{when: &m.When, stage: -1, milestone: bit, after: max(bitCreated, slices.Index(d.course.Names, spec.Opens(i))), stamp: m.StampPath(), place: m.Place, probe: m.Probe}
		if m.Gone {
			d.gone = &r
			continue
		}
		d.resources[at] = append(d.resources[at], r)
		d.within = d.within || m.Probe != nil && m.Probe.Within
	}
	for _, t := range spec.Troubles {
		at := of(t.Resource)
		d.resources[at] = append(d.resources[at], rule{when: &t.When, stage: -1, trouble: &t})
	}
	for i := range spec.SetUp {
		until := &spec.SetUp[i].Until
		at := of(until.Resource)
		d.resources[at] = append(d.resources[at], rule{when: until, stage: i, probe: spec.SetUp[i].Probe})
		d.setUp.ready = append(d.setUp.ready, make(map[string]bool))
	}
	d.Tracker = NewTracker(d.course, emit)
	d.Asleep, d.Sole = spec.Begin != nil || spec.Changes != "", true
	return d
}

// Course returns the milestones of the objects.
func (d *Described) Course() Course { return d.course }

// SetUp counts the ready objects of a stage.
func (d *Described) SetUp(stage int) int { return len(d.setUp.ready[stage]) }

// Forget drops all news, for a target that was emptied.
func (d *Described) Forget() {
	d.Tracker.Forget()
	clear(d.objects)
	clear(d.on)
	clear(d.setUp.asked)
	for _, ready := range d.setUp.ready {
		clear(ready)
	}
}

// Missing takes the UIDs of a resource's objects that a list lacks: they ended before now.
func (d *Described) Missing(now record.Micros, resource int, gone map[string]bool) {
	for _, o := range d.objects {
		uid := o.uids[resource]
		switch {
		case uid == "" || !gone[uid]:
		case resource == 0:
			d.leave(now, o)
			d.Tracker.Missing(now, o.news.Name, uid)
		default:
			d.lose(o, resource)
			d.apply(now, Changed, o)
		}
	}
}

// lose drops the news of one resource of an object.
func (d *Described) lose(o *told, resource int) {
	o.uids[resource], o.troubles[resource] = "", trouble{}
	if resource == d.there {
		o.news.There = false
	}
}

// Live notes the place of an object: that place's news counts for the object, wherever it goes.
func (d *Described) Live(name, place string) { d.on[place] = append(d.on[place], name) }

// leave forgets an object that is gone. If that is a milestone, the object has reached it.
func (d *Described) leave(now record.Micros, o *told) {
	delete(d.objects, o.news.Name)
	if d.gone != nil && o.opened(d.gone) {
		o.news.Deleting = false
		d.reach(o, d.gone.milestone, 0, "")
		d.apply(now, Changed, o)
		d.Depart(o.news.Name)
	}
}

// opened reports whether a rule applies to the object yet.
func (o *told) opened(r *rule) bool { return r.after == bitCreated || o.news.Reached&(1<<r.after) != 0 }

// Refused notes that a further request to an object was refused: it will never be ready.
func (d *Described) Refused(now record.Micros, name, reason, message string) {
	if o := d.objects[name]; o != nil {
		o.refused, o.news.Done = Reason{reason, message}, true
		d.apply(now, Changed, o)
	}
}

// Awaits reports whether a probe's answer is awaited.
func (d *Described) Awaits(p Probe) bool {
	if p.Milestone < 0 {
		return d.setUp.asked[p.Object] && !d.setUp.ready[p.stage][p.Object]
	}
	o := d.objects[p.Object]
	return o != nil && o.probing&(1<<p.Milestone) != 0 && o.uids[p.resource] == p.uid
}

// Address returns the present address of a probe's server.
func (d *Described) Address(p Probe) string {
	if o := d.objects[p.Object]; o != nil && o.address != "" {
		return o.address
	}
	return p.Address
}

// Begin notes that the measured work of an object begins.
func (d *Described) Begin(now record.Micros, name string) {
	d.Tracker.Begin(now, name)
	begin := d.spec.Begin
	if o := d.objects[name]; o != nil && (begin == nil || !begin.GoesOn) {
		if begin == nil || begin.Drain == nil {
			copy(o.stale, o.uids)
			o.stale[0] = "" // the object itself stays the same
		}
		o.news.Reached, o.news.There, o.news.Done, o.probing, o.unheard = 0, false, false, 0, ""
		clear(o.troubles)
	}
}

// Unheard notes why a call of a probe had no answer.
func (d *Described) Unheard(p Probe, why string) {
	if o := d.objects[p.Object]; o != nil {
		o.unheard = why
	}
}

// Unanswered gives objects without other troubles the last reason of Unheard as theirs.
func (d *Described) Unanswered(now record.Micros) {
	d.silent = true
	for _, o := range d.objects {
		if o.unheard != "" {
			d.apply(now, Changed, o)
		}
	}
	d.silent = false
}

// Answered notes a probe's answer at now.
func (d *Described) Answered(now record.Micros, p Probe) {
	if p.Milestone < 0 && d.Awaits(p) {
		d.setUp.ready[p.stage][p.Object] = true
		return
	}
	if o := d.objects[p.Object]; d.Awaits(p) {
		o.unheard = ""
		d.reach(o, p.Milestone, 0, "")
		d.apply(now, Changed, o)
	}
}

// Apply takes a resource's message, as JSON, and returns the probes to call. ours tells the run's namespaces.
func (d *Described) Apply(now record.Micros, change Change, resource int, raw []byte, ours func(namespace string) bool) ([]Probe, error) {
	// A server's JSON is valid or cut off, which its ends show.
	if len(raw) < 2 || raw[0] != '{' || raw[len(raw)-1] != '}' {
		return nil, fmt.Errorf("decode %s: it is not JSON", d.spec.Resources[resource].Kind)
	}
	m := &d.message
	m.read(raw)
	r := &d.spec.Resources[resource]
	if r.Unlabelled && m.namespace != "" && !ours(m.namespace) {
		return nil, nil
	}
	called := d.setUp.take(d.resources[resource], m)
	d.besides(now, change, resource, m)
	if r.Of == ofPlace || r.Of == ofAll {
		probes := called
		names := d.on[m.name]
		if r.Of == ofAll {
			names = d.Names()
		}
		for _, name := range names {
			if o := d.objects[name]; o != nil && change != Gone {
				probes = append(probes, d.look(o, resource, m)...)
				d.apply(now, Changed, o)
			}
		}
		return probes, nil
	}
	name := m.objectOf(r)
	if name == "" || d.Asked != nil && !d.Asked(name) {
		return called, nil // no object's, or somebody else's
	}
	o := d.objects[name]
	if o == nil {
		if change == Gone {
			return nil, nil
		}
		name = strings.Clone(name)
		n := len(d.spec.Resources)
		o = &told{uids: make([]string, n), stale: make([]string, n), troubles: make([]trouble, n)}
		o.news.Name, o.news.Slot = name, name
		d.objects[name] = o
	}
	if m.uid == o.stale[resource] && m.uid != "" || change == Gone && o.uids[resource] != m.uid {
		return nil, nil // of an earlier object
	}
	if resource == 0 && o.uids[0] != "" && o.uids[0] != m.uid {
		// Another object has the name now.
		*o = told{news: News{Name: o.news.Name, Slot: o.news.Slot}, uids: make([]string, len(o.uids)), stale: o.uids, troubles: make([]trouble, len(o.uids))}
	}
	o.uids[resource] = m.uid
	if resource == 0 {
		o.news.UID, o.news.Deleting, o.news.Stamps[bitCreated] = m.uid, m.deleting, m.created
		d.change(now, o, m)
		if o.news.Labels == nil {
			for _, path := range d.told {
				o.news.Labels = append(o.news.Labels, strings.Clone(m.get(path).String()))
			}
		}
	}
	if change == Gone {
		d.lose(o, resource)
		if resource == 0 {
			d.leave(now, o)
			d.Tracker.Apply(now, Gone, &o.news)
		} else {
			d.apply(now, Changed, o)
		}
		return nil, nil
	}
	probes := append(called, d.look(o, resource, m)...)
	if d.within && resource == 0 {
		o.service = slices.Clone(raw)
	} else if d.within && o.service != nil {
		m.read(o.service)
		probes = append(probes, d.look(o, 0, m)...)
	}
	d.apply(now, change, o)
	return probes, nil
}

// change begins the work of an object whose first value has changed.
func (d *Described) change(now record.Micros, o *told, m *message) {
	value := m.get(d.spec.Changes).String()
	switch {
	case d.spec.Changes == "" || o.changed:
	case o.first == "":
		o.first = strings.Clone(value)
	case value != o.first:
		o.changed, o.news.Reached, o.news.There, o.news.Labels = true, 0, false, nil
		d.Tracker.Begin(now, o.news.Name)
	}
}

// besides reports the texts and the held conditions in a message.
func (d *Described) besides(now record.Micros, change Change, resource int, m *message) {
	if path := d.spec.Resources[resource].Says; path != "" {
		if text := kept(m.get(path).String()); text != d.said[resource] {
			d.said[resource] = text
			d.Says(d.spec.Resources[resource].Kind, strings.Clone(m.name), text)
		}
	}
	for i := range d.spec.Held {
		h := &d.spec.Held[i]
		if at, _ := d.spec.Resource(h.Resource); at != resource {
			continue
		}
		met, _ := m.meets(&h.When)
		name := strings.TrimPrefix(m.namespace+"/"+m.name, "/")
		if d.held[h] == nil {
			d.held[h] = make(map[string]record.Micros)
		}
		since, seen := d.held[h][name]
		if !seen {
			since = -1
			d.Held(h, name, 0, 0)
		}
		switch met = met && change != Gone; {
		case met && since < 0:
			since = now
		case !met && since >= 0:
			d.Held(h, name, since, now)
			since = -1
		}
		d.held[h][name] = since
	}
}

// look applies the rules of a resource to a message.
func (d *Described) look(o *told, resource int, m *message) (probes []Probe) {
	o.troubles[resource] = trouble{}
	for i := range d.resources[resource] {
		rule := &d.resources[resource][i]
		if rule.stage >= 0 || !o.opened(rule) {
			continue
		}
		if m.uid != "" && m.uid == o.stale[resource] {
			return probes // a further request just now renews it
		}
		if rule.milestone > 0 && rule.milestone != d.course.There && o.news.Reached&(1<<rule.milestone) != 0 {
			continue // reported once
		}
		met, value := m.meets(rule.when)
		switch {
		case rule.trouble != nil:
			if met {
				o.troubles[resource].add(rule.trouble, value, m)
			}
		case rule.milestone == d.course.There && rule.probe == nil:
			o.news.There = met
			fallthrough
		case rule.milestone > 0 && met && rule.probe == nil:
			if met {
				place := ""
				if rule.place != "" {
					place = m.get(rule.place).String()
				}
				d.reach(o, rule.milestone, unixOf(m.get(rule.stamp)), place)
			}
		case rule.probe != nil && met && o.probing&(1<<rule.milestone) != 0:
			o.address = m.address(rule.probe) // a moved machine may have another
		case rule.probe != nil && met && o.probing&(1<<rule.milestone) == 0:
			if address := m.address(rule.probe); address != "" && m.has(rule.probe) {
				o.probing |= 1 << rule.milestone
				p := m.asks(rule.probe, address)
				p.Object, p.Milestone, p.resource = o.news.Name, rule.milestone, resource
				probes = append(probes, p)
			}
		}
	}
	return probes
}

func (d *Described) reach(o *told, bit int, stamp int64, place string) {
	if bit == d.course.There {
		o.news.There = true
	}
	if o.news.Reached&(1<<bit) != 0 {
		return
	}
	o.news.Reached |= 1 << bit
	o.news.Stamps[bit] = stamp
	if place != "" {
		o.news.Place = strings.Clone(place)
	}
	if then := d.then[bit]; then != nil && !o.news.Deleting {
		if then.Renews != "" {
			i, _ := d.spec.Resource(then.Renews)
			o.stale[i], o.uids[i], o.troubles[i] = o.uids[i], "", trouble{}
		}
		d.Ask(o.news.Name, then)
	}
}

// apply passes the sum of all resources' news to the tracker.
func (d *Described) apply(now record.Micros, change Change, o *told) {
	o.news.Trouble, o.news.Unplaced, o.news.Lacks, o.news.Class = o.refused, Reason{}, Reason{}, ""
	for _, t := range o.troubles {
		if o.news.Trouble.Reason == "" {
			o.news.Trouble, o.news.Class = t.trouble, t.class
		}
		if o.news.Unplaced.Reason == "" {
			o.news.Unplaced = t.unplaced
		}
		o.news.Done = o.news.Done || t.final
	}
	if d.silent && o.news.Trouble.Reason == "" && o.unheard != "" {
		o.news.Trouble = Reason{"NoAnswer", o.unheard}
	}
	d.Tracker.Apply(now, change, &o.news)
}

func (t *trouble) add(o *described.ObjectTrouble, value string, m *message) {
	r := Reason{Reason: value}
	if o.Reason != "" {
		r.Reason = cmp.Or(m.get(o.Reason).String(), value)
	}
	if o.Message != "" {
		r.Message = m.get(o.Message).String()
	} else if o.Condition != "" {
		r.Message = m.condition(o.Condition).Get("message").String()
	}
	r = Reason{kept(r.Reason), kept(r.Message)}
	t.final = t.final || o.Final
	switch {
	case o.Unplaced && t.unplaced.Reason == "":
		// The reason is the same for all kinds.
		t.unplaced = Reason{reasonUnschedulable, joined(r)}
	case !o.Unplaced && t.trouble.Reason == "":
		t.trouble, t.class = r, o.Class
	}
}

func joined(r Reason) string {
	if r.Message == "" || r.Reason == reasonUnschedulable {
		return r.Message
	}
	return r.Reason + ": " + r.Message
}

// meets reports whether a condition holds, and by which value: for an API condition its reason.
func (m *message) meets(w *described.When) (met bool, value string) {
	switch {
	case w.Condition != "":
		values := w.Values
		if len(values) == 0 {
			values = []string{"True"}
		}
		c := m.condition(w.Condition)
		if !c.Exists() || !slices.Contains(values, c.Get("status").String()) {
			return false, ""
		}
		return true, cmp.Or(c.Get("reason").String(), w.Condition)
	case w.Path == "":
		return true, ""
	}
	value = m.get(w.Path).String()
	if w.Same != "" {
		return value != "" && value == m.get(w.Same).String(), value
	}
	if len(w.Values) == 0 {
		return value != "", value
	}
	return slices.Contains(w.Values, value), value
}

// message is an object of the API, split into its parts once.
type message struct {
	parts                []part
	namespace, name, uid string
	created              int64
	deleting             bool
}

// kept cuts and copies a text: the whole message may have a megabyte per object.
func kept(text string) string { return strings.Clone(redact.Cut(text)) }

// part is the JSON of one of an object's fields, such as its status.
type part struct{ key, json string }

// read takes the next message. It reuses the room of the last one.
func (m *message) read(raw []byte) {
	*m = message{parts: m.parts[:0]}
	gjson.Parse(string(raw)).ForEach(func(key, value gjson.Result) bool {
		m.parts = append(m.parts, part{key.Str, value.Raw})
		return true
	})
	gjson.Parse(m.part("metadata")).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "name":
			m.name = value.Str
		case "namespace":
			m.namespace = value.Str
		case "uid":
			m.uid = strings.Clone(value.Str) // see kept
		case "creationTimestamp":
			m.created = unixOf(value)
		case "deletionTimestamp":
			m.deleting = value.Type != gjson.Null
		}
		return true
	})
}

// part returns the JSON of a field, "" without one. The last one of the same name counts.
func (m *message) part(key string) string {
	for i := len(m.parts) - 1; i >= 0; i-- {
		if m.parts[i].key == key {
			return m.parts[i].json
		}
	}
	return ""
}

func (m *message) get(path string) gjson.Result {
	first, rest, within := strings.Cut(path, ".")
	if !within {
		return gjson.Parse(m.part(first))
	}
	return gjson.Get(m.part(first), rest)
}

// condition returns the status condition of that type.
func (m *message) condition(name string) (found gjson.Result) {
	m.get("status.conditions").ForEach(func(_, c gjson.Result) bool {
		if c.Get("type").Str == name {
			found = c
		}
		return !found.Exists()
	})
	return found
}

// address returns the address for a probe, "" while unknown; a service may have several.
func (m *message) address(p *described.Probe) string {
	switch {
	case p.Within:
		return m.service()
	case p.Between != "":
		return m.name // nothing is called from here
	}
	for _, path := range p.Addresses {
		address := m.get(path).String()
		if _, _, err := net.SplitHostPort(address); err == nil {
			return strings.Clone(address)
		} else if address != "" {
			return net.JoinHostPort(address, strconv.Itoa(p.Port))
		}
	}
	return ""
}

// service returns a service's addresses with its TCP ports, "" while it has none. One without a host is of any node.
func (m *message) service() string {
	hosts, port := "spec.clusterIPs", "port"
	switch m.get("spec.type").String() {
	case "NodePort":
		hosts, port = "", "nodePort"
	case "LoadBalancer":
		hosts = "status.loadBalancer.ingress"
	}
	var list []string
	add := func(host string) {
		for _, p := range m.get("spec.ports").Array() {
			if protocol := p.Get("protocol").String(); protocol == "" || protocol == "TCP" {
				list = append(list, net.JoinHostPort(host, p.Get(port).String()))
			}
		}
	}
	if hosts == "" {
		add("")
	}
	for _, host := range m.get(hosts).Array() {
		add(cmp.Or(host.Get("ip").String(), host.Get("hostname").String(), host.String()))
	}
	return strings.Join(list, " ")
}

func (m *message) has(p *described.Probe) bool {
	return p != nil && (p.Where == "" || m.get(p.Where).Exists())
}

// asks returns the probe of a message's object.
func (m *message) asks(p *described.Probe, address string) Probe {
	return Probe{Server: m.namespace + "/" + m.name, Address: address, Probe: *p, uid: m.uid}
}

// objectOf returns the name, "namespace/name", of the object that a message is about, "" for none.
func (m *message) objectOf(r *described.Resource) string {
	name := m.name
	switch r.Of {
	case "", ofName:
	case ofOwner:
		name = m.get("metadata.ownerReferences.0.name").String()
	default:
		name = m.get(r.Of).String()
	}
	if name == "" || m.namespace == "" {
		return name
	}
	return m.namespace + "/" + name
}

// How a resource names its object, besides a path.
const (
	ofName  = "name"
	ofOwner = "owner"
	ofAll   = "all"   // of all objects
	ofPlace = "place" // of all objects on that place when they began
)

// unixOf returns a time of the API in seconds since 1970, 0 for none.
func unixOf(r gjson.Result) int64 {
	at, err := time.Parse(time.RFC3339, r.String())
	if err != nil {
		return 0
	}
	return at.Unix()
}
