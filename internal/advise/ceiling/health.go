package ceiling

import (
	"cmp"
	"fmt"
	"maps"
	"plimsoll.dev/plimsoll/internal/record"
	"slices"
	"strings"
)

// Health are facts about how a cluster is.
type Health struct {
	// Checks are the API server's own, by whether they passed; Code is what it
	// answered in all, 200 when it is ready.
	Checks     map[string]bool
	Code       int
	ChecksRead Source

	// BrokenAPIs do not answer; Stays is the namespace that a run is made in and leaves
	// there, "" where it makes and removes its own.
	BrokenAPIs []BrokenAPI
	Stays      string

	Nodes     int
	NotReady  []string
	Cordoned  int
	Pressure  map[string][]string // nodes by what they are short of
	NodesRead Source

	Pods       int
	Unplaced   []string // Pending for longer than a minute
	Restarting []string // their containers end again and again
	NoImage    []string // their images cannot be had
	PodsRead   Source

	// ClockOffset is the server's clock less ours, in seconds; nil is not
	// known.
	ClockOffset *float64
	// Exempt says that priority and fairness does not apply to the user; nil is
	// not known.
	Exempt *bool
	User   string
	// Reads are how long some reads of one object took, in seconds.
	Reads []float64
	// Leftovers are runs that have left something here, and Clean the command
	// that removes it.
	Leftovers []Leftover
	Clean     string
	// Rights are what the workload's run needs.
	Rights []Right
	// Found is what was found about the workload beside that.
	Found []record.HealthFinding
}

// BrokenAPI is an aggregated API that does not answer.
type BrokenAPI struct {
	Name string // of its APIService
	Why  string // "" where that is unknown
}

// Leftover is what a run has left in the cluster.
type Leftover struct {
	Run        string
	Namespaces int
	Alive      bool // it gave a sign of life in the last minute
}

// Right is one thing that a run must be allowed to do.
type Right struct {
	Verb     string `json:"verb"`
	Resource string `json:"resource"`            // such as pods, deployments.apps, or a path such as /metrics
	Where    string `json:"namespace,omitempty"` // "" for anywhere
	For      string `json:"for"`                 // what it does for the run, as a sentence goes on
	// Optional says that a run goes on without it, and tells less or takes longer.
	Optional bool `json:"optional"`
	Allowed  bool `json:"-"`
	// Why is why it is unknown whether it is allowed, "" when it is known.
	Why string `json:"-"`
}

func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Where != "" {
		text += " in " + r.Where
	}
	return text
}

const (
	// slowRead is the Kubernetes objective for reading one object.
	slowRead = 1.0
	// clockApart is by how much clocks may differ: an HTTP date has whole
	// seconds, so less than one cannot be told.
	clockApart = 1.5
	// named is how many names a finding gives.
	named = 3
)

// Vital says how the API server, the nodes and the pods are: without them no
// load makes sense. The worst comes first.
func Vital(h Health) []record.HealthFinding {
	return worstFirst(slices.Concat(h.server(), h.apis(), h.nodes(), h.pods()))
}

// Judge says what all of the facts mean for a load. Everything that was looked
// at has its finding, the worst first.
func Judge(h Health) []record.HealthFinding {
	list := Vital(h)
	add := func(s record.Severity, what, hint, format string, args ...any) {
		list = append(list, record.HealthFinding{Severity: s, What: what, Text: fmt.Sprintf(format, args...), Hint: hint})
	}
	switch {
	case h.ClockOffset == nil:
		add(record.SeverityWarning, "clock", "", "the server does not tell its time")
	case *h.ClockOffset > clockApart || *h.ClockOffset < -clockApart:
		add(record.SeverityWarning, "clock", "set both by NTP", "the server's clock is %+.1f s from this machine's: its stamps are not comparable with the times of a run", *h.ClockOffset)
	default:
		add(record.SeverityOK, "clock", "", "the server's clock is within %.1f s of this machine's", clockApart)
	}
	switch {
	case h.Exempt == nil:
		add(record.SeverityWarning, "priority and fairness", "", "whether it applies to this user is unknown")
	case *h.Exempt:
		add(record.SeverityWarning, "priority and fairness", "load with an ordinary user", "it does not apply to %s (system:masters, or a flow schema of the level exempt): this load is not held back as others' is, and can starve them", cmp.Or(h.User, "this user"))
	default:
		add(record.SeverityOK, "priority and fairness", "", "it applies to %s as to others", cmp.Or(h.User, "this user"))
	}
	if len(h.Reads) > 0 {
		slowest, middle := slices.Max(h.Reads), median(h.Reads)
		if slowest > slowRead {
			add(record.SeverityWarning, "API latency", "find out what loads it already", "reading one object takes %s, at most %s: the Kubernetes objective is 1 s", millis(middle), millis(slowest))
		} else {
			add(record.SeverityOK, "API latency", "", "reading one object takes %s, at most %s", millis(middle), millis(slowest))
		}
	}
	switch n := len(h.Leftovers); {
	case n > 0:
		var runs []string
		for _, l := range h.Leftovers {
			text := fmt.Sprintf("run %s (%s)", l.Run, plural(l.Namespaces, "namespace"))
			if l.Alive {
				text += ", which is going on"
			}
			runs = append(runs, text)
		}
		add(record.SeverityWarning, "leftovers", h.Clean, "there is something of %s", Some(runs))
	case h.Clean != "":
		add(record.SeverityOK, "leftovers", "", "no earlier run has left anything")
	}
	list = append(list, h.rights()...)
	list = append(list, h.Found...)
	return worstFirst(list)
}

