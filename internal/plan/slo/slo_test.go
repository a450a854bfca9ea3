package slo

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want SLO
		err  string
		why  string
	}{
		{"ContainersStarted p99 <= 5s", SLO{Form: Quantile, Milestone: "ContainersStarted", Q: 0.99, Op: LessEqual, Within: 5 * time.Second}, "", "the Kubernetes SLI"},
		{"Ready p99.9<500ms", SLO{Form: Quantile, Milestone: "Ready", Q: 0.999, Op: Less, Within: 500 * time.Millisecond}, "", "no spaces, a finer quantile"},
		{"  all   Ready ", SLO{Form: All, Milestone: "Ready", Op: LessEqual}, "", "stray spaces"},
		{"all Ready within 30s", SLO{Form: All, Milestone: "Ready", Op: LessEqual, Within: 30 * time.Second}, "", "with a bound"},
		{"errors < 1%", SLO{Form: Errors, Op: Less, Percent: 1}, "", "share of requests"},
		{"achieved >= 99.5%", SLO{Form: Achieved, Op: GreaterEqual, Percent: 99.5}, "", "share of the offered rate"},
		{"retried <= 0%", SLO{Form: Retried, Op: LessEqual}, "", "no request may be sent anew"},
		{"volumes failed <= 2", SLO{Form: Failed, Places: "volumes", Op: LessEqual, Count: 2}, "", "a few volumes of many may"},
		{"volumes failed<1", SLO{Form: Failed, Places: "volumes", Op: Less, Count: 1}, "", "no spaces"},
		{"volumes failed < 0", SLO{}, "write <=", "nothing meets it"},
		{"volumes failed >= 1", SLO{}, "not understood", "nobody asks for failed ones"},
		{"volumes failed <= 1%", SLO{}, "not understood", "it is a count"},
		{"Ready max <= 5s", SLO{Form: Quantile, Milestone: "Ready", Q: 1, Op: LessEqual, Within: 5 * time.Second}, "", "the maximum"},
		{"Ready mean <= 4s", SLO{Form: Mean, Milestone: "Ready", Op: LessEqual, Within: 4 * time.Second}, "", "the mean, as others judge by"},
		{"Ready avg <= 4s", SLO{}, "not understood", "the word is mean"},
		{"errors <= 0%", SLO{Form: Errors, Op: LessEqual}, "", "no request may fail"},
		{"achieved >= 100%", SLO{Form: Achieved, Op: GreaterEqual, Percent: 100}, "", "all of the rate"},
		{"errors < 101%", SLO{}, "not a share", "more than all requests"},
		{"achieved >= 500%", SLO{}, "not a share", "more than all of the rate"},
		{"errors < 0%", SLO{}, "write <=", "nothing meets it"},
		{"achieved > 100%", SLO{}, "write >=", "nothing meets it"},
		{"errors <= 100%", SLO{}, "every share", "everything meets it"},
		{"query 'max(up{a=\"x  y;'z'\"})' >= 1", SLO{Form: Query, Query: "max(up{a=\"x  y;'z'\"})", Op: GreaterEqual, Value: 1}, "", "the query is kept as it is written, with its quotes"},
		{"query 'rate(x[hold]) < bool 2'<-1.5e3", SLO{Form: Query, Query: "rate(x[hold]) < bool 2", Op: Less, Value: -1500}, "", "comparisons within, ranges by name"},
		{"query 'rate(x)' < 1", SLO{}, `query "rate(x)", column 6: expected type range vector`, "a mistake has its column"},
		{"query 'rate(x[hold]) + sum(rate(y))' < 1", SLO{}, "column 26", "also after a range by name"},
		{"query 'x[hold]' < 1", SLO{}, "want one number for each series", "a range is many numbers"},
		{"query '\"text\"' < 1", SLO{}, "gives a string", "a text is none"},
		{"query 'x' < 5%", SLO{}, "is not a number", "a query has no unit"},
		{"query 'x' < NaN", SLO{}, "is not a number", "nothing is less"},
		{"query x < 5", SLO{}, "not understood", "no quotes"},
		{"query '' < 5", SLO{}, "no expression found", "nothing is asked"},
		{"Ready p100 < 5s", SLO{}, "not a quantile", "the maximum is no quantile below 1"},
		{"Ready p0 < 5s", SLO{}, "not a quantile", "nor is the minimum"},
		{"Ready p99 < 5", SLO{}, "not a duration", "no unit"},
		{"Ready p99 < 0s", SLO{}, "not above 0", "a bound that nothing meets"},
		{"Ready p99 == 5s", SLO{}, "not understood", "no such comparison"},
		{"all Ready in 5s", SLO{}, "not understood", "the word is within"},
		{"error < 1%", SLO{}, "not understood", "the word is errors"},
		{"errors < 1", SLO{}, "not understood", "no percent sign"},
		{"", SLO{}, "not understood", "nothing"},
	} {
		got, err := Parse(tt.in)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("Parse(%q) (%s): error %v, want one with %q", tt.in, tt.why, err, tt.err)
			}
			continue
		}
		tt.want.text = got.text
		if err != nil || got != tt.want {
			t.Errorf("Parse(%q) (%s) = %+v, %v, want %+v", tt.in, tt.why, got, err, tt.want)
		}
		again, err := Parse(got.String())
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("Parse(%q) of its own text = %+v, %v, want %+v", got.String(), again, err, got)
		}
	}
}

