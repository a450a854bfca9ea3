package planted

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/settings"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		why   string
		list  string
		scale float64
		check func(Virt) bool
		err   string
	}{
		{"nothing given is the defaults", "", 1, func(v Virt) bool {
			return v.CloneWorkers == 10 && v.BootShare == 905*time.Millisecond && v.QPS == 200 && v.Burst == 400
		}, ""},
		{"durations are divided and rates multiplied, counts stay", "qps=5,burst=10,bootTime=30s", 60, func(v Virt) bool {
			return v.QPS == 300 && v.Burst == 10 && v.BootTime == 500*time.Millisecond && v.FlattenAbove == 250
		}, ""},
		{"a name is taken as it is", "lostNode=node-0003", 1, func(v Virt) bool { return v.LostNode == "node-0003" }, ""},
		{"a key that is misspelled", "botTime=3s", 1, nil, `unknown key "botTime" (did you mean "bootTime"?)`},
		{"a duration without a unit", "bootTime=3", 1, nil, "bootTime: wants a duration such as 10s, found the number 3 (write the unit: 3s)"},
		{"fewer workers than one would never clone", "cloneWorkers=0", 1, nil, "cloneWorkers: must be at least 1, is 0"},
		{"no time is negative", "reboot=-1s", 1, nil, "reboot: must be at least 0, is -1s"},
		{"no number is none", "qps=NaN", 1, nil, "qps: wants a number"},
		{"a rate that is too low", "qps=0.01", 1, nil, "qps: must be at least 0.1, is 0.01"},
		{"a pair needs a value", "qps", 1, nil, "want KEY=VALUE"},
	} {
		given, err := settings.ParseList(tt.list)
		var v Virt
		if err == nil {
			v, err = Parse(given, tt.scale)
		}
		switch {
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: got %v, want %q", tt.why, err, tt.err)
		case tt.err == "" && (err != nil || !tt.check(v)):
			t.Errorf("%s: %v %+v", tt.why, err, v)
		}
	}
}

// The page lists every figure with its default and meaning.
func TestFiguresAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/virt-lab.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range settings.Fields(Virt{}) {
		if row := fmt.Sprintf("| `%s` | %s | %s |\n", f.Path, cmp.Or(f.Tag.Get("default"), "none"), f.Tag.Get("help")); !strings.Contains(string(page), row) {
			t.Errorf("docs/virt-lab.md lacks the row\n%s", row)
		}
	}
}
