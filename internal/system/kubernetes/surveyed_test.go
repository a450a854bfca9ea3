package kubernetes

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/survey"
)

// A real API server is read in full, and in a time that nobody notices before a
// run.
func TestSurveyOfALab(t *testing.T) {
	t.Parallel()
	kubeconfig := needLab(t).Kubeconfig
	c, err := Connect(kubeconfig, "", system.Host{Build: record.Build{Version: "test"}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	begin := time.Now()
	s, err := c.Survey(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	assessed, err := s.Assess(context.Background(), survey.Demand{Axis: ceiling.Axis{Name: "pods-per-node", Unit: "pods/node"}})
	if err != nil {
		t.Fatal(err)
	}
	table := ceiling.Compute(assessed.Facts)
	row := func(name string) record.Ceiling {
		i := slices.IndexFunc(table.Ceilings, func(c record.Ceiling) bool { return c.Name == name })
		if i < 0 {
			t.Fatalf("no ceiling %s in %+v", name, table.Ceilings)
		}
		return table.Ceilings[i]
	}
	t.Logf("a survey of 4 nodes took %v", time.Since(begin).Round(time.Millisecond))
	if c := row("allocatablePods"); !c.Binds || *c.Level != 40 || c.Reason != "Too many pods on 4 of 4 nodes" {
		t.Errorf("allocatable pods: %+v", c)
	}
	if c := row("serviceAddresses"); *c.Limit != 1<<20-2 || c.From != "servicecidrs.networking.k8s.io" {
		t.Errorf("addresses for services: %+v", c)
	}
	if c := row("podAddressesPerNode"); c.Class != record.CeilingUnknown || !strings.Contains(c.Note, "without looking at the end") {
		t.Errorf("pod addresses of simulated nodes: %+v", c)
	}
	h := s.Health()
	if err := s.Examine(context.Background(), &h, []ceiling.Right{{Verb: "create", Resource: "pods"}, {Verb: "create", Resource: "deployments.apps", Where: "default"}}, ""); err != nil {
		t.Fatal(err)
	}
	if list := ceiling.Judge(h); ceiling.Worst(list) != record.SeverityOK && h.Leftovers == nil {
		t.Errorf("findings %+v", list)
	}
	if h.User != "plimsoll" || h.Exempt == nil || *h.Exempt || len(h.Checks) < 10 || !h.Checks["etcd"] {
		t.Errorf("user %q, exempt %v, checks %v", h.User, h.Exempt, h.Checks)
	}
}
