package record

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
)

func TestWarningsAreGrouped(t *testing.T) {
	for _, tt := range []struct {
		why  string
		add  []Warning
		want []string
	}{
		{"one of the whole run", []Warning{{Text: "a"}}, []string{"a"}},
		{"the same again", []Warning{{Text: "a"}, {Text: "a"}, {Text: "a"}}, []string{"a (3 times)"}},
		{"other texts and kinds", []Warning{{Text: "a"}, {Text: "b"}, {Kind: WarningCut, Text: "a"}}, []string{"a", "b", "a"}},
		{"steps in any order", []Warning{{Text: "a", Steps: []int{4}}, {Text: "a", Steps: []int{2}}, {Text: "a", Steps: []int{3, 9}}}, []string{"steps 2-4, 9: a"}},
		{"one step", []Warning{{Text: "a", Steps: []int{4}}}, []string{"step 4: a"}},
		{"two that follow", []Warning{{Text: "a", Steps: []int{4, 5}}}, []string{"steps 4, 5: a"}},
		{"several in a step", []Warning{{Text: "a", Steps: []int{4}}, {Text: "a", Steps: []int{4}}}, []string{"step 4: a (2 times)"}},
		{"many steps", []Warning{{Text: "a", Steps: []int{1, 3, 5, 7, 9, 11, 13, 15}}}, []string{"steps 1, 3, 5, 7, 9, 11 and 2 more: a"}},
		{"places", []Warning{{Text: "a", Places: []string{"x"}}, {Text: "a", Places: []string{"y"}}, {Text: "a", Places: []string{"x"}}}, []string{"a (x, y)"}},
		{"times", []Warning{{Text: "a", Seconds: 0.25}, {Text: "a", Seconds: 1.5}}, []string{"a (2 times, at most 1.5s)"}},
		{"a time", []Warning{{Text: "a", Seconds: 0.25, Steps: []int{2}}}, []string{"step 2: a (250ms)"}},
	} {
		var l Warnings
		for _, w := range tt.add {
			l.Add(w)
		}
		if got := l.Lines(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}

// Ever more places neither fill the memory nor the screen.
func TestPlacesOfAWarningAreBounded(t *testing.T) {
	var l Warnings
	for i := range 5000 {
		l.Add(Warning{Text: "unknown", Places: []string{fmt.Sprint("ns-", i)}})
	}
	if got, want := l.Lines(), []string{"unknown (ns-0, ns-1, ns-2, ns-3, ns-4 and 4995 more)"}; !slices.Equal(got, want) || len(l[0].Places) != maxPlaces || l[0].Count != 5000 {
		t.Errorf("%q, %d places, %d times", got, len(l[0].Places), l[0].Count)
	}
}

// What Add was given stays as it was.
func TestWarningsKeepWhatIsTheirs(t *testing.T) {
	steps := []int{1, 5}
	var l Warnings
	l.Add(Warning{Text: "a", Steps: steps[:1]})
	l.Add(Warning{Text: "a", Steps: []int{3}})
	if steps[1] != 5 {
		t.Errorf("steps %v", steps)
	}
}

// Results from before warnings had kinds are read.
func TestWarningsWereTexts(t *testing.T) {
	var l Warnings
	if err := json.Unmarshal([]byte(`["a watch was cut", {"kind": "cpu", "text": "busy", "count": 2, "steps": [1, 2]}]`), &l); err != nil {
		t.Fatal(err)
	}
	want := Warnings{{Kind: WarningNote, Text: "a watch was cut", Count: 1}, {Kind: WarningCPU, Text: "busy", Count: 2, Steps: []int{1, 2}}}
	if !reflect.DeepEqual(l, want) {
		t.Errorf("%+v", l)
	}
	data, err := json.Marshal(l)
	var again Warnings
	if err == nil {
		err = json.Unmarshal(data, &again)
	}
	if err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("%v: %+v", err, again)
	}
}

// What was found in many places is a line that names the first of them.
func TestFindingsNameTheirPlaces(t *testing.T) {
	f := HealthFinding{What: "workload", Text: "the limit ranges of namespaces are unknown: forbidden"}
	for i := range 50 {
		f.Places = append(f.Places, fmt.Sprint("ns-", i))
	}
	const want = "workload: the limit ranges of namespaces are unknown: forbidden (ns-0, ns-1, ns-2, ns-3, ns-4 and 45 more)"
	if got := f.Warning().String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
