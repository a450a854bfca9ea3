package experiment

import (
	"reflect"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan"
)

func TestParseArm(t *testing.T) {
	for _, c := range []struct {
		why, text string
		want      plan.Arm
	}{
		{"nothing changes", "base:", plan.Arm{Name: "base"}},
		{"one parameter", "a:x=1", plan.Arm{Name: "a", Params: plan.Params{"x": "1"}}},
		{"the name ends at the first colon", "a:image=host:5000/i", plan.Arm{Name: "a", Params: plan.Params{"image": "host:5000/i"}}},
		{"a part without = belongs to the value before it", "a:d=uniform:1s,2s,x=1", plan.Arm{Name: "a", Params: plan.Params{"d": "uniform:1s,2s", "x": "1"}}},
		{"only the first = divides", "a:sel=k=v", plan.Arm{Name: "a", Params: plan.Params{"sel": "k=v"}}},
		{"an empty value", "a:x=", plan.Arm{Name: "a", Params: plan.Params{"x": ""}}},
	} {
		if got, err := parseArm(c.text); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v", c.why, got, err)
		}
	}
	for _, c := range []struct{ why, text string }{
		{"no colon", "a"}, {"no name", ":x=1"}, {"a value without a parameter", "a:1s"},
		{"a parameter without a name", "a:=1"}, {"a parameter twice", "a:x=1,x=2"},
	} {
		if got, err := parseArm(c.text); err == nil {
			t.Errorf("%s is read as %+v", c.why, got)
		}
	}
}
