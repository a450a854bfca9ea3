package report

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/page"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/report/words"
)

// The bundle is committed, so that the program builds without node. This tells
// when it is not of its sources; `make ui` needs node, this test does not.
func TestTheBundleIsOfItsSources(t *testing.T) {
	const ui = "../../ui"
	sources := []string{"build.mjs", "package-lock.json", "package.json", "tsconfig.json"}
	entries, err := os.ReadDir(filepath.Join(ui, "src"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		sources = append(sources, "src/"+e.Name())
	}
	slices.Sort(sources)
	hash := sha256.New()
	for _, name := range sources {
		content, err := os.ReadFile(filepath.Join(ui, name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(hash, "%s %d\n", name, len(content))
		hash.Write(content)
	}
	want := "sources sha256 " + hex.EncodeToString(hash.Sum(nil))
	for name, bundle := range map[string]string{"report.js": pageScript, "report.css": pageStyle} {
		if head, _, _ := strings.Cut(bundle, "*/"); !strings.Contains(head, want) {
			t.Errorf("assets/%s was built from other sources than those in ui: run make ui", name)
		}
		if regexp.MustCompile(`(?i)</(script|style)|<!--`).MatchString(bundle) {
			t.Errorf("assets/%s would end the element that it stands in", name)
		}
		if regexp.MustCompile(`\b(fetch|XMLHttpRequest|WebSocket|EventSource|importScripts)\s*\(`).MatchString(bundle) {
			t.Errorf("assets/%s reaches for the network", name)
		}
	}
	for _, licence := range []string{"d3-scale", "Copyright", "Permission to use"} {
		if head, _, _ := strings.Cut(pageScript, "*/"); !strings.Contains(head, licence) {
			t.Errorf("assets/report.js has lost the licences of what is in it: no %q", licence)
		}
	}
	lock, err := os.ReadFile(filepath.Join(ui, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(lock), `"resolved"`) {
		t.Error("ui/package-lock.json names the registry that it was made with: ui/.npmrc keeps that out, make the lock file anew")
	}
}

// elements are a page's elements by name, with the attributes of all.
func elements(t *testing.T, page string) (names map[string]int, attributes []html.Attribute, scripts []string) {
	t.Helper()
	names = make(map[string]int)
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return names, attributes, scripts
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			names[token.Data]++
			attributes = append(attributes, token.Attr...)
			if token.Data == "script" && z.Next() == html.TextToken {
				scripts = append(scripts, string(z.Raw()))
			}
		}
	}
}

// hostile holds what a cluster's names and messages could hold, and more.
const hostile = `</script><script>alert(1)</script><!--<script>"'><img src=x onerror=alert(1)>{{.Style}}` + "\u2028\u2029\x00\x1b[31m=cmd()&amp;"

func TestHostileNamesStayText(t *testing.T) {
	dir := scene{design: search(), limit: 25, name: "pod" + hostile, message: hostile}.make(t)
	in := read(t, dir)
	in.Environment.Target.Name = hostile
	for i := range in.Environment.Facts {
		in.Environment.Facts[i].What, in.Environment.Facts[i].Value = hostile, hostile
	}
	in.Environment.Places.Facts[0].What, in.Environment.Places.Rows[0].First, in.Environment.Places.Rows[0].Values[2] = hostile, hostile, hostile
	in.Result.Experiment, in.Result.Command, in.Result.Version, in.PlanText = hostile, hostile, hostile, hostile
	in.Result.Warnings, in.Missing = record.Warnings{{Text: hostile, Places: []string{hostile}}}, []string{hostile}
	in.Result.Steps[0].Arm, in.Result.Steps[0].Resources["x"+hostile] = hostile, result.Usage{CPUSeconds: 1}
	in.Result.Goals[0].Name = hostile
	in.Result.LoadLine.Unit = hostile
	page := pageIn(t, in)
	plain := pageIn(t, read(t, scene{design: search(), limit: 25}.make(t)))
	names, attributes, scripts := elements(t, page)
	want, _, _ := elements(t, plain)
	for _, name := range []string{"script", "style", "img", "iframe", "object", "meta", "link"} {
		if names[name] != want[name] {
			t.Errorf("%d elements <%s>, want %d", names[name], name, want[name])
		}
	}
	if len(scripts) != 3 || scripts[2] != pageScript {
		t.Errorf("%d scripts, and the last is not the bundle", len(scripts))
	}
	for _, a := range attributes {
		if strings.HasPrefix(strings.ToLower(a.Key), "on") || a.Key == "style" || strings.Contains(strings.ToLower(a.Val), "javascript:") {
			t.Errorf("attribute %s=%q", a.Key, a.Val)
		}
	}
	if !strings.Contains(page, "&lt;img src=x onerror=alert(1)&gt;") {
		t.Error("the names are not told at all")
	}
	if strings.Contains(scripts[0], "<") {
		t.Error("the data hold a <, which could end their element")
	}
}

func TestThePolicyAllowsOnlyTheBundle(t *testing.T) {
	whole := pageIn(t, read(t, scene{design: search(), limit: 25}.make(t)))
	_, attributes, _ := elements(t, whole)
	i := slices.IndexFunc(attributes, func(a html.Attribute) bool { return strings.HasPrefix(a.Val, "default-src") })
	if i < 0 {
		t.Fatal("no policy")
	}
	policy := attributes[i].Val
	if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
		t.Errorf("policy %s", policy)
	}
	for _, text := range []string{pageScript, pageStyle} {
		if !strings.Contains(policy, page.HashSource(text)) || !strings.Contains(whole, ">"+text+"</") {
			t.Errorf("the policy does not allow what stands in the page: %s", policy)
		}
	}
	for _, a := range attributes {
		if (a.Key == "src" || a.Key == "href" || a.Key == "action") && !strings.HasPrefix(a.Val, "#") && !strings.HasPrefix(a.Val, "data:") {
			t.Errorf("the page points outside: %s=%q", a.Key, a.Val)
		}
	}
}

// pages are run directories of every kind, most of them lacking something.
func pages(t testing.TB) map[string]record.Dir {
	t.Helper()
	without := func(dir record.Dir, names ...string) record.Dir {
		for _, name := range names {
			if err := os.Remove(dir.Path(name)); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	sweep := func(levels ...float64) design.Sweep { return design.Sweep{Levels: levels} }
	list := map[string]record.Dir{
		"limit":          scene{design: search(), limit: 25}.make(t),
		"goals":          scene{design: search(), limit: 25, goals: []string{"ready=all Ready", "fast=Ready p99 <= 700ms", "slow=all Ready within 20s"}}.make(t),
		"nothing failed": scene{design: design.Search{From: 5, Step: 5, Max: 10, Resolution: 1, Need: 1, Of: 1}}.make(t),
		"first fails":    scene{design: search(), limit: 2}.make(t),
		"all fail":       scene{design: sweep(5, 10), never: true, kind: "sweep"}.make(t),
		"single step":    scene{design: sweep(5), kind: "sweep"}.make(t),
		"one object":     scene{design: sweep(1), kind: "sweep", places: 1}.make(t),
		"killed":         scene{design: search(), limit: 25, killed: 3}.make(t),
		"killed at once": scene{design: search(), killed: 1}.make(t),
		"no steps":       scene{design: sweep(), kind: "sweep"}.make(t),
		"sim":            scene{design: search(), limit: 25, plain: true, axis: "objects", unit: "objects/place"}.make(t),
		"rate":           scene{design: sweep(10, 20, 30), kind: "sweep", axis: "rate", unit: "pods/s"}.make(t),
		"open loop":      scene{design: sweep(10, 20, 30), kind: "sweep", axis: "rate", unit: "pods/s", open: true, places: 10}.make(t),
		"no unit":        without(scene{design: sweep(10, 20), kind: "sweep"}.make(t), record.ExperimentFile, record.EnvironmentFile),
		"no objects":     without(scene{design: search(), limit: 25}.make(t), record.ObjectsFile),
		"result only":    without(scene{design: search(), limit: 25}.make(t), record.ObjectsFile, record.ExperimentFile, record.EnvironmentFile),
	}
	broken := scene{design: search(), limit: 25}.make(t)
	for _, name := range []string{record.ObjectsFile, record.ExperimentFile, record.EnvironmentFile} {
		if err := broken.WriteFile(name, []byte("{what: ever")); err != nil {
			t.Fatal(err)
		}
	}
	list["broken files"] = broken
	for name, r := range cases() {
		dir, err := record.CreateDir(filepath.Join(t.TempDir(), "run"))
		if err != nil {
			t.Fatal(err)
		}
		if err := dir.WriteResult(r, nil); err != nil {
			t.Fatal(err)
		}
		list["result "+name] = dir
	}
	arms := read(t, scene{design: sweep(5, 5, 5), kind: "ab"}.make(t)).Result
	for i := range arms.Steps {
		arms.Steps[i].Arm, arms.Steps[i].Replicate, arms.Steps[i].Verdict = []string{"runc", "crun"}[i%2], i/2+1, slo.Inconclusive
		arms.Steps[i].Reasons, arms.Steps[i].Resources, arms.Steps[i].WatchLag = nil, nil, nil
	}
	arms.Verdict, arms.Goals, arms.Warnings, arms.Breaches = slo.Inconclusive, nil, nil, nil
	dir := scene{design: sweep(5, 5, 5), kind: "sweep"}.make(t)
	if err := dir.WriteResult(arms, nil); err != nil {
		t.Fatal(err)
	}
	list["arms"] = dir
	return list
}

// Whatever is missing, there is a page, and it says what is missing.
func TestEveryDirectoryMakesAPage(t *testing.T) {
	for name, dir := range pages(t) {
		if err := WriteFile(dir); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		data, err := os.ReadFile(dir.Path(record.ReportFile))
		if err != nil {
			t.Fatal(err)
		}
		page := string(data)
		if i := strings.Index(page, `<script type="application/json"`); i >= 0 {
			page = page[:i] + page[strings.LastIndex(page, "</script>"):] // what people read
		}
		if bad := regexp.MustCompile(`%!|&lt;nil&gt;|<nil>|NaN|\+Inf|0x[0-9a-f]{8}|\d\.\d{12}`).FindString(strings.Replace(page, pageStyle, "", 1)); bad != "" {
			t.Errorf("%s: the page holds %q", name, bad)
		}
		if !strings.Contains(page, `<h1 id="headline">`) || !strings.HasSuffix(strings.TrimSpace(page), "</html>") {
			t.Errorf("%s: the page is cut", name)
		}
		for _, want := range map[string][]string{
			"result only":  {"There is no objects.parquet", "There is no environment.json", "There is no experiment.yaml", "objects.parquet is missing"},
			"broken files": {"Objects.parquet could not be read", "Environment.json could not be read", "Experiment.yaml could not be read"},
			"killed":       {"Inconclusive", "the run was cut"},
			"rate":         {"pods/s"},
			"open loop":    {"Arrivals", "Waiting as a table"},
			"all fail":     {"never", "Too many pods"},
			"result goals": {"allocatable pods", "raise maxPods", "the API does not tell"},
			"no steps":     {"nothing was measured"},
			"arms":         {"Inconclusive"},
		}[name] {
			if !strings.Contains(page, want) && !strings.Contains(page, strings.ToUpper(want[:1])+want[1:]) {
				t.Errorf("%s: the page does not say %q", name, want)
			}
		}
		if (name == "rate" || name == "open loop") && regexp.MustCompile(`pods-per-node|pods/node`).MatchString(page) {
			t.Errorf("%s: the page speaks of another axis", name)
		}
	}
}

func TestNoResultIsNoReport(t *testing.T) {
	dir, err := record.CreateDir(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	var none *NoResultError
	if err := WriteFile(dir); !errors.As(err, &none) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a result: %v", err)
	}
	if err := dir.WriteResult(result.Result{Schema: "plimsoll/result/v99"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(dir); !errors.As(err, &none) || !strings.Contains(err.Error(), "v99") {
		t.Errorf("a result of another version: %v", err)
	}
	if _, err := os.Stat(dir.Path(record.ReportFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a report was left: %v", err)
	}
}

// That requests failed stands in the sentence, in the table of steps and on the
// page, whatever the verdict.
func TestFailedRequestsAreReported(t *testing.T) {
	in := read(t, scene{design: search(), limit: 25}.make(t))
	if failed := view.Sentence(in.Result); strings.Contains(failed, "requests failed") {
		t.Errorf("none failed: %q", failed)
	}
	s := &in.Result.Steps[0]
	s.APIRequests = result.APIRequests{N: 30, Failed: 9}
	s.Reasons = []result.Reason{{Reason: "HTTP 409", Message: `configmaps "NAME" already exists`, Count: 9, Requests: true}}
	var text strings.Builder
	if err := Text(&text, in.Result, "d", false); err != nil {
		t.Fatal(err)
	}
	page := pageIn(t, in)
	for where, want := range map[string][]string{
		text.String(): {"requests failed\n", "9 of 30\n", `9 of 30 requests failed at ` + words.Number(s.LevelReached) + ` (HTTP 409: configmaps "NAME" already exists).`},
		page:          {"; requests failed</h1>", "<th scope=\"col\" class=\"n\">Requests failed</th>", "<td class=\"n\">9 of 30</td>", "9 requests:", "9 of 30 requests failed at "},
	} {
		for _, w := range want {
			if !strings.Contains(where, w) {
				t.Errorf("%q is missing of\n%.3000s", w, where)
			}
		}
	}
}
