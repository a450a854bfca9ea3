// Package budget answers one question: how much may a template of somebody else's work,
// hold and write? The templates are those of text/template, which has no bound itself.
//
// Each call of a function, each round of a range and each value that is written spends
// work, by rules that know no clock: what is refused on one machine is refused on every
// other. A unit of work is about 50 ns.
package budget

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"
)

// What one execution of a template may spend.
const (
	// MostText bounds the bytes of a text, and of all arguments of a function.
	MostText = 16 << 20
	// MostItems bounds the items of a list or map.
	MostItems = 1_000_000
	// mostMade bounds the bytes that functions may make in all.
	mostMade = 512 << 20
	// MostWork is about 5 s.
	MostWork = 100_000_000
	// mostDepth bounds the nesting of values, and mostCalls that of template calls:
	// text/template itself takes minutes to return from 100,000.
	mostDepth = 1000
	mostCalls = 100
)

// The work of a round, and of a call of a function without what that does.
const (
	workOfRound = 10
	workOfCall  = 20
)

// Error says that a template spends more than it may.
type Error struct{ what string }

func (e *Error) Error() string { return e.what }

func tooMuch(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Cost returns what a call makes, in bytes or items, and its work, by its arguments.
type Cost func(args []reflect.Value) (makes, work float64)

// Budget bounds the work of templates. One template runs at a time.
type Budget struct {
	// Most bounds the bytes of a template's output (0: MostText), Work its work (0: MostWork).
	Most, Work int

	mu         sync.Mutex
	work, made float64
	calls      int // of templates that are under way
}

// The functions that Compile has templates call.
const (
	tick  = "budgetRound"
	enter = "budgetEnter"
	leave = "budgetLeave"
	show  = "budgetWritten"
)

// Functions returns functions that spend the budget, with those of text/template that make
// text. costs has the costs of functions that do more than a pass over their arguments.
func (b *Budget) Functions(of template.FuncMap, costs map[string]Cost) template.FuncMap {
	f := template.FuncMap{
		"print": fmt.Sprint, "printf": fmt.Sprintf, "println": fmt.Sprintln,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	}
	maps.Copy(f, of)
	for name, one := range f {
		cost := costs[name]
		if name == "printf" {
			cost = formatted
		}
		f[name] = b.bound(reflect.ValueOf(one), cost)
	}
	f[tick] = func() (string, error) { return "", b.spend(workOfRound, 0) }
	f[enter] = func() (string, error) {
		if b.calls++; b.calls > mostCalls {
			return "", tooMuch("templates call each other more than %d deep", mostCalls)
		}
		return "", b.spend(workOfRound, 0)
	}
	f[leave] = func() string {
		b.calls--
		return ""
	}
	f[show] = func(v any) (any, error) {
		s, err := sizeOf(reflect.ValueOf(v))
		if err == nil {
			err = b.spend(workOfRound+float64(s.items), 0)
		}
		return v, err
	}
	return f
}

// Internal reports whether a function is one that Compile has templates call.
func Internal(name string) bool { return slices.Contains([]string{tick, enter, leave, show}, name) }

// Written returns a pipeline as its template has it, without what Compile has added.
func Written(cmds []*parse.CommandNode) []*parse.CommandNode {
	if n := len(cmds); n > 1 && len(cmds[n-1].Args) == 1 {
		if called, ok := cmds[n-1].Args[0].(*parse.IdentifierNode); ok && called.Ident == show {
			return cmds[:n-1]
		}
	}
	return cmds
}

// Compile has a template that was parsed with Functions spend the budget: in each round of
// a range, in each template that it calls, and for each value that it writes.
func Compile(t *template.Template) {
	for _, part := range t.Templates() {
		if part.Tree == nil || part.Root == nil {
			continue
		}
		within(part.Root, part.Tree)
		part.Root.Nodes = slices.Concat([]parse.Node{action(part.Tree, enter, part.Root.Pos)}, part.Root.Nodes, []parse.Node{action(part.Tree, leave, part.Root.Pos)})
	}
}

func within(list *parse.ListNode, tree *parse.Tree) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				n.Pipe.Cmds = append(n.Pipe.Cmds, command(tree, show, n.Pos))
			}
		case *parse.IfNode:
			within(n.List, tree)
			within(n.ElseList, tree)
		case *parse.WithNode:
			within(n.List, tree)
			within(n.ElseList, tree)
		case *parse.RangeNode:
			within(n.List, tree)
			within(n.ElseList, tree)
			n.List.Nodes = append([]parse.Node{action(tree, tick, n.Pos)}, n.List.Nodes...)
		}
	}
}

func command(tree *parse.Tree, name string, at parse.Pos) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: at, Args: []parse.Node{parse.NewIdentifier(name).SetPos(at).SetTree(tree)}}
}

func action(tree *parse.Tree, name string, at parse.Pos) *parse.ActionNode {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: at, Pipe: &parse.PipeNode{NodeType: parse.NodePipe, Pos: at, Cmds: []*parse.CommandNode{command(tree, name, at)}}}
}

// Execute executes a template that Compile has seen. An error that is an *Error says that
// it spends too much.
func (b *Budget) Execute(t *template.Template, data any) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.work, b.made, b.calls = 0, 0, 0
	out := output{most: cmp.Or(b.Most, MostText)}
	err := t.Execute(&out, data)
	return out.Bytes(), err
}

// output is the bounded output of a template.
type output struct {
	bytes.Buffer
	most int
}

func (o *output) Write(p []byte) (int, error) {
	if o.Len()+len(p) > o.most {
		return 0, tooMuch("the template writes more than %d bytes", o.most)
	}
	return o.Buffer.Write(p)
}

