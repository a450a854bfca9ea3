package experiment

import (
	"context"
	"errors"
	"os"
	"slices"

	"plimsoll.dev/plimsoll/internal/cli/burner"
	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/documents"
)

// asks says whether an endpoint of a configuration may be asked: if a flag names its address, too.
func (r *runner) asks(e *kubeburner.MetricsEndpoint) bool {
	named := r.endpoints != nil || slices.Contains(r.said.allow, e.Endpoint) || r.plan.Prometheus != nil && r.plan.Prometheus.URL == e.Endpoint
	return e.Endpoint != "" && named
}

// found asks the profiles of a configuration about the jobs of a run.
func (r *runner) found(ctx context.Context, dir record.Dir, of documents.Configuration) (found documents.Found, err error) {
	c, err := r.configuration(of.UUID)
	if c == nil || err != nil {
		return found, err
	}
	profiles, err := c.Profiles(r.workload.Files())
	if len(profiles) == 0 || err != nil {
		return found, err
	}
	defer r.p.WaitFor("asking for metrics and alerts")()
	store, err := metrics.Open(dir, os.TempDir())
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var spans []documents.Span
	c.Stages(nil)
	for _, s := range store.Built.Steps {
		i := int(s.Level) - 1
		if i < 0 || i >= len(c.Jobs) {
			continue
		}
		j := &c.Jobs[i]
		span := documents.Span{Job: j.Name, From: s.From, To: s.To, Skip: j.SkipIndexing}
		if j.MetricsClosing != "afterJob" {
			span.To = span.To.Add(j.JobPause)
		}
		spans = append(spans, span)
	}
	for _, p := range profiles {
		asked := burner.OnRecord(store)
		if r.asks(p.Endpoint) {
			if asked, err = burner.Remote(r.p, p.Endpoint); err != nil {
				return found, err
			}
		}
		found.Add(ctx, of, p, asked, spans)
	}
	return found, nil
}