func worstFirst(list []record.HealthFinding) []record.HealthFinding {
	rank := func(s record.Severity) int {
		return slices.Index([]record.Severity{record.SeverityError, record.SeverityWarning, record.SeverityOK}, s)
	}
	slices.SortStableFunc(list, func(a, b record.HealthFinding) int { return cmp.Compare(rank(a.Severity), rank(b.Severity)) })
	return list
}

// server judges the API server's own checks.
func (h Health) server() []record.HealthFinding {
	if !h.ChecksRead.Known() {
		return []record.HealthFinding{{Severity: record.SeverityWarning, What: "API server", Text: "whether it is ready is unknown: " + h.ChecksRead.Why}}
	}
	var failing []string
	etcd, etcdSeen := true, false
	for _, name := range slices.Sorted(maps.Keys(h.Checks)) {
		if !h.Checks[name] {
			failing = append(failing, name)
		}
		if strings.HasPrefix(name, "etcd") {
			etcdSeen = true
			etcd = etcd && h.Checks[name]
		}
	}
	list := []record.HealthFinding{}
	switch {
	case h.Code != 200 && len(failing) == 0:
		list = append(list, record.HealthFinding{Severity: record.SeverityError, What: "API server", Text: fmt.Sprintf("it is not ready: /readyz answers %d", h.Code), Stops: true})
	case h.Code != 200:
		list = append(list, record.HealthFinding{Severity: record.SeverityError, What: "API server", Text: "it is not ready: " + Some(failing) + " failing", Stops: true})
	default:
		list = append(list, record.HealthFinding{Severity: record.SeverityOK, What: "API server", Text: fmt.Sprintf("ready, %s passed", plural(len(h.Checks), "check"))})
	}
	switch {
	case etcdSeen && !etcd:
		list = append(list, record.HealthFinding{Severity: record.SeverityError, What: "etcd", Text: "the API server cannot use it", Stops: true})
	case etcdSeen:
		list = append(list, record.HealthFinding{Severity: record.SeverityOK, What: "etcd", Text: "the API server reaches it"})
	default:
		list = append(list, record.HealthFinding{Severity: record.SeverityWarning, What: "etcd", Text: "the API server does not tell of it"})
	}
	return list
}

// apis judges the aggregated APIs: while one does not answer, the controller manager
// removes no namespace at all.
func (h Health) apis() []record.HealthFinding {
	if len(h.BrokenAPIs) == 0 {
		return nil
	}
	var names []string
	for _, b := range h.BrokenAPIs {
		name := b.Name
		if b.Why != "" {
			name += " (" + b.Why + ")"
		}
		names = append(names, name)
	}
	f := record.HealthFinding{
		Severity: record.SeverityError, What: "APIs", Text: Some(names) + " does not answer: until it does, every namespace that is deleted stays in Terminating, and a run's own are left",
		Hint: "repair what serves it, or take it away: kubectl delete apiservice " + h.BrokenAPIs[0].Name,
	}
	if len(names) > 1 {
		f.Text = Some(names) + " do not answer: until they do, every namespace that is deleted stays in Terminating, and a run's own are left"
	}
	if h.Stays != "" {
		f.Severity = record.SeverityWarning
	}
	return []record.HealthFinding{f}
}