// spend takes work and bytes out of the budget.
func (b *Budget) spend(work, made float64) error {
	b.work, b.made = b.work+work, b.made+made
	switch {
	case b.work > float64(cmp.Or(b.Work, MostWork)):
		return tooMuch("the template does more than is done for one: about 5 s of work")
	case b.made > mostMade:
		return tooMuch("the template makes more than %d bytes of values", mostMade)
	}
	return nil
}

// bound returns a function that spends the budget.
func (b *Budget) bound(of reflect.Value, cost Cost) any {
	kind := of.Type()
	in := make([]reflect.Type, kind.NumIn())
	for i := range in {
		in[i] = kind.In(i)
	}
	result, failure := kind.Out(0), reflect.TypeFor[error]()
	call := of.Call
	if kind.IsVariadic() {
		call = of.CallSlice
	}
	return reflect.MakeFunc(reflect.FuncOf(in, []reflect.Type{result, failure}, kind.IsVariadic()), func(args []reflect.Value) []reflect.Value {
		err := b.before(args, result.Kind(), cost)
		if err != nil {
			return []reflect.Value{reflect.Zero(result), reflect.ValueOf(&err).Elem()}
		}
		out := call(args)
		if len(out) == 1 {
			out = append(out, reflect.Zero(failure))
		}
		if err := b.after(args, out[0]); err != nil {
			return []reflect.Value{reflect.Zero(result), reflect.ValueOf(&err).Elem()}
		}
		return out
	}).Interface()
}

// before spends what a call takes.
func (b *Budget) before(args []reflect.Value, result reflect.Kind, cost Cost) error {
	given, err := sizeOf(args...)
	if err != nil {
		return err
	}
	makes, work := 0.0, 0.0
	if cost != nil {
		makes, work = cost(args)
	}
	most := MostItems
	if result == reflect.String {
		most = MostText
	}
	if makes > float64(most) {
		return tooMuch("it would make %.0f bytes or items, and at most %d are made", makes, most)
	}
	return b.spend(workOfCall+float64(given.items)+float64(given.bytes)/32+work, 0)
}

// after looks at what a call has made.
func (b *Budget) after(args []reflect.Value, made reflect.Value) error {
	if made.Kind() == reflect.Interface {
		made = made.Elem()
	}
	most, each := MostItems, 16.0
	switch made.Kind() {
	case reflect.String:
		most, each = MostText, 1
	case reflect.Slice:
	case reflect.Map:
		each = 100
		for _, a := range args { // such as what set changes
			if a.Kind() == reflect.Map && a.UnsafePointer() == made.UnsafePointer() {
				each = 0
			}
		}
	default:
		return nil
	}
	if made.Len() > most {
		return tooMuch("it would make %d bytes or items, and at most %d are made", made.Len(), most)
	}
	return b.spend(0, each*float64(made.Len()))
}

// size holds the size of values with all their parts, which count as often as they occur.
type size struct{ bytes, items, depth int }

// Text returns a bound on the bytes that values have when written.
func Text(values ...reflect.Value) float64 {
	s, _ := sizeOf(values...) // what is too large was refused
	return float64(s.bytes) + 24*float64(s.items)
}

// JSON returns a bound on the bytes that values have as indented JSON.
func JSON(values ...reflect.Value) float64 {
	s, _ := sizeOf(values...)
	return 6*float64(s.bytes) + float64(24+2*s.depth)*float64(s.items)
}

func sizeOf(values ...reflect.Value) (size, error) {
	var s size
	for _, v := range values {
		if err := s.add(v, 0); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *size) add(v reflect.Value, depth int) error {
	s.items, s.depth = s.items+1, max(s.depth, depth)
	switch v.Kind() {
	case reflect.String:
		s.bytes += v.Len()
	case reflect.Interface, reflect.Pointer:
		if depth > mostDepth {
			break
		}
		s.items--
		return s.add(v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		if kind := v.Type().Elem().Kind(); kind <= reflect.Complex128 { // numbers and booleans
			s.items, s.bytes = s.items+v.Len(), s.bytes+v.Len()
			break
		}
		for i := 0; i < v.Len() && depth <= mostDepth; i++ {
			if err := s.add(v.Index(i), depth+1); err != nil {
				return err
			}
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next() && depth <= mostDepth; {
			if err := errors.Join(s.add(each.Key(), depth+1), s.add(each.Value(), depth+1)); err != nil {
				return err
			}
		}
	}
	switch {
	case depth > mostDepth:
		return tooMuch("values are nested more than %d deep", mostDepth)
	case s.items > 2*MostItems:
		return tooMuch("values have more than %d items", 2*MostItems)
	case s.bytes > MostText:
		return tooMuch("values have more than %d bytes", MostText)
	}
	return nil
}

// formatted returns the cost of printf: each verb writes an argument, or as much as a number in
// the format or among the arguments says.
func formatted(args []reflect.Value) (makes, work float64) {
	format := args[0].String()
	verbs := float64(strings.Count(format, "%"))
	widest := 0.0
	digits := func(r rune) bool { return r < '0' || r > '9' }
	for _, number := range strings.FieldsFunc(format, digits) {
		if n, err := strconv.ParseFloat(number, 64); err == nil {
			widest = max(widest, n)
		}
	}
	if strings.Contains(format, "*") {
		widest = math.Inf(1)
	}
	return float64(len(format)) + verbs*(4*Text(args[1:]...)+min(widest, 1e6)), 0 // fmt takes no more
}
