// Package described is what a workload says of the objects that are followed on a
// cluster, instead of pods: its key objects, which plan/workload keeps as written.
package described

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Objects says what is followed where that is not pods: which resources of the
// API tell of an object, and when it has reached which milestone.
type Objects struct {
	// Noun is what one is called, and Place what it is on, where it is on one.
	Noun  record.Noun `yaml:"noun"`
	Place record.Noun `yaml:"place"`
	// Resources tell of the objects. The first is the object itself: it is
	// created with it and gone with it.
	Resources []Resource `yaml:"resources"`
	// Milestones are in the order in which objects reach them, after being
	// created; There is the one that counts as there. Those behind it are
	// reached too, and nothing waits for them.
	Milestones []ObjectMilestone `yaml:"milestones"`
	There      string            `yaml:"there"`
	// Troubles are what says why an object is not there.
	Troubles []ObjectTrouble `yaml:"troubles"`
	// SetUp is what is made before the load and not measured, one stage after
	// the other.
	SetUp []SetUp `yaml:"setUp"`
	// Begin, if not nil, is what is asked of an object that was set up, and
	// what its times count from; else that is its creation.
	Begin *Begin `yaml:"begin"`
	// Then is what is asked of an object further, each once it has reached a
	// milestone.
	Then []Then `yaml:"then"`
	// Held are the times for which something held, of which the distribution in
	// the step is told.
	Held []Held `yaml:"held"`
	// Concurrent, if not nil, says between which milestones objects are counted.
	Concurrent *Concurrent `yaml:"atOnce"`
	// GroupBy, if not nil, says by which labels the objects' times are grouped.
	GroupBy *GroupBy `yaml:"by"`
	// Bounds are what can keep the load from going faster, by samples that a lab
	// or a cluster gives.
	Bounds []record.Bound `yaml:"bounds"`

	ofMachines bool
}

// MachinesOf returns what a workload says of virtual machines, nil where it has none.
func MachinesOf(w *workload.Workload) *Objects {
	if o := Of(w); o != nil && o.ofMachines {
		return o
	}
	return nil
}

// New is a description that is to be read. OfMachines is one on a target that calls
// servers and drains nodes.
func New() workload.Followed { return new(Objects) }

// OfMachines is told of in New.
func OfMachines() workload.Followed { return &Objects{ofMachines: true} }

// Of is what a workload says of the objects that are followed, nil where these are
// pods, and without a workload.
func Of(w *workload.Workload) *Objects {
	if w == nil {
		return nil
	}
	o, _ := w.Followed.(*Objects)
	return o
}

// Resource is a resource of the API whose news tells of the objects.
type Resource struct {
	Name       string `yaml:"name"` // for the rest of the description
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	// Of says which object one tells of: "name" (the default) has the object's
	// name and namespace, "owner" is owned by it, "place" is the node on which it
	// was when its drain began, "all" tells of all of them, and else a path to its name.
	Of string `yaml:"of"`
	// Unlabelled says that none carries the run's label, since whoever makes it
	// does not hand labels on: those in the run's namespaces are followed.
	Unlabelled bool `yaml:"unlabelled"`
	// Says is the path to a text that is shown and put on record as it changes.
	Says string `yaml:"says"`
}

// Held is something that holds of a resource for a time, which is reported.
type Held struct {
	When `yaml:",inline"`
	Name string `yaml:"name"` // what takes that time
	// Each says that the times are those of each object by its name.
	Each bool `yaml:"each"`
}

// When says what must hold of a resource. Without a path and a condition it
// holds as soon as there is one.
type When struct {
	Resource string `yaml:"resource"` // the first resource without one
	// Path is where in it a value stands, in gjson's syntax: status.phase. It
	// holds with one of Values, or with any value that is not empty.
	Path   string   `yaml:"path"`
	Values []string `yaml:"values"`
	// Condition is the type of one of its status.conditions, instead of a path:
	// it holds where that is True, or has one of Values.
	Condition string `yaml:"condition"`
}

