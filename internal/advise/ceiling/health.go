package ceiling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
)

// Health holds facts about the state of a cluster.
type Health struct {
	Checks     map[string]bool // the API server's own, and whether they passed
	Code       int             // of /readyz: 200 if it is ready
	ChecksRead Source

	BrokenAPIs []BrokenAPI
	Stays      string // the namespace that a run uses and leaves there, "" if it makes its own

	Nodes     int
	NotReady  []string
	Cordoned  int
	Pressure  map[string][]string // nodes by what they are short of
	NodesRead Source

	Pods       int
	Unplaced   []string // Pending for longer than a minute
	Restarting []string // their containers end repeatedly
	NoImage    []string // their images cannot be pulled
	PodsRead   Source

	ClockOffset *float64 // the server's clock minus ours, in seconds; nil is unknown
	Exempt      *bool    // priority and fairness does not apply to the user; nil is unknown
	User        string
	Reads       []float64  // seconds that reads of one object took
	Leftovers   []Leftover // of runs
	Clean       string     // the command that removes Leftovers
	Rights      []Right    // that the workload's run needs
	Found       []record.HealthFinding
}

// BrokenAPI is an aggregated API that does not answer.
type BrokenAPI struct {
	Name string // of its APIService
	Why  string // "" if unknown
}

// Leftover counts the namespaces that a run left in the cluster.
type Leftover struct {
	Run        string
	Namespaces int
	Alive      bool // it gave a sign of life in the last minute
}

// Right is an action that a run must be allowed.
type Right struct {
	Verb     string `json:"verb"`
	Resource string `json:"resource"`            // such as pods, deployments.apps, or a path such as /metrics
	Where    string `json:"namespace,omitempty"` // "" for anywhere
	For      string `json:"for"`                 // what it does for the run, as the rest of a sentence
	Optional bool   `json:"optional"`            // a run works without it, with less information or slower
	Allowed  bool   `json:"-"`
	Why      string `json:"-"` // why Allowed is unknown, "" if it is known
}

func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Where != "" {
		text += " in " + r.Where
	}
	return text
}

const (
	slowRead   = 1.0 // seconds: the Kubernetes objective for reading one object
	clockApart = 1.5 // seconds by which clocks may differ: an HTTP date has whole seconds
	named      = 3   // names in a finding
)

// Vital judges the API server, the nodes and the pods, which every load needs. The worst finding comes first.
func Vital(h Health) []record.HealthFinding {
	return worstFirst(slices.Concat(h.server(), h.apis(), h.nodes(), h.pods()))
}

// Judge judges all facts for a load. Everything that was read has its finding, the worst first.
func Judge(h Health) []record.HealthFinding {
	list := Vital(h)
	add := func(s record.Severity, what, hint, format string, args ...any) {
		list = append(list, record.HealthFinding{Severity: s, What: what, Text: fmt.Sprintf(format, args...), Hint: hint})
	}
	switch {
	case h.ClockOffset == nil:
		add(record.SeverityWarning, "clock", "", "the server does not report its time")
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
		slowest, middle := slices.Max(h.Reads), slices.Sorted(slices.Values(h.Reads))[(len(h.Reads)-1)/2]
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
		list = append(list, record.HealthFinding{Severity: record.SeverityWarning, What: "etcd", Text: "the API server does not report etcd's health"})
	}
	return list
}

// apis judges the aggregated APIs: while one does not answer, the controller manager removes no namespace.
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

// Worst returns the worst severity of findings, OK without findings.
func Worst(list []record.HealthFinding) record.Severity {
	worst := record.SeverityOK
	for _, f := range list {
		if f.Severity == record.SeverityError || f.Severity == record.SeverityWarning && worst == record.SeverityOK {
			worst = f.Severity
		}
	}
	return worst
}

// Stopping returns the findings with which no load should begin.
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

func millis(seconds float64) string {
	if seconds >= 1 {
		return fmt.Sprintf("%.2f s", seconds)
	}
	return fmt.Sprintf("%.3g ms", seconds*1000)
}
