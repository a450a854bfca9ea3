package kubeburner

import (
	"testing"
)

// A job's own measurement replaces the configuration's; targets that cannot be fetched are refused with their lines.
func TestPProf(t *testing.T) {
	t.Parallel()
	c := &Config{Global: Global{Measurements: []Measurement{{Name: pprof, PProfDirectory: "all"}}}, Jobs: []Job{{}, {Measurements: []Measurement{{Name: "podLatency"}, {Name: pprof, PProfDirectory: "own"}}}}}
	if a, b := c.PProf(&c.Jobs[0]), c.PProf(&c.Jobs[1]); a.PProfDirectory != "all" || b.PProfDirectory != "own" || (&Config{}).PProf(&c.Jobs[0]) != nil {
		t.Errorf("%v, %v", a, b)
	}
	pods := map[string]string{"a": "b"}
	for _, tt := range []struct {
		why    string
		target PProfTarget
		want   string // path of the refusal, "" for none
	}{
		{"a pod's own port", PProfTarget{Name: "etcd", LabelSelector: pods, URL: "https://localhost:2379/debug/pprof/heap", Cert: "x", Key: "y"}, ""},
		{"any path of a pod", PProfTarget{Name: "app", LabelSelector: pods, URL: "http://127.0.0.1:8080/profile?seconds=5", BearerToken: "t"}, ""},
		{"kubelets", PProfTarget{Name: "kubelet", URL: "https://localhost:10250/debug/pprof/heap"}, ""},
		{"another host", PProfTarget{Name: "a", LabelSelector: pods, URL: "https://etcd.example:2379/debug/pprof/heap"}, "x.pprofTargets[0].url"},
		{"a user in the address", PProfTarget{Name: "a", LabelSelector: pods, URL: "https://me:pw@localhost:2379/debug/pprof/heap"}, "x.pprofTargets[0].url"},
		{"no address", PProfTarget{Name: "a", LabelSelector: pods, URL: "ftp://localhost/x"}, "x.pprofTargets[0].url"},
		{"something else of nodes", PProfTarget{Name: "a", URL: "https://localhost:10250/pods"}, "x.pprofTargets[0].url"},
		{"a socket of nodes", PProfTarget{Name: "crio", URL: "http://localhost/debug/pprof/heap", UnixSocketPath: "/var/run/crio/crio.sock"}, "x.pprofTargets[0].unixSocketPath"},
		{"a name that leads elsewhere", PProfTarget{Name: "../a", LabelSelector: pods, URL: "http://localhost/a"}, "x.pprofTargets[0].name"},
		{"two ways to be let in", PProfTarget{Name: "a", LabelSelector: pods, URL: "http://localhost/a", BearerToken: "t", CertFile: "c"}, "x.pprofTargets[0].bearerToken"},
	} {
		u := new(served)
		u.pprof("x", &Measurement{PProfDirectory: "pprof", PProfTargets: []PProfTarget{tt.target}})
		got := ""
		for _, p := range u.Problems {
			got += p.Path
		}
		if got != tt.want {
			t.Errorf("%s: %v", tt.why, u.Problems)
		}
	}
	u := new(served)
	u.pprof("x", &Measurement{PProfDirectory: "../x"})
	if len(u.Problems) != 1 {
		t.Errorf("a directory elsewhere: %v", u.Problems)
	}
}
