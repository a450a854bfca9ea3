package metrics

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

// Asker answers PromQL: the Engine of a record, or a Prometheus.
type Asker interface {
	At(ctx context.Context, query string, at time.Time) (Answer, error)
	Range(ctx context.Context, query string, from, to time.Time, each time.Duration) (Answer, error)
}

const mostAnswer = 64 << 20 // bytes of a Prometheus' answer to one question

func (r *Remote) client(most int64) (v1.API, error) {
	client, err := api.NewClient(api.Config{Address: r.URL, RoundTripper: bounded{r.Transport, most}})
	if err != nil {
		return nil, err
	}
	return v1.NewAPI(client), nil
}

// At implements Asker.
func (r *Remote) At(ctx context.Context, query string, at time.Time) (Answer, error) {
	return r.answer(ctx, query, func(ctx context.Context, of v1.API) (model.Value, v1.Warnings, error) {
		return of.Query(ctx, query, at)
	})
}

// Range implements Asker.
func (r *Remote) Range(ctx context.Context, query string, from, to time.Time, each time.Duration) (Answer, error) {
	return r.answer(ctx, query, func(ctx context.Context, of v1.API) (model.Value, v1.Warnings, error) {
		return of.QueryRange(ctx, query, v1.Range{Start: from, End: to, Step: each})
	})
}

func (r *Remote) answer(ctx context.Context, query string, ask func(context.Context, v1.API) (model.Value, v1.Warnings, error)) (Answer, error) {
	if err := Check(query); err != nil {
		return Answer{}, err
	}
	of, err := r.client(mostAnswer)
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	v, warnings, err := ask(ctx, of)
	if err != nil {
		return Answer{}, fmt.Errorf("ask the Prometheus at %s %q: %w", r.host(), query, err)
	}
	a := Answer{Warnings: warnings}
	named := func(m model.Metric) labels.Labels {
		all := make(map[string]string, len(m))
		for name, value := range m {
			all[string(name)] = string(value)
		}
		return labels.FromMap(all)
	}
	switch v := v.(type) {
	case *model.Scalar:
		a.Result = promql.Scalar{T: int64(v.Timestamp), V: float64(v.Value)}
	case model.Vector:
		list := promql.Vector{}
		for _, s := range v {
			list = append(list, promql.Sample{Metric: named(s.Metric), T: int64(s.Timestamp), F: float64(s.Value)})
		}
		a.Result = list
	case model.Matrix:
		list := promql.Matrix{}
		for _, s := range v {
			one := promql.Series{Metric: named(s.Metric)}
			for _, x := range s.Values {
				one.Floats = append(one.Floats, promql.FPoint{T: int64(x.Timestamp), F: float64(x.Value)})
			}
			list = append(list, one)
		}
		a.Result = list
	default:
		return Answer{}, fmt.Errorf("the Prometheus at %s answered a %s to %q", r.host(), v.Type(), query)
	}
	a.ResultType = a.Result.Type()
	return a, nil
}

// Series is one series of an answer, with its values.
type Series struct {
	Labels map[string]string
	Name   string // as PromQL writes it
	Values []promql.FPoint
}

// Series returns the values of an answer by series.
func (a Answer) Series() (list []Series) {
	switch r := a.Result.(type) {
	case promql.Scalar:
		list = append(list, Series{Values: []promql.FPoint{{T: r.T, F: r.V}}})
	case promql.String:
		list = append(list, Series{Name: fmt.Sprintf("%q", r.V)})
	case promql.Vector:
		for _, s := range r {
			list = append(list, Series{s.Metric.Map(), s.Metric.String(), []promql.FPoint{{T: s.T, F: s.F}}})
		}
	case promql.Matrix:
		for _, s := range r {
			list = append(list, Series{s.Metric.Map(), s.Metric.String(), s.Floats})
		}
	}
	return list
}
