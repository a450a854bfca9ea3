// Package described holds the key objects of workloads: what a run follows instead of pods.
package described

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Objects says which resources show an object, and when it reaches which milestone.
type Objects struct {
	Noun  record.Noun `yaml:"noun"` // names the objects, Place the kind of place that they are on, if any
	Place record.Noun `yaml:"place"`
	// Resources show the objects. The first is the object itself, with its creation and its end.
	Resources []Resource `yaml:"resources"`
	// Milestones are ordered as objects reach them after their creation. Nothing waits for those after There.
	Milestones []ObjectMilestone `yaml:"milestones"`
	There      string            `yaml:"there"`
	Troubles   []ObjectTrouble   `yaml:"troubles"` // say why an object is not there
	SetUp      []SetUp           `yaml:"setUp"`    // made first and not measured, stage by stage
	// Begin, if not nil, begins the measured work of objects that were set up, instead of their creation.
	Begin *Begin `yaml:"begin"`
	Then  []Then `yaml:"then"` // has further requests to an object, each after a milestone
	Held  []Held `yaml:"held"` // conditions whose durations in a step are reported
	// Concurrent, if not nil, says between which milestones objects are counted.
	Concurrent *Concurrent `yaml:"atOnce"`
	// GroupBy, if not nil, says by which labels the objects' times are grouped. Tells lists the paths of further
	// values that are on record with an object.
	GroupBy *GroupBy `yaml:"by"`
	Tells   []string `yaml:"-"`
	// As names the objects on record where they are followed beside others, "" by their kind.
	As string `yaml:"-"`
	// Changes, if not "", is the path of a value whose change begins the measured work of an object.
	Changes string `yaml:"-"`
	// There before the load, such as nodes, they are only on record.
	Before bool `yaml:"-"`
	// Bounds can keep the load from going faster, by readings of a lab or a cluster.
	Bounds []record.Bound `yaml:"bounds"`

	ofMachines bool
}

// MachinesOf returns the description of a workload's virtual machines, or nil.
func MachinesOf(w *workload.Workload) *Objects {
	if o := Of(w); o != nil && o.ofMachines {
		return o
	}
	return nil
}

// New returns an empty description to be read.
func New() workload.Followed { return new(Objects) }

// OfMachines returns New for a target that calls servers and drains nodes.
func OfMachines() workload.Followed { return &Objects{ofMachines: true} }

// Of returns the description of a workload's objects, nil for pods and without a workload.
func Of(w *workload.Workload) *Objects {
	if w == nil {
		return nil
	}
	o, _ := w.Followed.(*Objects)
	return o
}

// Beside returns what a workload follows beside its objects.
func Beside(w *workload.Workload) (list []*Objects) {
	if w == nil {
		return nil
	}
	for _, f := range w.Beside {
		list = append(list, f.(*Objects))
	}
	return list
}

// Resource describes a resource of the API that shows objects.
type Resource struct {
	Name       string `yaml:"name"` // in the rest of the description
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	// Of says which object it is about: "name" (default) has the object's name and namespace, "owner" is
	// owned by it, "place" is the node of its drain, "all" is about all; else it is the path of the
	// object's name.
	Of string `yaml:"of"`
	// Unlabelled says that it lacks the run's label: objects in the run's namespaces are followed.
	Unlabelled bool   `yaml:"unlabelled"`
	Says       string `yaml:"says"` // path of a text that is shown and recorded as it changes
}

// Held describes a condition of a resource whose durations are reported.
type Held struct {
	When `yaml:",inline"`
	Name string `yaml:"name"` // of the duration
	Each bool   `yaml:"each"` // reports the durations of each object by its name
}

// When describes a condition; without path and condition it holds when the resource exists.
type When struct {
	Resource string `yaml:"resource"` // "" is the first one
	// Path leads to a value, in gjson's syntax. It holds with one of Values, or without them if not empty.
	Path   string   `yaml:"path"`
	Values []string `yaml:"values"`
	// Same, instead of Values, is the path of a value that the one at Path must equal.
	Same string `yaml:"-"`
	// Condition, instead of a path, is a type of status.conditions: it holds if True, or with one of Values.
	Condition string `yaml:"condition"`
}

