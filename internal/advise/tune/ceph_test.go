package tune

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/ceph"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

func TestCephPlacementGroups(t *testing.T) {
	// V12: 100 x 141 x 0.85 / 3 = 3995, rounded to 4096.
	a, err := ceph.Tune(ceph.Ceph{OSDs: count(141), Replicas: count(3)})
	answered(t, a, err)
	wantResult(t, a, "pgNum", int64(4096))
	if !strings.Contains(a.Steps[0].Numbers, "= 3995") {
		t.Errorf("the step does not show 3995: %+v", a.Steps[0])
	}
	if c := correction(t, a, "V13"); !strings.Contains(c.Right, "pg_autoscale_mode") {
		t.Errorf("%+v", c)
	}
	text := fileOf(t, a, "ceph-tuning.sh")
	for _, part := range []string{"pg_autoscale_mode off", "pg_num 4096", "rbd_stats_pools_refresh_interval 600", "scrape_interval 60"} {
		if !strings.Contains(text, part) {
			t.Errorf("the script lacks %q", part)
		}
	}
	if strings.Contains(text, "pg_autoscaler_mode") {
		t.Error("the script has the key that does not exist")
	}
	shellReads(t, text)
	for _, tt := range []struct {
		why            string
		p              ceph.Ceph
		use, other     int64 // 0: the same
		grade          answer.Grade
		floored, pools bool
	}{
		{"rounding down by 29%: the calculator takes the next power of two", ceph.Ceph{OSDs: count(141), Replicas: count(3), Fill: param.Given[param.Share](0.613, "flag")}, 2048, 4096, answer.OK, false, false},
		{"64 is 24.7% below 85: both take it", ceph.Ceph{OSDs: count(3), Replicas: count(3)}, 64, 0, answer.OK, false, false},
		{"one OSD, one copy", ceph.Ceph{OSDs: count(1), Replicas: count(1), Target: count(1), Fill: param.Given[param.Share](0.01, "flag")}, 1, 0, answer.OK, false, false},
		{"a target beyond what monitors allow", ceph.Ceph{OSDs: count(100), Replicas: count(3), Target: count(400)}, 8192, 16384, answer.Change, false, false},
	} {
		a, err := ceph.Tune(tt.p)
		answered(t, a, err)
		wantResult(t, a, "pgNum", tt.use)
		if tt.other != 0 {
			wantResult(t, a, "pgNumOther", tt.other)
		} else if a.Result("pgNumOther") != nil {
			t.Errorf("%s: another result %v", tt.why, a.Result("pgNumOther"))
		}
		if tt.grade == answer.OK && finding(t, a, "placement groups on each OSD").Grade == answer.Cannot {
			t.Errorf("%s: %+v", tt.why, a.Findings)
		}
	}
}

func TestCephSeveralPools(t *testing.T) {
	a, err := ceph.Tune(ceph.Ceph{OSDs: count(141), Pools: []ceph.CephPool{{Name: "vms", Share: 0.8}, {Name: "tiny", Share: 0.001}, {Name: "archive", Share: 0.1, Size: 6}}})
	answered(t, a, err)
	wantResult(t, a, "pgNum.vms", int64(4096))
	wantResult(t, a, "pgNum.tiny", int64(64))     // 4.7 is below the floor 141/3 = 47, rounded to 64
	wantResult(t, a, "pgNum.archive", int64(256)) // 100 x 141 x 0.1 / 6 = 235
	wantResult(t, a, "pgNumOther.tiny", int64(4))
	if len(a.Warnings) == 0 || !strings.Contains(strings.Join(a.Warnings, " "), "90.1%") {
		t.Errorf("shares that do not come to 100%% are not warned about: %q", a.Warnings)
	}
	for why, pools := range map[string][]ceph.CephPool{
		"more than all data":  {{Name: "a", Share: 0.7}, {Name: "b", Share: 0.5}},
		"the same pool":       {{Name: "a", Share: 0.1}, {Name: "a", Share: 0.1}},
		"no share":            {{Name: "a", Share: 0}},
		"a name for a shell":  {{Name: "a; reboot", Share: 0.1}},
		"copies without OSDs": {{Name: "a", Share: 0.1, Size: 11}},
	} {
		if _, err := ceph.Tune(ceph.Ceph{OSDs: count(10), Pools: pools}); err == nil {
			t.Errorf("%s was taken", why)
		}
	}
}

func TestCephClones(t *testing.T) {
	for _, tt := range []struct {
		clones  int64
		grade   answer.Grade
		parents any
	}{{0, "", nil}, {100, answer.OK, int64(1)}, {101, answer.Change, int64(1)}, {800, answer.Change, int64(4)}} {
		a, err := ceph.Tune(ceph.Ceph{OSDs: count(141), Clones: count(tt.clones)})
		answered(t, a, err)
		wantResult(t, a, "parentImages", tt.parents)
		if tt.grade != "" {
			if f := finding(t, a, "clones of one image"); f.Grade != tt.grade {
				t.Errorf("%d clones: %+v", tt.clones, f)
			}
			var profile map[string]any
			if err := yaml.Unmarshal([]byte(fileOf(t, a, "storageprofile.yaml")), &profile); err != nil {
				t.Fatal(err)
			}
			if spec := profile["spec"].(map[string]any); spec["cloneStrategy"] != "copy" || profile["apiVersion"] != "cdi.kubevirt.io/v1beta1" {
				t.Errorf("%v", profile)
			}
			if _, ok := profile["metadata"].(map[string]any)["namespace"]; ok {
				t.Error("a StorageProfile belongs to no namespace")
			}
		}
	}
}

// shellReads fails the test if a shell cannot read a script.
func shellReads(t *testing.T, text string) {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell here")
	}
	cmd := exec.Command(sh, "-n")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("sh -n: %v %s\n%s", err, out, text)
	}
}

// V29: each copy fewer takes a third of the added latency away. A pool that was
// not named is an argument of the script.
func TestCephCopies(t *testing.T) {
	for copies, want := range map[int64]float64{3: 88, 2: 59} {
		a, err := ceph.Tune(ceph.Ceph{OSDs: count(141), Replicas: count(copies)})
		answered(t, a, err)
		wantResult(t, a, "writeLatencyAdded", want)
		if text := fileOf(t, a, "ceph-tuning.sh"); strings.Contains(text, " POOL") || !strings.Contains(text, `ceph osd pool set "$pool" pg_num 4096`) && copies == 3 {
			t.Errorf("%s", text)
		}
	}
	if _, err := ceph.Tune(ceph.Ceph{OSDs: count(3), Replicas: count(5)}); err == nil {
		t.Error("five copies on three OSDs were taken")
	}
}