// ObjectMilestone is a milestone and when it is reached.
type ObjectMilestone struct {
	Name string `yaml:"name"`
	By   string `yaml:"by"` // whose work it is
	When `yaml:",inline"`
	// After is a milestone before which this one is not looked for. Without one
	// it is the last of those before it at which something further is asked.
	After string `yaml:"after"`
	// Gone says that it is reached once the object is gone, without more.
	Gone bool `yaml:"gone"`
	// Stamp is the path to its time by the server's clock, "" for none; a
	// condition has one by itself.
	Stamp string `yaml:"stamp"`
	// Place is the path to where the object is from then on.
	Place string `yaml:"place"`
	// Probe, if not nil, is what must answer besides, at an address that the
	// resource tells.
	Probe *Probe `yaml:"probe"`
}

// Probe is a server that is called until it answers.
type Probe struct {
	// Addresses are paths to its IP address, which may tell a port too: the
	// first one that there is counts.
	Addresses []string `yaml:"addresses"`
	Port      int      `yaml:"port"`   // where the address tells none
	Banner    string   `yaml:"banner"` // what it must begin with, "" for a connection alone
	// Keep says that it is called on, and that the times without an answer are
	// told.
	Keep bool `yaml:"keep"`
	// FIO is a command that is run on it by SSH as root, once, and prints what a fio
	// has done, as json+; the milestone is reached when it has. The keys are those
	// of the parameters ParamSSHKey and ParamSSHHostKey, which the run fills in.
	FIO string `yaml:"fio"`
	// Phase is what the figures of that IO are for, "" where there is one.
	Phase string `yaml:"phase"`
	// Where, if not "", is a path without whose value there is nothing to be called.
	Where string `yaml:"where"`
}

// Parameters that a run fills in: with the public key that opens its machines, and
// with the private key that they show, by which it knows them.
const (
	ParamSSHKey     = "sshKey"
	ParamSSHHostKey = "sshHostKey"
)

// ParamSSHFrom is the parameter that says from where machines are called:
// SSHFromForward is through the API server, else from this machine.
const (
	ParamSSHFrom   = "sshFrom"
	SSHFromForward = "portforward"
)

// ParamGuestIOPS is the parameter without which, or with 0, objects do no IO. Where
// a workload that reads what they did has none, they do some.
const ParamGuestIOPS = "guestIOPS"

// ReadsFIO reports whether objects tell of IO that they do.
func (o *Objects) ReadsFIO() bool { return len(o.phases()) > 0 }

// phases are those that figures of IO are for.
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

// DoesIO reports whether the objects of a workload do IO, with these parameters.
func DoesIO(w *workload.Workload, params workload.Params) bool {
	_, err := w.Param(ParamGuestIOPS)
	return Of(w).ReadsFIO() && (err != nil || params.Int(ParamGuestIOPS) > 0)
}

// SourceFIO is the source of samples of IO that objects have done, whose values
// are those of the metrics that a kind has for it.
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

// ObjectTrouble is something that keeps an object from being there.
type ObjectTrouble struct {
	When    `yaml:",inline"`
	Reason  string `yaml:"reason"`  // path; else the value that Path or Condition found
	Message string `yaml:"message"` // path, "" for none
	// Final says that the object will never be there, Unplaced that there is no
	// place for it now.
	Final    bool `yaml:"final"`
	Unplaced bool `yaml:"unplaced"`
	// Class and What say what kind of trouble it is, for what broke first.
	Class string `yaml:"class"`
	What  string `yaml:"what"`
}

// SetUp is a stage of what is made before the load: a job of the configuration,
// of which as many iterations are made as the level takes, and what must hold of
// each thing made.
type SetUp struct {
	Job string `yaml:"job"`
	// Once says that all iterations of the job are made, when the target is
	// empty.
	Once  bool `yaml:"once"`
	Until When `yaml:"until"`
	// Probe, if not nil, is what must answer then.
	Probe *Probe `yaml:"probe"`
}

// Ask is a request to an object: a merge patch, or a call of a subresource by
// PUT.
type Ask struct {
	Patch map[string]any `yaml:"patch"`
	// Put is the path of the call, with {namespace} and {name} in it.
	Put string `yaml:"put"`
}

