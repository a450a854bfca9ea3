package documents

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
)

// Span is the time of a job, in which its metrics are asked for.
type Span struct {
	Job      string
	From, To time.Time
	Skip     bool // says that its metrics are not indexed
}

// Fired is an alert that fired, for one series.
type Fired struct {
	*kubeburner.Alert
	Job  string
	Text string
	At   time.Time
}

// String returns the alert for people.
func (f Fired) String() string {
	text := fmt.Sprintf("%s: %s at %s", f.Severity, f.Text, f.At.UTC().Format(time.RFC3339))
	if f.Job != "" {
		text += ", in job " + f.Job
	}
	return text
}

// Found holds what the profiles of a run have found.
type Found struct {
	Documents []Document
	Fired     []Fired
	Unknown   []string // questions that nobody has answered, with the reasons
	Alerts    bool     // says that some of these are alerts
}

// Asked answers the questions of a profile.
type Asked struct {
	metrics.Asker
	// Lacks returns the metrics that a query names and that have no series on record. It is nil for a Prometheus.
	Lacks func(ctx context.Context, query string) []string
}

// Add asks the questions of a profile about spans of time. With each question unanswered the rest is still asked.
func (f *Found) Add(ctx context.Context, c Configuration, p kubeburner.Profile, of Asked, spans []Span) {
	q := &questions{f, c, of, p.Endpoint.Step}
	for _, s := range spans {
		for i := range p.Alerts {
			q.alert(ctx, &p.Alerts[i], s)
		}
		for i := range p.Metrics {
			if !s.Skip {
				q.metric(ctx, &p.Metrics[i], s)
			}
		}
	}
}

type questions struct {
	*Found
	Configuration
	of   Asked
	step time.Duration
}

func (q *questions) unknown(what string, s Span, why string) {
	if s.Job != "" {
		what += " of job " + s.Job
	}
	q.Unknown = append(q.Unknown, what+": "+why)
}

func (q *questions) alert(ctx context.Context, a *kubeburner.Alert, s Span) {
	expr, err := a.PromQL(s.To.Sub(s.From))
	var answer metrics.Answer
	if err == nil {
		answer, err = q.of.Range(ctx, expr, s.From, s.To, q.step)
	}
	what := fmt.Sprintf("alert %q", a.Expr)
	switch {
	case err != nil:
		q.unknown(what, s, err.Error())
		q.Alerts = true
	case answer.Empty() && q.of.Lacks != nil:
		if names := q.of.Lacks(ctx, expr); len(names) > 0 {
			q.unknown(what, s, "the record has no series of "+strings.Join(names, ", "))
			q.Alerts = true
		}
	}
	for _, series := range answer.Series() {
		if err != nil || len(series.Values) == 0 {
			continue
		}
		first := series.Values[0]
		text, err := a.Describe(series.Labels, first.F)
		if err != nil {
			text = a.Description
		}
		at := time.UnixMilli(first.T).UTC()
		q.Fired = append(q.Fired, Fired{a, s.Job, cmp.Or(text, a.Expr), at})
		q.put("alert", map[string]any{"timestamp": at.Format(time.RFC3339Nano), "uuid": q.UUID, "severity": a.Severity, "description": text, "metricName": "alert", "metadata": q.Metadata})
	}
}

// metric asks for a metric over a job's time, and at its end if that is between two steps; or at single times.
func (q *questions) metric(ctx context.Context, m *kubeburner.Metric, s Span) {
	query, err := m.PromQL(s.To.Sub(s.From))
	if err != nil {
		q.unknown("metric "+m.MetricName, s, err.Error())
		return
	}
	at := func(name string, t time.Time) {
		answer, err := q.of.At(ctx, query, t)
		q.points(name, query, s, answer, err)
	}
	if m.Instant && m.CaptureStart {
		at(m.MetricName+"-start", s.From)
	}
	if !m.Instant {
		answer, err := q.of.Range(ctx, query, s.From, s.To, q.step)
		q.points(m.MetricName, query, s, answer, err)
	}
	if m.Instant || s.To.Sub(s.From)%q.step != 0 {
		at(m.MetricName, s.To)
	}
}

func (q *questions) points(name, query string, s Span, answer metrics.Answer, err error) {
	if err != nil {
		q.unknown("metric "+name, s, err.Error())
		return
	}
	for _, series := range answer.Series() {
		delete(series.Labels, "__name__")
		for _, p := range series.Values {
			value := p.F
			if math.IsNaN(value) {
				value = 0
			}
			if math.IsInf(value, 0) {
				continue // JSON has no such number
			}
			d := map[string]any{"timestamp": time.UnixMilli(p.T).UTC().Format(time.RFC3339Nano), "labels": series.Labels, "value": value, "uuid": q.UUID, "query": query, "metricName": name, "jobName": s.Job, "metadata": q.Metadata}
			q.put(name, d)
		}
	}
}

// put adds a document to those of a metric.
func (q *questions) put(metric string, d map[string]any) {
	for i := range q.Documents {
		if q.Documents[i].Metric == metric {
			q.Documents[i].Items = append(q.Documents[i].Items, d)
			return
		}
	}
	q.Documents = append(q.Documents, Document{Metric: metric, Items: []any{d}})
}
