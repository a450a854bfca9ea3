package view

import (
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// broken is a search of which the second step broke.
func broken() result.Result {
	r := twoSteps()
	r.Steps[1].Breaches = []result.Breach{
		{Step: 2, Time: "2030-01-02T03:05:06.500000Z", What: "the server throttled requests (429)", Kind: result.BreachThrottling, Usual: true, Count: 7, Load: result.StepProgress{Asked: 150, There: 120, Level: 75}},
		{Step: 2, Time: "2030-01-02T03:05:07.000000Z", What: "no node had room for objects", Kind: "scheduling", Count: 14, Object: "ns/a", Message: "Unschedulable: 0/2 nodes are available: 2 Too many pods.", Load: result.StepProgress{Asked: 210, There: 190, Level: 105}},
		{Step: 2, Time: "2030-01-02T03:05:10.000000Z", What: "images were not pulled", Kind: "images", Count: 2, Object: "ns/b", Message: "ErrImagePull: not found", Load: result.StepProgress{Asked: 220, There: 200, Level: 110}},
		{Step: 2, Time: "2030-01-02T03:06:05.000000Z", What: "all Ready: 20 of 220 did not reach it", Kind: result.BreachMissing, Decided: true, Count: 20, Load: result.StepProgress{Asked: 220, There: 200, Level: 110}},
	}
	r.BrokeFirst = &result.BrokeFirst{Goal: "ready", Step: 2, Level: 110, Breach: r.Steps[1].Breaches[1], Says: "every node was full", Conditions: &result.Conditions{NormalStep: 1, Figures: []result.Figure{
		{Name: "pending", Value: new(20.0), Normal: new(4.0), Ratio: new(5.0)},
		{Name: "request", Unit: "s", Value: new(0.02), Normal: new(0.01), Ratio: new(2.0)},
		{Name: "machine CPU", Unit: "%", Value: new(85.5)},
	}}}
	return r
}

// What broke first comes in order of time, with the load at each moment and the
// conditions at the first.
func TestBroke(t *testing.T) {
	stream := broken()
	stream.Steps[1].Requests = &result.StreamRequests{}
	stream.Steps[1].Breaches = []result.Breach{{Step: 2, Time: "2030-01-02T03:05:06.000000Z", What: "requests failed", Kind: result.BreachErrors, Count: 3, Load: result.StepProgress{Backlog: 40}}}
	stream.BrokeFirst.Conditions = nil
	many := broken()
	for len(many.Steps[1].Breaches) < 11 {
		many.Steps[1].Breaches = append(many.Steps[1].Breaches, many.Steps[1].Breaches[3])
	}
	many.BrokeFirst.Conditions.Figures = nil
	for i, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		many.BrokeFirst.Conditions.Figures = append(many.BrokeFirst.Conditions.Figures, result.Figure{Name: name, Unit: "s", Value: new(1.0), Normal: new(1.0), Ratio: new(float64(7 - i))})
	}
	many.BrokeFirst.Conditions.Figures[2].Ratio = nil
	fell := broken()
	fell.BrokeFirst.Conditions.Figures = nil
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		fell.BrokeFirst.Conditions.Figures = append(fell.BrokeFirst.Conditions.Figures, result.Figure{Name: name, Unit: "s", Value: new(1.0), Normal: new(2.0), Ratio: new(0.5)})
	}
	unknown := broken()
	unknown.BrokeFirst.Step = 9
	head := []string{"What broke first, in step 2 at 110:",
		"  usual    after 1.50 s, with 120 of 150 ready: the server throttled requests (429) (7)",
		"  first    after 2.00 s, with 190 of 210 ready: no node had room for objects (14)",
		"  seen     after 5.00 s, with 200 of 220 ready: images were not pulled (2)",
		"           ns/b: ErrImagePull: not found"}
	decided := "  decided  after 60.0 s, with 200 of 220 ready: all Ready: 20 of 220 did not reach it"
	checkSections(t, []section{
		{"nothing broke", one(broke(twoSteps())), ""},
		{"the step is not there", one(broke(unknown)), ""},
		{"nodes were full", one(broke(broken())), lines(append(head, decided,
			"  Conditions then (normal is step 1 while it was loaded):",
			"condition|then|normal|ratio",
			"pending|20|4|5",
			"request|20 ms|10 ms|2",
			"machine CPU|85.5%|-|-",
			"  Every node was full.")...)},
		{"a stream", one(broke(stream)), lines("What broke first, in step 2 at 110:", "  seen     after 1.00 s, with 40 requests behind: requests failed (3)")},
		{"more than are shown", one(broke(many)), lines(append(head, decided, decided, decided, decided, decided,
			"  and 3 more, in result.json",
			"  Conditions then (normal is step 1 while it was loaded; of 7, those that grew most):",
			"condition|then|normal|ratio", "a|1.00 s|1.00 s|7", "b|1.00 s|1.00 s|6", "d|1.00 s|1.00 s|4", "e|1.00 s|1.00 s|3", "f|1.00 s|1.00 s|2",
			"  Every node was full.")...)},
		{"none of them grew", one(broke(fell)), lines(append(head, decided,
			"  Conditions then (normal is step 1 while it was loaded; 6 of 7, and none is known to have grown):",
			"condition|then|normal|ratio", "a|1.00 s|2.00 s|0.5", "b|1.00 s|2.00 s|0.5", "c|1.00 s|2.00 s|0.5", "d|1.00 s|2.00 s|0.5", "e|1.00 s|2.00 s|0.5", "f|1.00 s|2.00 s|0.5",
			"  Every node was full.")...)},
	})
}

