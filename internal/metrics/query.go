package metrics

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
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

// Lacks returns the metrics that a query names and that have no series on record.
func (e *Engine) Lacks(ctx context.Context, query string, from, to time.Time) (names []string) {
	expr, err := newParser().ParseExpr(query)
	if err != nil {
		return nil
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		s, ok := node.(*parser.VectorSelector)
		if !ok || s.Name == "" || slices.Contains(names, s.Name) {
			return nil
		}
		if found, err := e.Series(ctx, []string{s.Name}, from, to); err == nil && len(found) == 0 {
			names = append(names, s.Name)
		}
		return nil
	})
	return names
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

// Labels returns names of labels, or values of one, in the series of selectors; in all without any.
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

// The queries of objectives may have two ranges by name: [hold] is as long as the hold, and [step] as the
// step. A subquery may have them, too: [hold:1s].
const (
	holdRange = "hold"
	stepRange = "step"
)

// variables holds the values of these, 0 where they do not matter.
type variables struct{ hold, step time.Duration }

// expand replaces the names by the values, and says which are there.
func expand(query string, v variables) (text string, uses struct{ hold, step bool }) {
	var b strings.Builder
	for i := 0; i < len(query); i++ {
		c := query[i]
		b.WriteByte(c)
		switch c {
		case '"', '\'', '`':
			end := i + 1
			for end < len(query) && query[end] != c {
				if query[end] == '\\' && c != '`' {
					end++
				}
				end++
			}
			end = min(end+1, len(query))
			b.WriteString(query[i+1 : end])
			i = end - 1
		case '#':
			end := len(query)
			if n := strings.IndexByte(query[i:], '\n'); n >= 0 {
				end = i + n
			}
			b.WriteString(query[i+1 : end])
			i = end - 1
		case '[':
			name, after := query[i+1:], byte(0)
			if n := strings.IndexAny(name, "]:"); n >= 0 {
				name, after = name[:n], name[n]
			}
			length := len(name)
			switch name = strings.TrimSpace(name); {
			case after == 0:
				continue
			case name == holdRange:
				uses.hold = true
				b.WriteString(rangeText(v.hold))
			case name == stepRange:
				uses.step = true
				b.WriteString(rangeText(v.step))
			default:
				continue
			}
			i += length
		}
	}
	return b.String(), uses
}

// rangeText writes a range; one that does not matter has the length of the names, to keep columns.
func rangeText(d time.Duration) string {
	if d == 0 {
		return "100s"
	}
	return fmt.Sprintf("%dms", max(d.Milliseconds(), 0)+1) // with the samples of the millisecond at its begin
}

// parse reads the query of an objective. The error is a *MistakeError.
func parse(query string, v variables) (parser.Expr, struct{ hold, step bool }, error) {
	if err := lengthOf(query); err != nil {
		return nil, struct{ hold, step bool }{}, err
	}
	text, uses := expand(query, v)
	expr, err := newParser().ParseExpr(text)
	if err != nil {
		return nil, uses, mistake(query, err)
	}
	if t := expr.Type(); t != parser.ValueTypeVector && t != parser.ValueTypeScalar {
		return nil, uses, &MistakeError{Query: query, Line: 1, Column: 1, Err: fmt.Errorf("it gives a %s: want one number for each series, as rate(...) or max_over_time(...) make of a range", parser.DocumentedType(t))}
	}
	return expr, uses, nil
}

// CheckObjective reports a query's mistake as a *MistakeError. Guards are asked before any hold.
func CheckObjective(query string, guard bool) error {
	_, uses, err := parse(query, variables{})
	if err == nil && guard && uses.hold {
		return &MistakeError{Query: query, Err: errors.New("a guard has no [hold]: it is asked while the load is raised, too; want [step] or a range such as [30s]")}
	}
	return err
}

// CheckSelector reports what is wrong with a selector of series; the error is a *MistakeError.
func CheckSelector(text string) error {
	_, err := selectorOf(text)
	return err
}

// SelectorsOf returns the selectors of checked queries, without those of the record's own figures.
func SelectorsOf(queries []string) (list []string) {
	for _, q := range queries {
		expr, _, err := parse(q, variables{})
		if err != nil {
			continue
		}
		for s := range reaches(expr) {
			if ownSeries(s.LabelMatchers) {
				continue
			}
			var texts []string
			for _, m := range s.LabelMatchers {
				texts = append(texts, m.String())
			}
			if text := "{" + strings.Join(texts, ",") + "}"; !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	return list
}

// reaches yields the selectors of an expression, with how far before the question they need samples.
func reaches(expr parser.Expr) iter.Seq2[*parser.VectorSelector, time.Duration] {
	return func(yield func(*parser.VectorSelector, time.Duration) bool) {
		parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
			s, ok := node.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			back, fixed := s.OriginalOffset, s.Timestamp != nil
			for _, above := range path {
				switch x := above.(type) {
				case *parser.MatrixSelector:
					back += x.Range
				case *parser.SubqueryExpr:
					back += x.Range + x.OriginalOffset
					fixed = fixed || x.Timestamp != nil
				}
			}
			if fixed {
				back = math.MaxInt64 / 2
			}
			if !yield(s, max(back, 0)) {
				return errStop
			}
			return nil
		})
	}
}

var errStop = errors.New("enough")