// A figure is read by one rule and named in one way, whatever it is for.
func TestFiguresAreReadAsObjectivesAre(t *testing.T) {
	for text, want := range map[string]string{
		"Ready p99": "Ready p99", " Ready   P99.90 ": "Ready p99.9", "Ready max": "Ready max", "ContainersStarted p50": "ContainersStarted p50",
		"Ready p100": "", "Ready p0": "", "Ready": "", "p99": "", "Ready p99 <= 5s": "",
	} {
		f, err := ParseFigure(text)
		s, sloErr := Parse(text + " <= 5s")
		if (err == nil) != (want != "") || err == nil && f.String() != want {
			t.Errorf("ParseFigure(%q) = %s, %v, want %q", text, f, err, want)
		}
		if (err == nil) != (sloErr == nil) || err == nil && (s.Milestone != f.Milestone || s.Q != f.Q) {
			t.Errorf("%q is the figure %v (%v), and in an objective %v (%v)", text, f, err, s, sloErr)
		}
	}
}

func TestParseGoal(t *testing.T) {
	g, err := ParseGoal("fast=Ready p99 <= 2s; errors < 1%;")
	if err != nil || g.Name != "fast" || strings.Join(g.Texts(), "|") != "Ready p99 <= 2s|errors < 1%" {
		t.Errorf("ParseGoal = %+v, %v", g, err)
	}
	g, err = ParseGoal(`fast=query 'a{b="x;y"} > 0;' < 1; errors < 1%`)
	if err == nil {
		t.Errorf("a query that ends in a semicolon is %q", g.Texts())
	}
	g, err = ParseGoal(`fast=query 'a{b="x;y;z"}' < 1 ;errors < 1%`)
	if err != nil || strings.Join(g.Texts(), "|") != `query 'a{b="x;y;z"}' < 1|errors < 1%` {
		t.Errorf("ParseGoal with a query = %+v, %v", g, err)
	}
	if g, err := ParseGuard("query 'max_over_time(x[hold:1s])' < 1"); err == nil || !strings.Contains(err.Error(), "a guard has no [hold]") {
		t.Errorf("a guard with [hold] = %+v, %v", g, err)
	}
	if g, err := ParseGuard("query 'max_over_time(x[step])' < 1"); err != nil || g.Op.Holds(1, g.Value) {
		t.Errorf("a guard = %+v, %v", g, err)
	}
	for in, want := range map[string]string{
		"Ready p99 <= 2s": "not understood", // the operator's own =
		"fast=":           "no objective",
		"=all Ready":      "not understood",
		"fast=all":        "not understood",
	} {
		if _, err := ParseGoal(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseGoal(%q): error %v, want one with %q", in, err, want)
		}
	}
}

func TestUnknownNeverHolds(t *testing.T) {
	for _, op := range []Op{Less, LessEqual, Greater, GreaterEqual} {
		if op.Holds(math.NaN(), 1) {
			t.Errorf("NaN %s 1 holds: what is unknown must never pass", op)
		}
	}
	if LessEqual.Holds(math.Inf(1), 5) || !LessEqual.Holds(5, 5) || Less.Holds(5, 5) {
		t.Error("comparison is off at its bound")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"Ready p99 < 5s", "all Ready within 1s", "errors < 1%", "Ready max < 1s", "query 'rate(x[hold])' < 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		s, err := Parse(in)
		if err != nil {
			return
		}
		if again, err := Parse(s.String()); err != nil || again != s {
			t.Errorf("Parse(%q).String() = %q, which parses to %+v, %v", in, s.String(), again, err)
		}
	})
}