// What broke in other steps comes once, with the steps.
func TestOtherBreaches(t *testing.T) {
	r := broken()
	r.BrokeFirst.Step = 1
	again := r.Steps[1]
	again.ID = 3
	r.Steps = append(r.Steps, again)
	checkSections(t, []section{
		{"nothing else broke", one(otherBreaches(broken())), ""},
		{"in two steps", one(otherBreaches(r)), lines("Breaches and troubles in the other steps:",
			"  usual    the server throttled requests (429), in steps 2, 3 (14 times), first in step 2 after 1.50 s",
			"  seen     no node had room for objects, in steps 2, 3 (28 times), first in step 2 after 2.00 s",
			"  seen     images were not pulled, in steps 2, 3 (4 times), first in step 2 after 5.00 s",
			"  decided  all Ready, in steps 2, 3, first in step 2 after 60.0 s: 20 of 220 did not reach it")},
	})
}

// Known failures are named with what to do, those of steps that held in one line.
func TestDiagnosis(t *testing.T) {
	one := func(name string, failing bool, steps ...int) result.Diagnosis {
		return result.Diagnosis{Signature: name, Title: "Title of " + name, Evidence: "14 pods", Explanation: "Nodes are full.", Remedy: "raise max-pods", Step: steps[0], Steps: steps, Failing: failing}
	}
	many := result.Result{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		many.Diagnosis = append(many.Diagnosis, one(name, true, 2))
	}
	said := twoSteps()
	said.Diagnosis = []result.Diagnosis{{Signature: "full", Title: "Full nodes", Evidence: "14 pods: 0/2 nodes are available: 2 Too many pods.", Explanation: "Nodes are full.", Remedy: "raise max-pods", Step: 2, Steps: []int{2}, Failing: true}}
	var all []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		all = append(all, "  Title of "+name+" ("+name+", step 2)", "    14 pods", "    Nodes are full.", "    To do: raise max-pods")
	}
	checkSections(t, []section{
		{"none", []Section{diagnosis(result.Result{})}, ""},
		{"one that failed, one of a step that passed and one of an invalid step", []Section{diagnosis(result.Result{
			Steps:     []result.Step{{ID: 1, Verdict: slo.Pass}, {ID: 2, Verdict: slo.Fail}, {ID: 3, Verdict: slo.Invalid}},
			Diagnosis: []result.Diagnosis{one("full", true, 2, 4, 5), one("slow", false, 1), one("lost", false, 3)},
		})}, lines(
			"Known failures that match:", "  Title of full (full, step 2 and 2 more)", "    14 pods", "    Nodes are full.", "    To do: raise max-pods",
			"", "Seen in steps that passed: Title of slow (slow, step 1)", "Seen in steps that decide nothing: Title of lost (lost, step 3)")},
		{"what was told as a reason is not told again", []Section{diagnosis(said)}, lines("Known failures that match:", "  Full nodes (full, step 2)", "    14 pods", "    Nodes are full.", "    To do: raise max-pods")},
		{"more than are shown", []Section{diagnosis(many)}, lines(append(append([]string{"Known failures that match:"}, all...), "  and 2 more, in result.json")...)},
	})
}