// Begin is a request to each object that was set up: an Ask, or the eviction of
// its pod from a node that is drained.
type Begin struct {
	Ask   `yaml:",inline"`
	Drain *Drain `yaml:"drain"`
	// GoesOn says that objects go on with what they had: no new life begins.
	GoesOn bool `yaml:"goesOn"`
	// Reboots says that the cluster's operators reboot its nodes meanwhile, as is
	// meant.
	Reboots bool `yaml:"reboots"`
}

// Then is a further request, to an object that has reached a milestone: an Ask,
// its deletion, or what a job of the configuration makes in the object's own
// iteration and replica.
type Then struct {
	After  string `yaml:"after"`
	Ask    `yaml:",inline"`
	Job    string `yaml:"job"`
	Delete bool   `yaml:"delete"`
	// Renews is a resource that gets another object by the request: what the
	// present one tells counts no more.
	Renews string `yaml:"renews"`
}

// Drain says what is evicted from which nodes: as many nodes as the last job has
// iterations.
type Drain struct {
	Nodes string `yaml:"nodes"` // label selector of those that may be drained
	Pods  string `yaml:"pods"`  // label selector; the first owner's name is the object's
	// Pools, instead of nodes, is the label selector of the MachineConfigPools to
	// which a configuration is rolled out: whoever does that drains their nodes
	// and reboots them. An iteration is a pool.
	Pools string `yaml:"pools"`
}

// Concurrent says between which milestones objects are counted, in all and on one
// place, and what says how many may be there.
type Concurrent struct {
	From   string  `yaml:"from"`
	To     string  `yaml:"to"`
	Limits *Limits `yaml:"limits"` // nil: there are none
}

// GroupBy names labels of the objects, or of the nodes that they are on, by which
// their times are grouped, and between which milestones these are; without From
// they are from time zero.
type GroupBy struct {
	Labels []string `yaml:"labels"`
	From   string   `yaml:"from"`
	To     string   `yaml:"to"`
}

// Limits are those that the first object of a kind has that the cluster has.
type Limits struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	All        Limit  `yaml:"all"`
	PerPlace   Limit  `yaml:"perPlace"`
}

// Limit is a figure at a path, and what holds where there is none.
type Limit struct {
	Path    string `yaml:"path"`
	Default int    `yaml:"default"`
}

// name is what a limit is called: the last key of its path.
func (l Limit) name() string { return l.Path[strings.LastIndexByte(l.Path, '.')+1:] }

// Kind implements workload.Followed.
func (o *Objects) Kind(base record.ObjectKind) record.ObjectKind {
	k := base
	k.Object, k.Place = o.Noun, o.Place
	k.Milestones, k.Placed, k.Started, k.There = nil, "", "", o.There
	if o.Begin == nil {
		k.Milestones = append(k.Milestones, record.Milestone{Name: base.Created, Owner: base.Owner(base.Created)})
	} else {
		k.Created = "" // they are there before they are asked for anything
	}
	for _, m := range o.Milestones {
		if m.Probe != nil && m.Probe.Where != "" {
			continue // not all objects have it to reach
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
	k.Troubles = slices.Clone(base.Troubles)
	for _, t := range slices.Backward(o.Troubles) {
		if t.Class != "" {
			k.Troubles = slices.Insert(k.Troubles, 0, record.Trouble{Class: t.Class, What: t.What, Reasons: t.Values})
		}
	}
	return k
}

// Resource is the resource of that name, the first for "".
func (o *Objects) Resource(name string) (index int, ok bool) {
	if name == "" {
		return 0, true
	}
	index = slices.IndexFunc(o.Resources, func(r Resource) bool { return r.Name == name })
	return index, index >= 0
}

// milestoneForm is how a milestone stands in objectives and tables.
var milestoneForm = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,39}$`)

// maxMilestones bounds the milestones of a description: what follows objects
// keeps them as bits, and one is that the object was created.
const maxMilestones = 15

// validator checks the objects of a workload.
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

// ways is how many of these a request is.
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

// when checks what must hold of a resource, and what it leaves open.
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

// StampPath is the path to a milestone's time, "" for none.
func (m *ObjectMilestone) StampPath() string {
	if m.Stamp == "" && m.Condition != "" {
		return `status.conditions.#(type=="` + m.Condition + `").lastTransitionTime`
	}
	return m.Stamp
}

// Opens is the milestone before which the milestone of an index is not looked
// for, "" for none.
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
