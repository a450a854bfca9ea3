package metrics_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/bcrypt"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
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
		{"all of its hold", limit("--slo", "query 'min_over_time(plimsoll_level[hold])' < 50"), process.ExitPass, 40, 50, "held in 1 of 1"},
		{"counts of a step", []string{"sweep", "simulated", "--levels", "20", "--slo", "query 'increase(plimsoll_errors_total[step]) or vector(0)' <= 0"}, process.ExitPass, 0, 0, ""},
		{"beside another one", limit("--slo", "query 'plimsoll_level' < 90", "--slo", "all Ready", "--set", "limit=60"), process.ExitPass, 60, 70, "held in 1 of 1"},
		{"a first level that breaks it", limit("--slo", "query 'plimsoll_level' > 50"), process.ExitFail, 0, 20, "the first level, 20, failed"},
		{"nothing comes back", limit("--slo", "query 'nothing' < 1"), process.ExitInconclusive, 0, 0, "query 'nothing' < 1: no series came back"},
		{"a ratio without traffic", limit("--slo", "query 'rate(plimsoll_requests_total{outcome=\"lost\"}[hold]) / vector(0) or 0 * plimsoll_level / 0' < 1"), process.ExitInconclusive, 0, 0, "NaN"},
		{"a level that is not held", []string{"sweep", "simulated", "--levels", "40", "--set", "limit=20", "--slo", "query 'max_over_time(plimsoll_level[hold])' < 90"}, process.ExitInconclusive, 0, 0, "the level was not held"},
		{"a schedule", []string{"sweep", "simulated", "--axis", "rate", "--levels", "50", "--slo", "query 'sum(rate(plimsoll_requests_total[hold]))' < 60"}, process.ExitPass, 0, 0, ""},
		{"a stream", []string{"sweep", "simulated", "--axis", "requests", "--levels", "1000", "--slo", "query 'sum(rate(plimsoll_requests_total[hold]))' < 900"}, process.ExitFail, 0, 0, "query 'sum(rate(plimsoll_requests_total[hold]))' < 900: it was "},
		{"a guard that trips", []string{"sweep", "simulated", "--levels", "40", "--hold", "5s", "--guard-query", "query 'plimsoll_level' < 30"}, process.ExitFail, 0, 0, "guard:query 'plimsoll_level' < 30"},
		{"a guard that holds", []string{"sweep", "simulated", "--levels", "40", "--hold", "5s", "--guard-query", "query 'plimsoll_level' < 50", "--guard-query", "query 'nothing' < 50"}, process.ExitPass, 0, 0, ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			e2e.OnVirtualClock(t, func(t *testing.T) {
				dir, got := e2e.Measured(t, suite, c.args...)
				r := e2e.ResultIn(t, dir)
				if got.Code != c.code || !strings.Contains(r.Why, c.says) {
					t.Errorf("exit code %d, want %d: %q, want %q\n%s%s", got.Code, c.code, r.Why, c.says, got.Stdout, got.Stderr)
				}
				if line, fails := e2e.LineIn(t, dir); c.args[0] == "limit" && (line != c.line || fails != c.fails) {
					t.Errorf("the line is %g, and %g fails, want %g and %g", line, fails, c.line, c.fails)
				}
				e2e.Command(t, nil, "analyze", dir)
				if again := e2e.ResultIn(t, dir); !reflect.DeepEqual(again, r) {
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
		if got := e2e.Command(t, nil, "sweep", "simulated", "--levels", "4", flag, text); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, c.says) {
			t.Errorf("%s: exit code %d, want %q in %s", c.args, got.Code, c.says, got.Stderr)
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
				if got := p.Run(t, "lab", "up", "l", "--nodes", "4"); got.Code != process.ExitPass {
					t.Fatal(got.Stderr)
				}
				args = append(args, "--lab", "l")
			case "kubeconfig":
				p = suite.Lab(t, e2e.SmallLab()...)
				args = append(args, "--kubeconfig", p.Kubeconfig, "--yes")
			default:
				p = e2e.RouterProgram(t, suite)
			}
			got := p.RunTo(t, "out", append(args, "--scrape", "1s", "--confirm", "1", "--seed", "1")...)
			r := p.Result(t, "out")
			beside := func(s result.Step) bool {
				return s.Verdict == slo.Invalid && strings.Contains(s.VerdictWhy, "other programs used ")
			}
			if strings.Contains(r.Why, "other programs used ") || slices.ContainsFunc(r.Steps, beside) {
				t.Skip(r.Why) // which is as it should be, and leaves no line
			}
			if got.Code != process.ExitPass || r.LoadLine == nil || r.LoadLine.Level == nil || *r.LoadLine.Level != c.line {
				t.Fatalf("exit code %d, want a line of %g\n%s%s", got.Code, c.line, got.Stdout, got.Stderr)
			}
			queryBreach(t, r, c.series)
			if got := p.Run(t, "analyze", "out"); got.Code != process.ExitPass {
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
	if got := p.Run(t, "lab", "up", "dead", "--nodes", "4"); got.Code != process.ExitPass {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	pid := e2e.ComponentOf(t, p, "dead", "kube-controller-manager")
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

// A Prometheus of somebody's that scrapes the same lab tells the same, within one scrape,
// and what is asked of it decides; a wrong token, and the end of it, are gaps.
func TestAPrometheusOfTheLab(t *testing.T) {
	suite.Long(t, "a Prometheus that scrapes a lab for half a minute")
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("there is no prometheus: apt-get install prometheus")
	}
	p := suite.Lab(t, e2e.SmallLab()...)
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("open-sesame-1"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	auth := ""
	if config.BearerToken != "" {
		auth = fmt.Sprintf("  authorization: {credentials_file: %s}\n", file("token", config.BearerToken))
	}
	tls := "ca_file: " + file("ca.pem", string(config.CAData))
	if len(config.CertData) > 0 {
		tls += fmt.Sprintf(", cert_file: %s, key_file: %s", file("cert.pem", string(config.CertData)), file("key.pem", string(config.KeyData)))
	}
	scrapes := file("prometheus.yml", fmt.Sprintf("scrape_configs:\n- job_name: theirs\n  scheme: https\n  scrape_interval: 1s\n  tls_config: {%s}\n%s  static_configs: [{targets: [%q]}]\n", tls, auth, server.Host))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	var log strings.Builder
	cmd := exec.CommandContext(t.Context(), program, "--config.file="+scrapes, "--web.config.file="+file("web.yml", fmt.Sprintf("basic_auth_users: {me: %q}\n", hash)),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context ends it
	password := file("password", "open-sesame-1\n")
	ready := func() bool {
		request, _ := http.NewRequest(http.MethodGet, "http://"+address+"/api/v1/query?query=up", nil)
		request.SetBasicAuth("me", "open-sesame-1")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return strings.Contains(string(body), `,"1"]`)
	}
	harness.Await(t, "a Prometheus that has read the API server: "+log.String(), ready)
	const counter = `apiserver_request_total{verb="POST",resource="pods",code="201"}`
	sweep := func(out string, more ...string) harness.Outcome {
		return p.RunTo(t, out, append([]string{"sweep", "node-density", "--kubeconfig", p.Kubeconfig, "--yes", "--levels", "2,4,6", "--hold", "6s", "--scrape", "1s", "--prometheus", "http://" + address,
			"--prometheus-match", `{job="theirs",__name__="apiserver_request_total"}`, "--slo", `query 'sum(rate(apiserver_request_total{job="theirs"}[hold]))' > 0`}, more...)...)
	}
	if got := sweep("out", "--prometheus-user", "me", "--prometheus-password-file", password); got.Code != process.ExitPass {
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	for _, at := range []string{"5s", "10s", "15s", "20s"} {
		number := func(job, offset string) float64 {
			got := p.Run(t, "query", "out", fmt.Sprintf(`sum(%s,job=%q} offset %s)`, strings.TrimSuffix(counter, "}"), job, offset), "--at", at, "-o", "csv")
			lines := strings.Split(strings.TrimSpace(got.Stdout), "\n")
			_, text, _ := strings.Cut(lines[len(lines)-1], ",")
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatalf("%s at %s: %s%s", job, at, got.Stdout, got.Stderr)
			}
			return v
		}
		// Each knows what was at most one scrape ago.
		if theirs, least, most := number("theirs", "0s"), number("kube-apiserver", "2s"), number("kube-apiserver", "-2s"); theirs < least || theirs > most {
			t.Errorf("at %s they have %g, we %g to %g", at, theirs, least, most)
		}
	}
	secrets := harness.Outcome{}
	for _, c := range []struct {
		why, out string
		flags    []string
		says     string
	}{
		{"nobody says who asks", "anonymous", nil, "401"},
		{"a wrong password", "wrong", []string{"--prometheus-user", "me", "--prometheus-password-file", file("wrong", "open-sesame-2")}, "401"},
		{"a wrong address", "away", []string{"--prometheus", "http://127.0.0.1:1"}, "connection refused"},
	} {
		got := sweep(c.out, append(c.flags, "--levels", "2")...)
		if got.Code != process.ExitInconclusive || !strings.Contains(got.Stdout, "the Prometheus at 127.0.0.1") || !strings.Contains(got.Stdout, c.says) {
			t.Errorf("%s: exit code %d, want %q\n%s%s", c.why, got.Code, c.says, got.Stdout, got.Stderr)
		}
		secrets.Stdout += got.Stdout + got.Stderr
	}
	for _, name := range []string{"out", "wrong"} {
		for _, of := range []string{"experiment.yaml", "result.json", "report.html"} {
			text, err := os.ReadFile(filepath.Join(p.Dir, name, of))
			if err != nil {
				t.Error(err)
			}
			secrets.Stdout += string(text)
		}
	}
	if strings.Contains(secrets.Stdout, "open-sesame") {
		t.Error("a password is shown, or on record")
	}
}

func TestFlagsOfAPrometheus(t *testing.T) {
	t.Parallel()
	spaced := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(spaced, []byte("two words"), 0o600); err != nil {
		t.Fatal(err)
	}
	for flags, says := range map[string]string{
		"--prometheus|http://me:hunter2abc@there/":                                        "--prometheus: the address of the Prometheus at there has more than scheme, host and path",
		"--prometheus|https://there/?token=hunter2abc":                                    "has more than scheme, host and path",
		"--prometheus|there:9090":                                                         "the address of the Prometheus is not valid",
		"--prometheus|http://there|--prometheus-match|x{":                                 `--prometheus-match: query "x{", column`,
		"--prometheus-user|me":                                                            "no Prometheus is named",
		"--prometheus|http://there|--prometheus-token-file|/nowhere/at/all":               "--prometheus-token-file: open /nowhere/at/all",
		"--prometheus|http://there|--prometheus-token-file|" + spaced:                     "it has spaces",
		"--prometheus|http://there|--prometheus-password-file|" + spaced:                  "has no user",
		"--prometheus|http://there|--prometheus-ca|" + spaced:                             "--prometheus-ca: there is no certificate in PEM in it",
		"--prometheus|openshift":                                                          "the target has no Prometheus of its own",
		"--prometheus|http://there|--prometheus-user|a|--prometheus-token-file|" + spaced: "both say who asks",
	} {
		got := e2e.Command(t, nil, append([]string{"sweep", "simulated", "--levels", "4", "--out", filepath.Join(t.TempDir(), "out")}, strings.Split(flags, "|")...)...)
		if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, says) || strings.Contains(got.Stderr+got.Stdout, "hunter2") {
			t.Errorf("%s: exit code %d, want %q in\n%s", flags, got.Code, says, got.Stderr)
		}
	}
}

// The rights of an account are those that a run with the same flags scrapes by.
func TestRightsToScrape(t *testing.T) {
	t.Parallel()
	const server, nodes = "- {nonResourceURLs: [/metrics], verbs: [get]}", "resources: [nodes/proxy], verbs: [get]}"
	for flags, want := range map[string][2]bool{"": {true, false}, "--scrape-nodes=3": {true, true}, "--scrape-nodes=0": {true, false}, "--scrape=0": {false, false}} {
		got := e2e.Command(t, nil, append([]string{"rbac", "node-density"}, strings.Fields(flags)...)...)
		if has := [2]bool{strings.Contains(got.Stdout, server), strings.Contains(got.Stdout, nodes)}; got.Code != process.ExitPass || has != want {
			t.Errorf("%s: exit code %d, the rights to the API server's and to nodes' metrics are %v, want %v\n%s%s", flags, got.Code, has, want, got.Stdout, got.Stderr)
		}
	}
}