// The page says of what broke the same, and puts the step that decided first.
func TestBrokeOnThePage(t *testing.T) {
	if p := brokeOf(twoSteps(), "pods/node"); p != nil {
		t.Errorf("nothing broke: %+v", p)
	}
	r := broken()
	r.Steps[0].Breaches = r.Steps[1].Breaches[:1]
	p := brokeOf(r, "pods/node")
	if p.Lead != "In step 2, at 110 pods/node, the first breach came after 2.00 s: no node had room for objects." || p.Says != "Every node was full." || p.Normal != "normal is step 1 while it was loaded" {
		t.Errorf("%+v", p)
	}
	if len(p.Steps) != 2 || p.Steps[0].ID != 2 || p.HasLogs || len(p.Figures.Rows) != 4 {
		t.Errorf("steps %d, figures %q", len(p.Steps), p.Figures.Rows)
	}
	r.BrokeFirst = nil
	r.Steps[0].Logs = []result.LogTail{{Object: "ns/a"}}
	if p := brokeOf(r, "pods/node"); p == nil || p.Lead != "" || !p.HasLogs {
		t.Errorf("nothing decided: %+v", p)
	}
	for _, c := range []struct {
		load result.StepProgress
		want string
	}{
		{result.StepProgress{}, "no request yet"},
		{result.StepProgress{Asked: 10, There: 4, Level: 5}, "4 of 10 ready, 5 pods/node"},
		{result.StepProgress{Backlog: 1200, Level: 500}, "1\u202f200 requests behind, 500 pods/node"},
	} {
		if got := loadText(c.load, "pods/node"); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := afterStart(result.Step{}, result.Breach{}); got != "-" {
		t.Errorf("a moment that is unknown: %q", got)
	}
}

// What slowed a step down, and how long a storm took to send, stand with the bounds.
func TestSendingAndSlowdown(t *testing.T) {
	slow := &result.Bottleneck{Slowdown: &result.Slowdown{Milestone: "Ready", For: "nodes", After: 100, Of: 400, Before: 50, Then: 12.5}}
	r := result.Result{Steps: []result.Step{
		{ID: 1, APIRequests: result.APIRequests{Sending: 0.25}}, {ID: 2, APIRequests: result.APIRequests{Sending: 1.5}, Bottleneck: slow},
		{ID: 3, Bottleneck: &result.Bottleneck{Bounds: []result.BoundShare{{What: "the threads", Held: true}}}, Requests: &result.StreamRequests{Retried: 1, Sent: 900}},
	}}
	got := lines(append(boundLines(r), recordedLines(r)[1:]...)...)
	if want := lines("Bound in step 3: the threads",
		"Sending took up to 1.50 s (step 2): times count from the one moment at which all requests of a step were due",
		"Slowed down in step 2: after about 100 of 400, the nodes let fewer reach Ready: 12.5 a second instead of 50"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Requests and work are those of the last step that tells of them. A quantile is its bucket.
func TestRequestsAndDurations(t *testing.T) {
	r := twoSteps()
	r.Steps[0].Durations = []result.HistogramSummary{{Source: "kubelet", Name: "an earlier step", N: 1}}
	bucket := func(above, most float64) result.Bucket { return result.Bucket{Above: above, AtMost: &most} }
	r.Steps[1].Durations = []result.HistogramSummary{
		{Source: record.SourceRequests, Name: "GET pods", N: 110, Mean: new(0.004), P99: bucket(0.005, 0.025)},
		{Source: record.SourceRequests, Name: "POST pods", N: 220, Mean: new(0.02), P99: result.Bucket{Above: 60}},
		{Source: "kubelet", Name: "start of a pod", N: 220, Mean: new(1.25), P50: bucket(1, 2.5), P99: result.Bucket{}},
	}
	several := twoSteps()
	for range 12 {
		several.Steps[1].Durations = append(several.Steps[1].Durations, result.HistogramSummary{Source: record.SourceRequests, Name: "GET nodes", N: 2})
	}
	several.Steps[1].Latency = nil
	var ten []string
	for range 10 {
		ten = append(ten, "GET nodes|2|-|-|-")
	}
	const title = "Requests in step 2, by the API server's own count, whoever made them:\n|n|per pod|mean|p99"
	checkSections(t, []section{
		{"none", append(one(requests(twoSteps())), durations(twoSteps())), ""},
		{"requests", one(requests(r)), lines(title, "POST pods|220|1.00|20 ms|over 60.0 s", "GET pods|110|0.50|4.00 ms|5.00 ms to 25 ms")},
		{"work", one(durations(r)), lines("Work in step 2, from the components' histograms (quantiles are bucket ranges):", "||n|mean|p50|p99", "kubelet|start of a pod|220|1.25 s|1.00 s to 2.50 s|-")},
		{"more kinds than are shown", one(requests(several)), lines(title, lines(ten...), "  and 2 more kinds in result.json")},
		{"requests alone are no work", one(durations(several)), ""},
	})
}

// The metrics of the steps stand in the order of their kind, with their unit.
func TestMetrics(t *testing.T) {
	r := twoSteps()
	r.ObjectKind.Metrics = []record.Metric{{Name: "reads", Title: "reads", Unit: "B/s"}, {Name: "other", Unit: "s"}, {Name: "fsync", Unit: "s"}}
	r.Steps[0].Metrics = map[string]float64{"fsync": 0.0042, "reads": 2 << 20}
	r.Steps[1].Metrics = map[string]float64{"fsync": 0.02}
	compared := r
	compared.Comparison = armsResult().Comparison
	compared.Steps = append([]result.Step(nil), r.Steps...)
	compared.Steps[0].Arm, compared.Steps[1].Arm = "runc", "crun"
	checkSections(t, []section{
		{"none", one(metricsSection(twoSteps())), ""},
		{"two of three", one(metricsSection(r)), lines("Metrics:", "step|level|reads|fsync", "1|100|2 MiB/s|4.20 ms", "2|110|-|20 ms")},
		{"by arm", one(metricsSection(compared)), lines("Metrics:", "step|level|arm|reads|fsync", "1|100|runc|2 MiB/s|4.20 ms", "2|110|crun|-|20 ms")},
	})
}

// Published figures stand beside those found, with unit, interval, level and source.
func TestPublished(t *testing.T) {
	r := result.Result{Published: []result.Published{
		{What: "start of a pod", Arm: "crun", Source: "a paper", Unit: "s", Published: 0.2, Found: new(0.15), At: new(60.0)},
		{What: "faster than runc", Source: "a paper", Unit: "%", Published: -0.1, Found: new(-0.12), Lo: new(-0.15), Hi: new(-0.09)},
		{What: "install", Source: "a talk", Unit: "s", Published: 3600},
		{What: "memory", Source: "a talk", Unit: "B", Published: 1 << 20, Found: new(2097152.0)},
	}}
	const head = "published figure|published|found here|source"
	rows := lines("start of a pod (crun)|200 ms|150 ms at 60|a paper", "faster than runc|-10.0%|-12.0% (-15.0% to -9.0%)|a paper", "install|1h0m0s|not measured|a talk", "memory|1 MiB|2 MiB|a talk")
	const note = "Published figures are from other machines and do not affect the verdict."
	faster := r
	faster.Fidelity.TimeScale = 60
	checkSections(t, []section{
		{"none", one(published(result.Result{})), ""},
		{"four", one(published(r)), lines("", head, rows, note)},
		{"time passes faster", one(published(faster)), lines("", head, rows, note+" Times found here are shown as they would be: 60 times as long as they were measured.")},
	})
}

// What one more pod costs, of each process; what is unknown has its reason once.
func TestOverhead(t *testing.T) {
	slope := func(x, lo, hi float64, from string) result.Slope {
		return result.Slope{Interval: result.Interval{Value: &x, Lo: &lo, Hi: &hi}, From: from}
	}
	unknown := result.Slope{Unknown: "the hold was too short"}
	r := result.Result{ObjectKind: pods(), Overhead: &result.Overhead{Steps: 3, Objects: 1200, Costs: []result.ObjectCost{
		{Source: "kubelet", Memory: slope(1<<20, 1<<19, 3<<19, result.FromLevels), Start: slope(0.02, 0.01, 0.03, result.FromPhases), Stand: unknown},
		{Source: "runtime", Memory: slope(4<<20, 3<<20, 5<<20, result.FromSteps), Start: result.Slope{}, Stand: result.Slope{Interval: result.Interval{Value: new(0.0005), Lo: new(0.0)}, From: result.FromPhases}},
	}}}
	none := result.Result{ObjectKind: pods(), Overhead: &result.Overhead{Costs: []result.ObjectCost{{Source: "kubelet", Memory: unknown, Start: unknown, Stand: unknown}}}}
	checkSections(t, []section{
		{"no real node", one(overheadSection(result.Result{})), ""},
		{"two processes", one(overheadSection(r)), lines("Cost of one more pod, from 1\u202f200 starts in 3 steps:",
			"process|memory|CPU time to start|thousandths of a CPU while it runs",
			"kubelet|1 MiB [512 KiB, 1.5 MiB]|20 ms [10 ms, 30 ms]|unknown",
			"runtime|4 MiB [3 MiB, 5 MiB]|unknown|0.5 [0, ?]",
			"  CPU while it runs of kubelet is unknown: the hold was too short",
			"  a pod is the average of those that the workload makes",
			"  in brackets 95% intervals; one that includes 0 shows no cost",
			"  memory is from the fit along the axis where there is one, else from what each step added; growth with time alone counts as the pods' too")},
		{"nothing is known", one(overheadSection(none)), lines("The cost of one more pod on a real node is unknown:",
			"  memory is unknown: the hold was too short", "  CPU time to start is unknown: the hold was too short", "  CPU while it runs is unknown: the hold was too short")},
	})
}

// Times by the values of a label are those of the last step, as they would be.
func TestTimesByLabel(t *testing.T) {
	r := twoSteps()
	r.ObjectKind.GroupBy = &record.GroupBy{Labels: []string{"zone"}, To: "Ready"}
	group := result.Group{Label: "zone", To: "Ready", Cut: 1, Values: []result.LabelValue{
		{Value: "a", Time: result.Latency{N: 10, Mean: new(1.0), P50: new(1.0), P90: new(2.0), P99: new(3.0), Max: new(3.0)}},
		{Value: "", Time: result.Latency{N: 2, Censored: 2}},
	}}
	r.Steps[0].Groups, r.Steps[1].Groups = []result.Group{group}, []result.Group{group}
	faster := r
	faster.Fidelity.TimeScale = 60
	faster.ObjectKind.GroupBy = &record.GroupBy{Labels: []string{"zone"}, To: "Ready"}
	const head = "zone|pods|never|mean|p50|p90|p99|max"
	checkSections(t, []section{
		{"none", one(labelSection(twoSteps())), ""},
		{"two values", one(labelSection(r)), lines("Time to Ready in step 2:", head, "a|10|0|1.00 s|1.00 s|2.00 s|3.00 s|3.00 s", "(unknown)|2|2|never|never|never|never|never", "  left out: 1 further value, each of no more pods than these")},
		{"time passes faster", one(labelSection(faster)), lines("Time to Ready in step 2, as it would be: 60 times as long as it was measured:", head, "a|10|0|60.0 s|60.0 s|120.0 s|180.0 s|180.0 s", "(unknown)|2|2|never|never|never|never|never", "  left out: 1 further value, each of no more pods than these")},
		{"times as they are", one(playedSection(r)), ""},
		{"times as they would be", one(playedSection(faster)), lines("Times as they would be, 60 times as long as they were measured (plimsoll's own share of them, too):",
			"step|level|milestone|p50|p99|last", "1|100|Ready|15s|1m30s|-", "2|110|Ready|18s|-|-")},
	})
	if got := spanOf(record.GroupBy{From: "Created", To: "Ready"}); got != "Time from Created to Ready" {
		t.Errorf("%q", got)
	}
}

// The environment is shown by the facts on record, with the split of the processors apart.
func TestEnvironment(t *testing.T) {
	var none Page
	if none.environment(nil); none.Machine != nil {
		t.Errorf("%+v", none.Machine)
	}
	var p Page
	p.environment(&record.Environment{
		Start: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Target: record.TargetNaming{Kind: "lab", Name: "l1", Private: true},
		Facts: []record.Fact{{Name: "isolation", Value: "cgroups"}, {Name: "isolation:etcd", Value: "etcd has 2 CPUs"}, {Name: "host:cpus", What: "processors", Value: "4"}, {Name: "os", What: "system"}},
		Places: &record.Places{Place: record.Noun{One: "Node", Many: "Nodes"}, Facts: []record.Fact{{What: "kubelet"}, {What: "memory", Unit: "B"}}, Rows: []record.PlaceRow{
			{Count: 1000, Values: []string{"v1.35", "1073741824"}}, {Count: 2, Values: []string{"v1.34", ""}},
		}},
	})
	want := []fact{{"Start", "2030-01-02 03:04:05 UTC", ""}, {"Target", "lab l1", "of this run alone"}, {"Processors", "4", ""}}
	if len(p.Machine) != len(want) {
		t.Fatalf("%+v", p.Machine)
	}
	for i, f := range want {
		if p.Machine[i] != f {
			t.Errorf("%+v, want %+v", p.Machine[i], f)
		}
	}
	if p.Split != "cgroups" || len(p.SplitNotes) != 1 || p.SplitNotes[0] != "etcd has 2 CPUs" {
		t.Errorf("the split: %q, %q", p.Split, p.SplitNotes)
	}
	if got := kindsOf(p.Places); got != "1\u202f000 of v1.35, 1 GiB; 2 of v1.34" {
		t.Errorf("%q", got)
	}
}
