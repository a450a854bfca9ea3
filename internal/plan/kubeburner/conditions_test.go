package kubeburner

import (
	"encoding/json"
	"strings"
	"testing"
)

// What is waited for holds, does not hold yet, or fails by name.
func TestConditions(t *testing.T) {
	const available = `{"conditions":[{"type":"Progressing","status":"False"},{"type":"Available","status":"True"}],"n":2,"list":[]}`
	path := func(key, value string) WaitOptions {
		return WaitOptions{CustomStatusPaths: []StatusPath{{Key: key, Value: value}}}
	}
	for _, tt := range []struct {
		why     string
		options WaitOptions
		kind    string
		status  string
		unmet   string // in what does not hold, "" for all holds
		err     string
	}{
		{"a path as jq 1.7 writes it", path(`(.conditions.[] | select(.type == "Available")).status`, "True"), "", available, "", ""},
		{"a number", path(".n", "2"), "", available, "", ""},
		{"another value", path(".n", "3"), "", available, ".n is 2, not 3", ""},
		{"what is not there yet", path(`(.conditions[] | select(.type == "Available")).status`, "True"), "", `null`, "is not there", ""},
		{"no such entry", path(".list[].a", "x"), "", available, "not there", ""},
		{"a condition by name", WaitOptions{ForCondition: "Available"}, "", available, "", ""},
		{"a condition that is false", WaitOptions{ForCondition: "Progressing"}, "", available, "is False, not True", ""},
		{"all of them", WaitOptions{ForCondition: "Available", CustomStatusPaths: []StatusPath{{Key: ".n", Value: "1"}}}, "", available, ".n is 2, not 1", ""},
		{"what being ready means for a kind", WaitOptions{Kind: "PersistentVolumeClaim"}, "PersistentVolumeClaim", `{"phase":"Bound"}`, "", ""},
		{"a kind of which that is unknown", WaitOptions{Kind: "Widget"}, "Widget", `{}`, "", "say it in customStatusPaths"},
		{"no jq", path(".n |", "2"), "", available, "", `the jq expression ".n |" is not valid`},
		{"a function that jq does not have", path("frob(.n)", "2"), "", available, "", "frob"},
		{"jq that fails", path(".n | keys", "2"), "", available, "", `the jq expression ".n | keys" fails`},
		{"functions, lists and comparisons", path(`[.conditions[] | select(.status == "True" and (.type | test("^A")))] | length >= 1`, "true"), "", available, "", ""},
		{"a sum", path(`.n + 1`, "3"), "", available, "", ""},
		{"jq that never ends", path("def f: f; f", "2"), "", available, "", "it defines functions, loops or imports"},
		{"jq without end that gives results", path("repeat(.n)", "3"), "", available, "", `function "repeat"`},
		{"the environment, which jq could read", path(`env.HOME // "none"`, "none"), "", available, "", `function "env"`},
		{"and by its variable", path(`$ENV.HOME`, "none"), "", available, "", `function "$ENV"`},
		{"a list of 5e8", path(".[5e8] = 1", "2"), "", available, "", "operator ="},
		{"a text that is repeated", path(`"x" * 1e9`, "2"), "", available, "", "operator *"},
		{"a text that doubles", path(`"x"`+strings.Repeat(" | . + .", 40), "2"), "", available, "", "it makes more than 8 values"},
		{"a list that doubles", path(`.list`+strings.Repeat(" | [.[], .]", 40), "2"), "", available, "", "it makes more than 8 values"},
		{"a loop that doubles", path(`reduce range(64) as $i ("x"; . + .)`, "2"), "", available, "", "it defines functions, loops or imports"},
		{"an escape that doubles", path(`"\""`+strings.Repeat(" | @json", 40), "2"), "", available, "", "format @json"},
	} {
		c, err := tt.options.Conditions(tt.kind)
		unmet := ""
		if err == nil {
			var status any
			if err := json.Unmarshal([]byte(tt.status), &status); err != nil {
				t.Fatal(err)
			}
			unmet, err = c.Unmet(t.Context(), status)
		}
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: error %v, want %q", tt.why, err, tt.err)
		}
		if (unmet == "") != (tt.unmet == "") || !strings.Contains(unmet, tt.unmet) {
			t.Errorf("%s: %q, want %q", tt.why, unmet, tt.unmet)
		}
	}
}

// An entry's objects are waited for by its options, and without options as kube-burner waits for their kind, unless
// their pods are followed.
func TestAwaits(t *testing.T) {
	own := WaitOptions{CustomStatusPaths: []StatusPath{{Key: ".a", Value: "b"}}}
	byLabel := WaitOptions{LabelSelector: map[string]string{"a": "b"}}
	for _, tt := range []struct {
		kind                   string
		without, label, custom bool
	}{
		{"Pod", false, true, true}, {"Deployment", false, true, true}, {"DaemonSet", false, true, true},
		{"PersistentVolumeClaim", true, true, true}, {"Job", true, true, true}, {"CustomResourceDefinition", true, true, true},
		{"ConfigMap", false, false, true},
	} {
		if got := [3]bool{(&WaitOptions{}).Awaits(tt.kind), byLabel.Awaits(tt.kind), own.Awaits(tt.kind)}; got != [3]bool{tt.without, tt.label, tt.custom} {
			t.Errorf("%s: %v", tt.kind, got)
		}
	}
	if c, err := (&WaitOptions{}).Conditions("StatefulSet"); err != nil {
		t.Error(err)
	} else if unmet, err := c.Unmet(t.Context(), map[string]any{"replicas": 2, "readyReplicas": 1}); unmet == "" || err != nil {
		t.Errorf("%q, %v", unmet, err)
	} else if unmet, _ := c.Unmet(t.Context(), map[string]any{"replicas": 2, "readyReplicas": 2}); unmet != "" {
		t.Error(unmet)
	}
}
