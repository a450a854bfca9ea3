package metrics

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

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

// CheckObjective reports what is wrong with the query of an objective; the error is a *MistakeError.
// Guard says that it belongs to a guard, which is asked before any hold.
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

// SelectorsOf returns the selectors of queries that Check finds right, without those of the record's own
// figures.
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
