package cli

import (
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// Any target has series: those of the record's own figures. The verdict on the record is
// that of the run.
func TestObjectivesOnQueries(t *testing.T) {
	limit := func(more ...string) []string {
		return append([]string{"limit", "simulated", "--from", "20", "--step", "20", "--max", "100", "--resolution", "10", "--confirm", "1", "--seed", "1"}, more...)
	}
	for _, c := range []struct {
		why         string
		args        []string
		code        int
		line, fails float64
		says        string // in the reason, or in the error
	}{
		{"all of its hold", limit("--slo", "query 'min_over_time(plimsoll_level[hold])' < 50"), process.ExitHeld, 40, 50, "held in 1 of 1"},
		{"counts of a step", []string{"sweep", "simulated", "--levels", "20", "--slo", "query 'increase(plimsoll_errors_total[step]) or vector(0)' <= 0"}, process.ExitHeld, 0, 0, ""},
		{"beside another one", limit("--slo", "query 'plimsoll_level' < 90", "--slo", "all Ready", "--set", "limit=60"), process.ExitHeld, 60, 70, "held in 1 of 1"},
		{"a first level that breaks it", limit("--slo", "query 'plimsoll_level' > 50"), process.ExitBreached, 0, 20, "the first level, 20, failed"},
		{"nothing comes back", limit("--slo", "query 'nothing' < 1"), process.ExitInconclusive, 0, 0, "query 'nothing' < 1: no series came back"},
		{"a ratio without traffic", limit("--slo", "query 'rate(plimsoll_requests_total{outcome=\"lost\"}[hold]) / vector(0) or 0 * plimsoll_level / 0' < 1"), process.ExitInconclusive, 0, 0, "NaN"},
		{"a level that is not held", []string{"sweep", "simulated", "--levels", "40", "--set", "limit=20", "--slo", "query 'max_over_time(plimsoll_level[hold])' < 90"}, process.ExitInconclusive, 0, 0, "the level was not held"},
		{"a schedule", []string{"sweep", "simulated", "--axis", "rate", "--levels", "50", "--slo", "query 'sum(rate(plimsoll_requests_total[hold]))' < 60"}, process.ExitHeld, 0, 0, ""},
		{"a stream", []string{"sweep", "simulated", "--axis", "requests", "--levels", "1000", "--slo", "query 'sum(rate(plimsoll_requests_total[hold]))' < 900"}, process.ExitBreached, 0, 0, "query 'sum(rate(plimsoll_requests_total[hold]))' < 900: it was "},
		{"a guard that trips", []string{"sweep", "simulated", "--levels", "40", "--hold", "5s", "--guard-query", "query 'plimsoll_level' < 30"}, process.ExitBreached, 0, 0, "guard:query 'plimsoll_level' < 30"},
		{"a guard that holds", []string{"sweep", "simulated", "--levels", "40", "--hold", "5s", "--guard-query", "query 'plimsoll_level' < 50", "--guard-query", "query 'nothing' < 50"}, process.ExitHeld, 0, 0, ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			onVirtualClock(t, func(t *testing.T) {
				dir, got := measured(t, c.args...)
				r := resultIn(t, dir)
				if got.code != c.code || !strings.Contains(r.Why, c.says) {
					t.Errorf("exit code %d, want %d: %q, want %q\n%s%s", got.code, c.code, r.Why, c.says, got.stdout, got.stderr)
				}
				if line, fails := lineIn(t, dir); c.args[0] == "limit" && (line != c.line || fails != c.fails) {
					t.Errorf("the line is %g, and %g fails, want %g and %g", line, fails, c.line, c.fails)
				}
				command(t, nil, "analyze", dir)
				if again := resultIn(t, dir); !reflect.DeepEqual(again, r) {
					t.Errorf("analyze finds %s: %s, the run %s: %s", again.Verdict, again.Why, r.Verdict, r.Why)
				}
			})
		})
	}
	for _, c := range []struct{ args, says string }{
		{"--slo|query 'sum(rate(x))' < 1", `--slo: objective: query "sum(rate(x))", column 10: expected type range vector`},
		{"--goal|a=query 'x + rate(y' < 1", `query "x + rate(y", column 11: unclosed left parenthesis`},
		{"--slo|query 'x[5m]' < 1", "it gives a range vector: want one number for each series"},
		{"--guard-query|query 'rate(x[hold])' < 1", "--guard-query: objective: query \"rate(x[hold])\": a guard has no [hold]"},
	} {
		flag, text, _ := strings.Cut(c.args, "|")
		if got := command(t, nil, "sweep", "simulated", "--levels", "4", flag, text); got.code != process.ExitUsage || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%s: exit code %d, want %q in %s", c.args, got.code, c.says, got.stderr)
		}
	}
}