// ObjectMilestone describes a milestone and when it is reached.
type ObjectMilestone struct {
	Name string `yaml:"name"`
	By   string `yaml:"by"` // the actor that does the work
	When `yaml:",inline"`
	// After is the milestone from which this one counts, by default the last one with a further request.
	After string `yaml:"after"`
	Gone  bool   `yaml:"gone"` // says that the end of the object reaches it
	Rare  bool   `yaml:"-"`    // says that not all objects reach it: it is on record, and in no result
	// Stamp is the path of its time by the server's clock, "" for none; a condition has its own.
	Stamp string `yaml:"stamp"`
	Place string `yaml:"place"` // path of the object's place from then on
	Probe *Probe `yaml:"probe"` // Probe, if not nil, must also answer, at an address in the resource
}

// Probe describes a server that is called until it answers.
type Probe struct {
	// Addresses are paths of its IP address, perhaps with a port: the first existing one counts.
	Addresses []string `yaml:"addresses"`
	Port      int      `yaml:"port"`   // if the address has none
	Banner    string   `yaml:"banner"` // the required first bytes, "" for only a connection
	Keep      bool     `yaml:"keep"`   // calls it on, and reports the times without an answer
	// FIO is a command that is run once, by SSH as root, and prints fio's json+: success reaches the
	// milestone. The run sets the keys (ParamSSHKey and ParamSSHHostKey).
	FIO   string `yaml:"fio"`
	Phase string `yaml:"phase"` // tells the figures of several commands apart, "" for a single one
	// Where, if not "", is a path that must have a value, or there is nothing to call.
	Where string `yaml:"where"`
	// Within, instead of Addresses, says that the resource is a service, all of whose TCP ports are called from a
	// pod of the cluster, once another resource has news.
	Within bool `yaml:"-"`
	// Between, instead of Addresses, says that the resource is a network policy, and that pods of the load have made
	// one or all of the connections that it allows.
	Between Connections `yaml:"-"`
}

// Connections is a number of connections, "" for none.
type Connections string

// Numbers of connections.
const (
	OneConnection  Connections = "one"
	AllConnections Connections = "all"
)

// Parameters that a run sets: the key that opens its machines, and their host key.
const (
	ParamSSHKey     = "sshKey"
	ParamSSHHostKey = "sshHostKey"
)

// ParamSSHFrom says from where machines are called: through the API server, or from this machine.
const (
	ParamSSHFrom   = "sshFrom"
	SSHFromForward = "portforward"
)

// ParamGuestIOPS, missing or 0, says that objects do no IO, unless the workload reads IO.
const ParamGuestIOPS = "guestIOPS"

// ReadsFIO reports whether the objects show the IO that they do.
func (o *Objects) ReadsFIO() bool { return len(o.phases()) > 0 }

func (o *Objects) phases() (list []string) {
	if o == nil {
		return nil
	}
	for _, m := range o.Milestones {
		if m.Probe != nil && m.Probe.FIO != "" {
			list = append(list, m.Probe.Phase)
		}
	}
	return list
}

// DoesIO reports whether the workload's objects do IO with these parameters.
func DoesIO(w *workload.Workload, params workload.Params) bool {
	_, err := w.Param(ParamGuestIOPS)
	return Of(w).ReadsFIO() && (err != nil || params.Int(ParamGuestIOPS) > 0)
}

// SourceFIO is the source of readings of the objects' IO, which fioMetrics names.
const SourceFIO = "fio"

