package metrics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

// MistakeError is a mistake in a query.
type MistakeError struct {
	Query  string
	Line   int
	Column int // in characters, from 1; 0 is unknown
	Err    error
}

func (e *MistakeError) Error() string {
	switch {
	case e.Query == "":
		return e.Err.Error()
	case e.Column == 0:
		return fmt.Sprintf("query %q: %v", e.Query, e.Err)
	case e.Line > 1:
		return fmt.Sprintf("query %q, line %d, column %d: %v", e.Query, e.Line, e.Column, e.Err)
	}
	return fmt.Sprintf("query %q, column %d: %v", e.Query, e.Column, e.Err)
}

func (e *MistakeError) Unwrap() error { return e.Err }

// The bounds of a query.
const (
	mostSamples = 5_000_000       // in memory, of 16 bytes
	mostPoints  = 11_000          // of a series of an answer, as in Prometheus
	lookback    = 5 * time.Minute // the age of the last sample of a series, as in Prometheus
	timeout     = 2 * time.Minute
	mostQuery   = 16 << 10 // bytes: the time to check a query grows faster than its length
)

func lengthOf(query string) error {
	if len(query) <= mostQuery {
		return nil
	}
	return &MistakeError{Err: fmt.Errorf("the query has %d bytes, and at most %d are answered", len(query), mostQuery)}
}

func newParser() parser.Parser { return parser.NewParser(parser.Options{}) }

// Check reports what is wrong with a query; the error is a *MistakeError.
func Check(query string) error {
	if err := lengthOf(query); err != nil {
		return err
	}
	_, err := newParser().ParseExpr(query)
	return mistake(query, err)
}

func mistake(query string, err error) error {
	var one *parser.ParseErr
	if many, ok := errors.AsType[parser.ParseErrors](err); ok && len(many) > 0 {
		one = &many[0]
	} else {
		errors.As(err, &one)
	}
	if one == nil && err != nil && !errors.As(err, new(*MistakeError)) {
		return &MistakeError{Query: query, Line: 1, Column: 1, Err: err}
	}
	if one == nil {
		return err
	}
	m := &MistakeError{Query: query, Line: 1, Column: 1, Err: one.Err}
	for i, r := range query {
		if i >= int(one.PositionRange.Start) {
			break
		}
		if m.Column++; r == '\n' {
			m.Line, m.Column = m.Line+1, 1
		}
	}
	return m
}

// Engine answers queries about a Store. Several goroutines may use it.
type Engine struct {
	store  storage.Queryable
	engine *promql.Engine
}

// NewEngine makes the engine of a store.
func NewEngine(s *Store) *Engine { return &Engine{s, newEngine()} }

func newEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples: mostSamples, Timeout: timeout, LookbackDelta: lookback, EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
		Parser:                   newParser(),
	})
}

// Answer is the answer to a query, as Prometheus writes it in JSON.
type Answer struct {
	ResultType parser.ValueType `json:"resultType"`
	Result     parser.Value     `json:"result"`
	Warnings   []string         `json:"-"` // Prometheus' remarks on the query
}

// Empty reports whether there is nothing in it.
func (a Answer) Empty() bool {
	switch r := a.Result.(type) {
	case promql.Vector:
		return len(r) == 0
	case promql.Matrix:
		return len(r) == 0
	}
	return false
}

// At evaluates a query at a time.
func (e *Engine) At(ctx context.Context, query string, at time.Time) (Answer, error) {
	if err := lengthOf(query); err != nil {
		return Answer{}, err
	}
	q, err := e.engine.NewInstantQuery(ctx, e.store, nil, query, at)
	return e.answer(ctx, query, q, err)
}

// Range evaluates a query from a time to another, at each interval.
func (e *Engine) Range(ctx context.Context, query string, from, to time.Time, each time.Duration) (Answer, error) {
	if err := lengthOf(query); err != nil {
		return Answer{}, err
	}
	if each <= 0 || to.Before(from) {
		return Answer{}, &MistakeError{Query: query, Err: errors.New("the span or its steps are not positive")}
	}
	if to.Sub(from)/each >= mostPoints {
		return Answer{}, &MistakeError{Query: query, Err: fmt.Errorf("%v in steps of %v are more than %d points", to.Sub(from), each, mostPoints)}
	}
	q, err := e.engine.NewRangeQuery(ctx, e.store, nil, query, from, to, each)
	return e.answer(ctx, query, q, err)
}

func (e *Engine) answer(ctx context.Context, query string, q promql.Query, err error) (Answer, error) {
	if err != nil {
		if err = mistake(query, err); !errors.As(err, new(*MistakeError)) {
			err = &MistakeError{Query: query, Err: err} // such as a range of strings
		}
		return Answer{}, err
	}
	r := q.Exec(ctx) // it is not closed: the answer keeps its memory
	if r.Err != nil {
		return Answer{}, fmt.Errorf("query %q: %w", query, r.Err)
	}
	a := Answer{ResultType: r.Value.Type(), Result: r.Value}
	warnings, infos := r.Warnings.AsStrings(query, 10, 10)
	a.Warnings = append(warnings, infos...)
	return a, nil
}

// Series returns the labels of all series that a selector matches.
func (e *Engine) Series(ctx context.Context, selectors []string, from, to time.Time) ([]map[string]string, error) {
	list := []map[string]string{}
	seen := make(map[string]bool)
	for _, text := range selectors {
		matchers, err := selectorOf(text)
		if err != nil {
			return nil, err
		}
		q, err := e.store.Querier(from.UnixMilli(), to.UnixMilli())
		if err != nil {
			return nil, err
		}
		set := q.Select(ctx, true, nil, matchers...)
		for set.Next() {
			l := set.At().Labels()
			if key := l.String(); !seen[key] {
				seen[key] = true
				list = append(list, l.Map())
			}
		}
		if err := set.Err(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Labels returns the names of labels of the series that a selector matches, or the values of one; of all
// series without selectors.
func (e *Engine) Labels(ctx context.Context, name string, selectors []string, from, to time.Time) ([]string, error) {
	q, err := e.store.Querier(from.UnixMilli(), to.UnixMilli())
	if err != nil {
		return nil, err
	}
	if len(selectors) == 0 {
		selectors = []string{""}
	}
	found := make(map[string]bool)
	for _, text := range selectors {
		list, err := namesIn(ctx, q, name, text)
		if err != nil {
			return nil, err
		}
		for _, one := range list {
			found[one] = true
		}
	}
	return append([]string{}, slices.Sorted(maps.Keys(found))...), nil
}

func selectorOf(text string) ([]*labels.Matcher, error) {
	if err := lengthOf(text); err != nil {
		return nil, err
	}
	matchers, err := newParser().ParseMetricSelector(text)
	return matchers, mistake(text, err)
}

func namesIn(ctx context.Context, q storage.Querier, name, selector string) (list []string, err error) {
	var matchers []*labels.Matcher
	if selector != "" {
		matchers, err = selectorOf(selector)
	}
	switch {
	case err != nil:
		return nil, err
	case !utf8.ValidString(name):
		return nil, &MistakeError{Query: name, Err: errors.New("the name of the label is not UTF-8")}
	case name == "":
		list, _, err = q.LabelNames(ctx, nil, matchers...)
	default:
		list, _, err = q.LabelValues(ctx, name, nil, matchers...)
	}
	return list, err
}