// queryBreach checks that what broke first is a series, with its time in the step.
func queryBreach(t *testing.T, r result.Result, series string) {
	t.Helper()
	if r.BrokeFirst == nil {
		t.Fatalf("nothing broke first: %s", r.Why)
	}
	x := r.BrokeFirst.Breach
	step := r.Steps[slices.IndexFunc(r.Steps, func(s result.Step) bool { return s.ID == x.Step })]
	if x.Kind != result.BreachQuery || !strings.Contains(x.What, series) || x.Time < step.Start || x.Time > step.End {
		t.Errorf("first broke %q at %s, want %q from %s to %s", x.What, x.Time, series, step.Start, step.End)
	}
}

// What is scraped decides a search: in a lab, on a cluster that is named by its
// kubeconfig, and of a router.
func TestScrapedMetricsDecideASearch(t *testing.T) {
	suite.Long(t, "searches of a lab, a cluster and a router")
	for _, c := range []struct {
		target string
		args   []string
		series string
		line   float64
	}{
		{"lab", []string{"node-density", "--from", "2", "--step", "2", "--max", "8", "--resolution", "1", "--slo", "query 'scheduler_cache_size{type=\"pods\"}' < 18"}, "scheduler_cache_size", 4},
		{"kubeconfig", []string{"node-density", "--from", "2", "--step", "2", "--max", "8", "--resolution", "1", "--slo", "query 'max(plimsoll_level) and on() (sum(apiserver_request_total{verb=\"POST\",resource=\"pods\"}) > 0)' < 5"}, "apiserver_request_total", 4},
		{"router", []string{"router", "--axis", "idle", "--from", "100", "--step", "100", "--max", "400", "--resolution", "100", "--hold", "5s", "--slo", "query 'max_over_time(haproxy_process_current_connections[hold])' < 350"}, "haproxy_process_current_connections", 300},
	} {
		t.Run(c.target, func(t *testing.T) {
			var p *harness.Program
			args := append([]string{"limit"}, c.args...)
			switch c.target {
			case "lab":
				p = suite.Program(t)
				if got := p.Run(t, "lab", "up", "l", "--nodes", "4"); got.Code != process.ExitHeld {
					t.Fatal(got.Stderr)
				}
				args = append(args, "--lab", "l")
			case "kubeconfig":
				p = suite.Lab(t, smallLab...)
				args = append(args, "--kubeconfig", p.Kubeconfig, "--yes")
			default:
				p = routerProgram(t)
			}
			got := p.RunTo(t, "out", append(args, "--scrape", "1s", "--confirm", "1", "--seed", "1")...)
			r := p.Result(t, "out")
			if strings.Contains(r.Why, "other programs used ") {
				t.Skip(r.Why) // which is as it should be, and leaves no line
			}
			if got.Code != process.ExitHeld || r.LoadLine == nil || r.LoadLine.Level == nil || *r.LoadLine.Level != c.line {
				t.Fatalf("exit code %d, want a line of %g\n%s%s", got.Code, c.line, got.Stdout, got.Stderr)
			}
			queryBreach(t, r, c.series)
			if got := p.Run(t, "analyze", "out"); got.Code != process.ExitHeld {
				t.Errorf("analyze: exit code %d\n%s", got.Code, got.Stderr)
			}
			if again := p.Result(t, "out"); !reflect.DeepEqual(again.Steps, r.Steps) || again.Why != r.Why {
				t.Errorf("analyze finds %s, the run %s", again.Why, r.Why)
			}
		})
	}
}

// A part of a lab that answers nobody for the rest of a hold leaves no verdict of what
// it would have told, and does not touch others.
func TestAPartThatStopsInTheHold(t *testing.T) {
	suite.Long(t, "a lab of its own whose controller manager is stopped")
	t.Parallel()
	p := suite.Program(t)
	if got := p.Run(t, "lab", "up", "dead", "--nodes", "4"); got.Code != process.ExitHeld {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	pid := componentOf(t, p, "dead", "kube-controller-manager")
	s := p.Start(t, "sweep", "node-density", "--lab", "dead", "--levels", "3", "--scrape", "1s", "--hold", "15s", "--out", "out",
		"--slo", `query 'rate(process_cpu_seconds_total{job="kube-controller-manager"}[hold])' < 100`,
		"--goal", `others=query 'rate(process_cpu_seconds_total{job="kube-apiserver"}[hold])' < 100`)
	harness.Await(t, "the hold", func() bool {
		return p.Count("out", func(e record.Event) bool {
			s, ok := e.Body.(*record.StepEvent)
			return ok && s.Phase == record.PhaseReached
		}) > 0
	})
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	harness.Await(t, "the end of the step", func() bool {
		return p.Count("out", func(e record.Event) bool {
			s, ok := e.Body.(*record.StepEvent)
			return ok && s.Phase == record.PhaseEnd
		}) > 0
	})
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	got := s.Wait()
	r := p.Result(t, "out")
	if got.Code != process.ExitInconclusive || !strings.Contains(r.Why, "the metrics of kube-controller-manager of lab could not be read at ") {
		t.Errorf("exit code %d: %s\n%s%s", got.Code, r.Why, got.Stdout, got.Stderr)
	}
	if v := r.Steps[0].Goals["others"]; v != slo.Pass {
		t.Errorf("of the others: %s", v)
	}
}
