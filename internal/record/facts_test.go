package record

import (
	"fmt"
	"testing"
)

func TestPlacesThatAreAlikeAreTogether(t *testing.T) {
	var p Places
	for i := range 1000 {
		p.Add(fmt.Sprintf("n%03d", i), Real, fmt.Sprint(min(i/100, 1)))
	}
	if len(p.Rows) != 2 || p.Rows[0].Count != 100 || p.Rows[0].First != "n000" || p.Rows[0].Last != "n099" || p.Rows[1].Count != 900 || p.Rows[1].Last != "n999" {
		t.Errorf("rows %+v", p.Rows)
	}
}

func TestValuesThatAreTheSame(t *testing.T) {
	known := func(f Fact, values ...string) Known {
		e := Environment{Places: &Places{Facts: []Fact{f}}}
		for i, v := range values {
			e.Places.Add(fmt.Sprint(i), Real, v)
		}
		return e.Known()[0]
	}
	for _, tt := range []struct {
		why  string
		fact Fact
		a, b []string
		want bool
	}{
		{"a text", Fact{}, []string{"v1"}, []string{"v1"}, true},
		{"another text", Fact{}, []string{"v1"}, []string{"v2"}, false},
		{"a number that is close, where that does not do", Fact{}, []string{"100"}, []string{"101"}, false},
		{"within a share of the larger", Fact{Within: "2%"}, []string{"98"}, []string{"100"}, true},
		{"beyond it", Fact{Within: "2%"}, []string{"97.9"}, []string{"100"}, false},
		{"within so many of the unit", Fact{Unit: "s", Within: "1"}, []string{"-0.5"}, []string{"+0.5"}, true},
		{"beyond that", Fact{Unit: "s", Within: "1"}, []string{"-0.5"}, []string{"+0.6"}, false},
		{"no number", Fact{Within: "2%"}, []string{"some"}, []string{"100"}, false},
		{"more places, each alike", Fact{}, []string{"a", "a"}, []string{"a", "a", "a", "a"}, true},
		{"the same shares", Fact{}, []string{"b", "a"}, []string{"a", "b", "a", "b"}, true},
		{"other shares", Fact{}, []string{"a", "a", "a", "b"}, []string{"a", "b", "b", "b"}, false},
		{"sorted as numbers", Fact{Within: "2%"}, []string{"1000", "99"}, []string{"100", "1001"}, true},
	} {
		if a, b := known(tt.fact, tt.a...), known(tt.fact, tt.b...); a.Same(b) != tt.want || b.Same(a) != tt.want {
			t.Errorf("%s: %v", tt.why, !tt.want)
		}
	}
}

func TestValuesAsPeopleReadThem(t *testing.T) {
	for _, tt := range []struct {
		fact   Fact
		values []string
		want   string
	}{
		{Fact{}, []string{"v1", "v1"}, "v1"},
		{Fact{Unit: "B"}, []string{"25276510208"}, "23.5 GiB"},
		{Fact{Unit: "B"}, []string{"8589934592", "17179869184", "17179869184"}, "16 GiB on 67%, 8 GiB on 33%"},
		{Fact{Unit: "s"}, []string{"+0.2"}, "+0.2 s"},
		{Fact{}, []string{"", "a"}, "a on 50%, not on record on 50%"},
		{Fact{}, []string{"a", "b", "c", "d", "e", "f"}, "a on 17%, b on 17%, c on 17%, d on 17%, and 2 more"},
	} {
		if got := (Known{tt.fact, tt.values}).Text(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// What is wrong with a target before any load is a fact, without how much of it.
func TestWhatFollowsFromTheRest(t *testing.T) {
	level := 12.5
	e := Environment{
		Target: TargetNaming{Kind: "lab", Name: "private-1", Private: true}, Fidelity: Fidelity{Nodes: Simulated},
		Findings: []HealthFinding{{Severity: SeverityWarning, What: "pods"}, {Severity: SeverityWarning, What: "pods"}, {Severity: SeverityWarning, What: "clock"}, {Severity: SeverityOK, What: "etcd"}},
		Ceilings: &CeilingTable{Ceilings: []Ceiling{{Name: "podAddresses", Level: &level, Binds: true}}},
	}
	got := ""
	for _, k := range e.Known() {
		got += fmt.Sprintf("%s=%s ", k.Name, k.Text())
	}
	if want := "target=lab target-name=private fidelity:nodes=simulated health=pods: warning ceilings=podAddresses at 12.5 "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