func (o *Objects) fioMetrics() (list []record.Metric) {
	for _, phase := range o.phases() {
		if phase != "" {
			phase = " " + phase
		}
		for _, side := range []string{"read", "write"} {
			list = append(list, record.Metric{Name: side + " rate" + phase, Unit: "/s", Help: side + "s per second" + phase + ", of all together (IOPS)", LessIsWorse: true, Of: record.Fold{Source: SourceFIO, Value: side + "Rate" + phase, Fold: record.FoldMost}})
			for _, q := range []string{"p50", "p99"} {
				list = append(list, record.Metric{Name: side + " " + q + phase, Unit: "s", Help: q + " of the latencies of " + side + "s" + phase + ", of all together", Of: record.Fold{Source: SourceFIO, Value: side + " " + q + phase, Fold: record.FoldMost}})
			}
		}
	}
	return list
}

// ObjectTrouble describes a condition that keeps an object from being there.
type ObjectTrouble struct {
	When    `yaml:",inline"`
	Reason  string `yaml:"reason"`  // path, or "" for the value of Path or Condition
	Message string `yaml:"message"` // path, "" for none
	// Final says that the object will never be there, Unplaced that it has no place now.
	Final    bool   `yaml:"final"`
	Unplaced bool   `yaml:"unplaced"`
	Class    string `yaml:"class"` // with What, the kind of trouble, for what broke first
	What     string `yaml:"what"`
}

// SetUp describes a stage before the load: a job, with as many iterations as the level, and its condition.
type SetUp struct {
	Job   string `yaml:"job"`
	Once  bool   `yaml:"once"` // makes all iterations of the job when the target is empty
	Until When   `yaml:"until"`
	Probe *Probe `yaml:"probe"` // Probe, if not nil, must answer then
}

// Ask describes a request to an object: a merge patch, or a PUT to a subresource.
type Ask struct {
	Patch map[string]any `yaml:"patch"`
	Put   string         `yaml:"put"` // path of the request, with {namespace} and {name}
}

// Begin describes a request to objects that were set up: an Ask, or the eviction of a pod.
type Begin struct {
	Ask     `yaml:",inline"`
	Drain   *Drain `yaml:"drain"`
	GoesOn  bool   `yaml:"goesOn"`  // says that no new life of the objects begins
	Reboots bool   `yaml:"reboots"` // says that the cluster's operators are meant to reboot its nodes
}

// Then describes a further request after a milestone: an Ask, a deletion, or the objects of a job.
type Then struct {
	After  string `yaml:"after"`
	Ask    `yaml:",inline"`
	Job    string `yaml:"job"`
	Delete bool   `yaml:"delete"`
	// Renews names a resource that the request replaces: news of the old one no longer counts.
	Renews string `yaml:"renews"`
}

// Drain says which pods are evicted from which nodes: from as many nodes as the last job has iterations.
type Drain struct {
	Nodes string `yaml:"nodes"` // label selector
	Pods  string `yaml:"pods"`  // label selector; the first owner's name is the object's
	// Pools, instead of nodes, selects MachineConfigPools, whose nodes are drained and rebooted by iteration.
	Pools string `yaml:"pools"`
}

// Concurrent says between which milestones objects are counted, in all and by place, and their limits.
type Concurrent struct {
	From   string  `yaml:"from"`
	To     string  `yaml:"to"`
	Limits *Limits `yaml:"limits"` // nil for none
}

// GroupBy names labels of objects or nodes that group times, and milestones; without From, from time zero.
type GroupBy struct {
	Labels []string `yaml:"labels"`
	From   string   `yaml:"from"`
	To     string   `yaml:"to"`
}

// Limits describes the limits in the first object of a kind.
type Limits struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	All        Limit  `yaml:"all"`
	PerPlace   Limit  `yaml:"perPlace"`
}

// Limit describes a figure at a path, with its default.
type Limit struct {
	Path    string `yaml:"path"`
	Default int    `yaml:"default"`
}

func (l Limit) name() string { return l.Path[strings.LastIndexByte(l.Path, '.')+1:] }

