package kubeburner

import (
	"fmt"
	"io/fs"
	"maps"
	"math"
	"strings"
	"text/template"
	"time"

	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Alert is an entry of an alert profile: it fires for each series that its expression gives.
type Alert struct {
	Expr        string `yaml:"expr" needed:""`
	Description string `yaml:"description"`
	Severity    string `yaml:"severity" default:"info" words:"info, warning, error, critical"`
	expr        *query
	description *template.Template
	calls       calls
}

// Fails reports whether a run of which the alert fires does not pass.
func (a *Alert) Fails() bool { return a.Severity == "error" || a.Severity == "critical" }

// Metric is an entry of a metrics profile.
type Metric struct {
	Query        string `yaml:"query" needed:""`
	MetricName   string `yaml:"metricName" needed:""`
	Instant      bool   `yaml:"instant"`      // at the end of a job, instead of its whole time
	CaptureStart bool   `yaml:"captureStart"` // with instant, also at its start
	query        *query
}

// Profile holds the profiles of one endpoint.
type Profile struct {
	Endpoint *MetricsEndpoint
	Alerts   []Alert
	Metrics  []Metric
}

// query is a template of PromQL.
type query struct {
	*template.Template
	calls
	env map[string]string
}

// PromQL returns an alert's query for a job that took so long.
func (a *Alert) PromQL(elapsed time.Duration) (string, error) {
	return a.expr.over(fmt.Sprintf("%dm", int(elapsed.Minutes())))
}

// PromQL returns a metric's query for a job that took so long.
func (m *Metric) PromQL(elapsed time.Duration) (string, error) {
	return m.query.over(fmt.Sprintf("%ds", int(elapsed.Seconds())))
}

func (q *query) over(elapsed string) (string, error) {
	data := map[string]any{}
	for name, value := range q.env {
		data[name] = value
	}
	data["elapsed"] = elapsed
	text, err := execute(q.Template, data, q.calls)
	return string(text), err
}

// Describe returns the alert's description of a series and its value, of three decimals.
func (a *Alert) Describe(labels map[string]string, value float64) (string, error) {
	text, err := execute(a.description, map[string]any{"Labels": maps.Clone(labels), "Value": math.Round(value*1000) / 1000}, a.calls)
	return string(text), err
}

// Profiles reads the alert and metrics profiles of all endpoints, which lie beside the configuration. It returns all
// problems as one *strictyaml.Error.
func (c *Config) Profiles(fsys fs.FS) ([]Profile, error) {
	return c.ProfilesBy(func(name string) (string, error) { return readFile(fsys, name) })
}

// ProfilesBy reads them by a function that returns a file.
func (c *Config) ProfilesBy(read func(name string) (string, error)) (list []Profile, err error) {
	v := strictyaml.Validation{At: c.positions}
	for i := range c.MetricsEndpoints {
		e, path := &c.MetricsEndpoints[i], strictyaml.Index("metricsEndpoints", i)
		p := Profile{Endpoint: e}
		for k, name := range e.Alerts {
			entries, err := readProfile[Alert](read, name)
			for n := range entries {
				if err == nil {
					err = entries[n].compile(name, c.env)
				}
			}
			p.Alerts = append(p.Alerts, entries...)
			failAt(&v, strictyaml.Index(path+".alerts", k), err)
		}
		for k, name := range e.Metrics {
			entries, err := readProfile[Metric](read, name)
			for n := range entries {
				if m := &entries[n]; err == nil {
					m.query, err = compileQuery(name, m.Query, c.env)
				}
			}
			p.Metrics = append(p.Metrics, entries...)
			failAt(&v, strictyaml.Index(path+".metrics", k), err)
		}
		if len(p.Alerts)+len(p.Metrics) > 0 {
			list = append(list, p)
		}
	}
	return list, strictyaml.Join(v.Problems)
}

// CheckEndpoints fills in endpoints of a file of their own, and checks them.
func CheckEndpoints(file string, list []MetricsEndpoint) error {
	c := &Config{MetricsEndpoints: list}
	Default(c)
	v := &validator{settings.NewCheck(c, nil)}
	v.Problems = settings.Validate(c, "", nil)
	v.endpoints(list)
	for i := range v.Problems {
		v.Problems[i].File = file
	}
	return strictyaml.Join(v.Problems)
}

func readProfile[T any](read func(name string) (string, error), name string) (list []T, err error) {
	text, err := read(name)
	if err != nil {
		return nil, err
	}
	at, err := strictyaml.Decode(name, []byte(text), &list)
	if err != nil {
		return nil, err
	}
	var problems []strictyaml.Problem
	for i := range list {
		in := strictyaml.Index("", i)
		settings.Default(&list[i], func(path string) bool { return at.Has(in + "." + path) })
		problems = append(problems, settings.Validate(&list[i], in, at)...)
	}
	return list, strictyaml.Join(problems)
}

func (a *Alert) compile(file string, env map[string]string) (err error) {
	if a.expr, err = compileQuery(file, a.Expr, env); err != nil {
		return err
	}
	a.calls = functions(nil)
	a.description, err = newTemplate(file, "{{$labels := .Labels}}{{$value := .Value}}"+a.Description, a.calls, true)
	return err
}

func compileQuery(file, text string, env map[string]string) (*query, error) {
	q := &query{calls: functions(nil), env: env}
	var err error
	if q.Template, err = newTemplate(file, text, q.calls, false); err != nil {
		return nil, err
	}
	promQL, err := q.over("10m")
	if err == nil {
		err = metrics.Check(strings.TrimSpace(promQL))
	}
	if err != nil && strictyaml.Problems(err) == nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return q, err
}