// nodes judges the nodes' conditions.
func (h Health) nodes() []record.HealthFinding {
	if !h.NodesRead.Known() {
		return []record.HealthFinding{{Severity: record.SeverityWarning, What: "nodes", Text: "how they are is unknown: " + h.NodesRead.Why}}
	}
	ready := h.Nodes - len(h.NotReady)
	var list []record.HealthFinding
	switch {
	case h.Nodes == 0:
		list = append(list, record.HealthFinding{Severity: record.SeverityError, What: "nodes", Text: "there are none", Stops: true})
	case ready == 0:
		list = append(list, record.HealthFinding{Severity: record.SeverityError, What: "nodes", Text: fmt.Sprintf("none of %d is Ready: %s", h.Nodes, Some(h.NotReady)), Stops: true})
	case len(h.NotReady) > 0:
		list = append(list, record.HealthFinding{Severity: record.SeverityWarning, What: "nodes", Text: fmt.Sprintf("%d of %d are not Ready: %s", len(h.NotReady), h.Nodes, Some(h.NotReady))})
	default:
		text := fmt.Sprintf("all %d are Ready", h.Nodes)
		if h.Cordoned > 0 {
			text += fmt.Sprintf(", %d of them take no pods (cordoned)", h.Cordoned)
		}
		list = append(list, record.HealthFinding{Severity: record.SeverityOK, What: "nodes", Text: text})
	}
	for _, kind := range slices.Sorted(maps.Keys(h.Pressure)) {
		list = append(list, record.HealthFinding{Severity: record.SeverityWarning, What: "nodes", Text: fmt.Sprintf("%s on %s", kind, Some(h.Pressure[kind])), Hint: "a node under pressure evicts pods and takes no new ones"})
	}
	return list
}

// pods judges the pods that are there.
func (h Health) pods() []record.HealthFinding {
	if !h.PodsRead.Known() {
		return []record.HealthFinding{{Severity: record.SeverityWarning, What: "pods", Text: "how they are is unknown: " + h.PodsRead.Why}}
	}
	var list []record.HealthFinding
	for _, trouble := range []struct {
		pods       []string
		what, hint string
	}{
		{h.Unplaced, "Pending for more than a minute", "many Pending pods take CPU on every node: delete those that cannot be placed"},
		{h.Restarting, "end again and again (CrashLoopBackOff)", ""},
		{h.NoImage, "without their image (ErrImagePull, ImagePullBackOff)", ""},
	} {
		if n := len(trouble.pods); n > 0 {
			list = append(list, record.HealthFinding{Severity: record.SeverityWarning, What: "pods", Text: fmt.Sprintf("%s %s: %s", plural(n, "pod"), trouble.what, Some(trouble.pods)), Hint: trouble.hint})
		}
	}
	if len(list) == 0 {
		list = append(list, record.HealthFinding{Severity: record.SeverityOK, What: "pods", Text: fmt.Sprintf("%s, none in trouble", plural(h.Pods, "pod"))})
	}
	return list
}

// rights judges what the user may do.
func (h Health) rights() []record.HealthFinding {
	if len(h.Rights) == 0 {
		return nil
	}
	var denied, without, unknown []string
	why := ""
	for _, r := range h.Rights {
		switch {
		case r.Why != "":
			unknown, why = append(unknown, r.String()), r.Why
		case !r.Allowed && r.Optional:
			without = append(without, r.String())
		case !r.Allowed:
			denied = append(denied, r.String())
		}
	}
	user := cmp.Or(h.User, "this user")
	var list []record.HealthFinding
	if len(denied) > 0 {
		list = append(list, record.HealthFinding{Severity: record.SeverityError, What: "rights", Text: fmt.Sprintf("%s may not %s", user, strings.Join(denied, ", ")),
			Hint: "a run needs all of it: 'plimsoll rbac WORKLOAD' prints an account with the rights, or name another user"})
	}
	if len(without) > 0 {
		list = append(list, record.HealthFinding{Severity: record.SeverityWarning, What: "rights", Text: fmt.Sprintf("%s may not %s: a run goes on without it, and tells less", user, strings.Join(without, ", ")),
			Hint: "'plimsoll rbac WORKLOAD' says what each is for"})
	}
	if len(unknown) > 0 {
		list = append(list, record.HealthFinding{Severity: record.SeverityWarning, What: "rights", Text: fmt.Sprintf("whether %s may %s is unknown: %s", user, Some(unknown), why)})
	}
	if len(list) == 0 {
		list = append(list, record.HealthFinding{Severity: record.SeverityOK, What: "rights", Text: fmt.Sprintf("%s may do all %d things that a run asks for", user, len(h.Rights))})
	}
	return list
}

// Worst is the worst severity of findings, OK of none.
func Worst(list []record.HealthFinding) record.Severity {
	worst := record.SeverityOK
	for _, f := range list {
		if f.Severity == record.SeverityError || f.Severity == record.SeverityWarning && worst == record.SeverityOK {
			worst = f.Severity
		}
	}
	return worst
}

// Stopping are the findings that no load should begin with.
func Stopping(list []record.HealthFinding) []record.HealthFinding {
	return slices.DeleteFunc(slices.Clone(list), func(f record.HealthFinding) bool { return !f.Stops })
}

// Some names the first of a list and counts the rest.
func Some(names []string) string {
	if len(names) <= named+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:named], ", "), len(names)-named)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[(len(sorted)-1)/2]
}

func millis(seconds float64) string {
	if seconds >= 1 {
		return fmt.Sprintf("%.2f s", seconds)
	}
	return fmt.Sprintf("%.3g ms", seconds*1000)
}