// Kind implements workload.Followed.
func (o *Objects) Kind(base record.ObjectKind) record.ObjectKind {
	k := base
	k.Object, k.Place = o.Noun, o.Place
	k.Milestones, k.Placed, k.Started, k.There = nil, "", "", o.There
	if o.Begin == nil {
		k.Milestones = append(k.Milestones, record.Milestone{Name: base.Created, Owner: base.Owner(base.Created)})
	} else {
		k.Created = "" // they exist before
	}
	for _, m := range o.Milestones {
		if m.rare() {
			continue
		}
		k.Milestones = append(k.Milestones, record.Milestone{Name: m.Name, Owner: m.By})
		if m.Place != "" {
			k.Placed = m.Name
		}
	}
	k.Milestones = append(k.Milestones, record.Milestone{Name: base.Gone, Owner: base.Owner(base.Created)})
	if c := o.Concurrent; c != nil {
		k.Concurrent = &record.Concurrent{From: c.From, To: c.To}
		if l := c.Limits; l != nil {
			k.Concurrent.Setting, k.Concurrent.PerPlaceSetting = l.All.name(), l.PerPlace.name()
		}
	}
	if by := o.GroupBy; by != nil {
		k.GroupBy = &record.GroupBy{Labels: by.Labels, From: by.From, To: by.To}
	}
	if o.ReadsFIO() {
		k.Metrics = append(slices.Clone(k.Metrics), o.fioMetrics()...)
	}
	k.Bounds = o.Bounds
	k.Troubles = o.troubles(base)
	return k
}

// Join implements workload.Followed.
func (o *Objects) Join(kind record.ObjectKind) record.ObjectKind {
	if o.Awaited() != "" {
		kind.Object = record.Noun{One: "object", Many: "objects"}
	}
	kind.Milestones = slices.Clone(kind.Milestones)
	for _, m := range o.Milestones {
		if !m.rare() {
			kind.Milestones = append(kind.Milestones, record.Milestone{Name: m.Name, Owner: m.By, Of: o.Named(), There: m.Name == o.Awaited()})
		}
	}
	kind.Troubles = o.troubles(kind)
	return kind
}

// rare reports whether not all objects reach the milestone.
func (m *ObjectMilestone) rare() bool { return m.Rare || m.Probe != nil && m.Probe.Where != "" }

// Named returns the name of the kind on record where it is followed beside others.
func (o *Objects) Named() string { return cmp.Or(o.As, o.Resources[0].Kind) }

// Told returns the paths of the values that are on record with an object.
func (o *Objects) Told() (paths []string) {
	if o.GroupBy != nil {
		for _, label := range o.GroupBy.Labels {
			paths = append(paths, "metadata.labels."+gjson.Escape(label))
		}
	}
	return append(paths, o.Tells...)
}

// Awaited implements workload.Followed.
func (o *Objects) Awaited() string {
	if o.Before {
		return ""
	}
	return o.There
}

// Asked reports whether the run asks for such objects, and waits for them.
func (o *Objects) Asked() bool { return o.Changes == "" && !o.Before }

// troubles returns the troubles of these objects, and then those of a kind.
func (o *Objects) troubles(kind record.ObjectKind) (list []record.Trouble) {
	for _, t := range o.Troubles {
		if t.Class != "" {
			list = append(list, record.Trouble{Class: t.Class, What: t.What, Reasons: t.Values})
		}
	}
	return append(list, kind.Troubles...)
}

// Resource returns the index of a resource by name, the first for "".
func (o *Objects) Resource(name string) (index int, ok bool) {
	if name == "" {
		return 0, true
	}
	index = slices.IndexFunc(o.Resources, func(r Resource) bool { return r.Name == name })
	return index, index >= 0
}

// milestoneForm is the form of milestones in objectives and tables.
var milestoneForm = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,39}$`)

// maxMilestones bounds a description's milestones: the tracker keeps bits, one for the creation.
const maxMilestones = 15

type validator struct {
	*strictyaml.Validation
	w       *workload.Workload
	objects *Objects
}

// Check implements workload.Followed.
func (o *Objects) Check(to *strictyaml.Validation, w *workload.Workload) {
	v := &validator{to, w, o}
	if o.Noun.One == "" || o.Noun.Many == "" {
		v.Add("objects.noun", "for example noun: {one: machine, many: machines}", "says what one object and many are called, and one is missing")
	}
	if len(o.Resources) == 0 {
		v.Fail("objects.resources", "is missing: at least one is needed, the object itself first")
	}
	taken := map[string]bool{}
	for i, r := range o.Resources {
		path := strictyaml.Index("objects.resources", i)
		workload.CheckName(to, path+".name", r.Name, taken)
		if r.APIVersion == "" {
			v.Fail(path+".apiVersion", "is missing")
		}
		if r.Kind == "" {
			v.Fail(path+".kind", "is missing")
		}
		if i == 0 && (r.Of != "" || r.Unlabelled) {
			v.Fail(path, "is the object itself: it is of no other, and carries the run's label")
		}
	}
	v.objectMilestones(o)
	for i, t := range o.Troubles {
		path := strictyaml.Index("objects.troubles", i)
		v.when(o, path, &t.When)
		if (t.Class == "") != (t.What == "") {
			v.Fail(path, "class and what go together")
		}
	}
	switch {
	case o.Begin != nil && len(o.SetUp) == 0:
		v.Fail("objects.begin", "asks something of objects that were set up: setUp is missing")
	case o.Begin != nil && ways(o.Begin.Patch != nil, o.Begin.Put != "", o.Begin.Drain != nil) != 1:
		v.Fail("objects.begin", "is one of a patch, a put and a drain")
	case o.Begin != nil && o.Begin.Drain != nil && !o.ofMachines:
		v.Fail("objects.begin.drain", "the target %s drains no nodes", w.Target.Name)
	case o.Begin != nil && o.Begin.Drain != nil && ((o.Begin.Drain.Nodes == "") == (o.Begin.Drain.Pools == "") || o.Begin.Drain.Pods == ""):
		v.Fail("objects.begin.drain", "needs the label selectors pods and either nodes or pools")
	}
	v.then(o)
	for i := range o.Held {
		path := strictyaml.Index("objects.held", i)
		v.when(o, path, &o.Held[i].When)
		if o.Held[i].Name == "" {
			v.Fail(path+".name", "is missing: what takes the time")
		}
	}
	if l := o.Concurrent; l != nil && l.Limits != nil && (l.Limits.APIVersion == "" || l.Limits.Kind == "") {
		v.Fail("objects.atOnce.limits", "needs the apiVersion and kind of the object that tells them")
	}
	for i, s := range o.SetUp {
		path := strictyaml.Index("objects.setUp", i)
		if s.Job == "" {
			v.Fail(path+".job", "is missing: the job of the configuration that is made before the load")
		}
		v.when(o, path+".until", &o.SetUp[i].Until)
		v.probe(path+".probe", s.Probe)
	}
}

func (v *validator) then(o *Objects) {
	if len(o.Then) > 0 && o.Begin != nil {
		v.Fail("objects.then", "is asked of objects that the load makes: leave begin out")
	}
	for i, t := range o.Then {
		path := strictyaml.Index("objects.then", i)
		v.after(o, path+".after", t.After, len(o.Milestones))
		if ways(t.Patch != nil, t.Put != "", t.Job != "", t.Delete) != 1 {
			v.Fail(path, "is one of a patch, a put, a job and delete: true")
		}
		v.when(o, path+".renews", &When{Resource: t.Renews})
	}
}

// after checks that a name is one of the first n milestones.
func (v *validator) after(o *Objects, path, name string, n int) {
	var names []string
	for _, m := range o.Milestones[:n] {
		names = append(names, m.Name)
	}
	if !slices.Contains(names, name) {
		v.Add(path, nearest.OneOf(name, names), "%q is not one of the milestones before it", name)
	}
}

func ways(these ...bool) (n int) {
	for _, is := range these {
		if is {
			n++
		}
	}
	return n
}

func (v *validator) objectMilestones(o *Objects) {
	if n := len(o.Milestones); n == 0 || n > maxMilestones {
		v.Fail("objects.milestones", "must be 1 to %d, are %d", maxMilestones, n)
	}
	base := v.w.Target.Kind
	taken := map[string]bool{base.Created: true, base.Gone: true}
	var names []string
	for i, m := range o.Milestones {
		path := strictyaml.Index("objects.milestones", i)
		switch {
		case !milestoneForm.MatchString(m.Name):
			v.Fail(path+".name", "%q must begin with an upper case letter and consist of letters and digits", m.Name)
		case taken[m.Name]:
			v.Fail(path+".name", "the name %q is taken", m.Name)
		}
		taken[m.Name] = true
		names = append(names, m.Name)
		if strings.TrimSpace(m.By) == "" {
			v.Fail(path+".by", "is missing: whose work it is that objects reach it")
		}
		v.when(o, path, &m.When)
		if m.After != "" {
			v.after(o, path+".after", m.After, i)
		}
		if m.Gone && (m.Resource+m.Path+m.Condition != "" || m.Probe != nil) {
			v.Fail(path+".gone", "is reached when the object is gone, and looks at nothing else")
		}
		v.probe(path+".probe", m.Probe)
	}
	if !slices.Contains(names, o.There) {
		v.Add("objects.there", nearest.OneOf(o.There, names), "%q is not one of the milestones", o.There)
	}
	between := map[string]string{}
	if o.Concurrent != nil {
		between["atOnce.from"], between["atOnce.to"] = o.Concurrent.From, o.Concurrent.To
	}
	if by := o.GroupBy; by != nil {
		between["by.from"], between["by.to"] = cmp.Or(by.From, o.There), by.To
		if len(by.Labels) == 0 {
			v.Fail("objects.by.labels", "is missing: the labels by which times are grouped")
		}
	}
	for key, name := range between {
		if !slices.Contains(names, name) {
			v.Add("objects."+key, nearest.OneOf(name, names), "%q is not one of the milestones", name)
		}
	}
}

func (v *validator) probe(path string, p *Probe) {
	if p != nil && !v.objects.ofMachines {
		v.Fail(path, "the target %s calls no servers", v.w.Target.Name)
	} else if p != nil && (len(p.Addresses) == 0 || p.Port < 1 || p.Port > 65535) {
		v.Fail(path, "needs paths of an address and a port from 1 to 65535")
	} else if p != nil && p.FIO != "" {
		if _, err := v.w.Param(ParamSSHKey); err != nil {
			v.Fail(path+".fio", "needs a parameter %s, which lets it in", ParamSSHKey)
		}
		if _, err := v.w.Param(ParamSSHHostKey); err != nil {
			v.Fail(path+".fio", "needs a parameter %s, by which the machine is known", ParamSSHHostKey)
		}
	}
}

func (v *validator) when(o *Objects, path string, w *When) {
	if _, ok := o.Resource(w.Resource); !ok {
		var names []string
		for _, r := range o.Resources {
			names = append(names, r.Name)
		}
		v.Add(path+".resource", nearest.OneOf(w.Resource, names), "there is no resource %q", w.Resource)
	}
	if w.Path != "" && w.Condition != "" {
		v.Fail(path, "has a path and a condition: one of them")
	}
	if len(w.Values) > 0 && w.Path == "" && w.Condition == "" {
		v.Fail(path+".values", "are of a path or a condition, and there is none")
	}
}

// StampPath returns the path of the milestone's time, "" for none.
func (m *ObjectMilestone) StampPath() string {
	if m.Stamp == "" && m.Condition != "" {
		return `status.conditions.#(type=="` + m.Condition + `").lastTransitionTime`
	}
	return m.Stamp
}

// Opens returns the milestone from which milestone i counts, "" for none.
func (o *Objects) Opens(i int) (name string) {
	if after := o.Milestones[i].After; after != "" {
		return after
	}
	for _, m := range o.Milestones[:i] {
		if slices.ContainsFunc(o.Then, func(t Then) bool { return t.After == m.Name }) {
			name = m.Name
		}
	}
	return name
}
