package kubeburner

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"plimsoll.dev/plimsoll/internal/text/budget"
)

// Pattern is an object template rendered once for all slots, with marks for iteration and replica in texts.
// With numbers for the marks it equals what Render returns.
type Pattern struct {
	Docs      []map[string]any // the caller may add labels, with marks in their values too
	Iteration string           // mark of the iteration
	Replica   string           // mark of the replica
}

// The marks have only letters: they never read as numbers or overlap.
const (
	iterationMark = "qplimsolliterationmarkz"
	replicaMark   = "qplimsollreplicamarkz"
)

// Specialise renders the template once for all slots, if it writes iteration and replica as they are and
// nothing else depends on them, on chance or on the clock. It ignores v's own. Without ok, call Render for
// each slot. The template's syntax tree decides, and some slots are rendered both ways and compared.
func (t *Template) Specialise(v Vars) (pattern *Pattern, ok bool) {
	w := &slotWalk{all: t.compiled, repeatable: repeatable(), called: map[string]bool{}}
	if t.compiled.Tree == nil || !w.list(t.compiled.Root, true, true) {
		return nil, false
	}
	data := v.data()
	if strings.Contains(t.text, iterationMark) || strings.Contains(t.text, replicaMark) {
		return nil, false
	}
	for name, mark := range map[string]string{"Iteration": iterationMark, "Replica": replicaMark} {
		if _, overlaid := v.Input[name]; !overlaid {
			data[name] = mark
		}
	}
	docs, err := t.render(data)
	if err != nil || slices.ContainsFunc(docs, func(doc map[string]any) bool { return keysMayMeet(doc) }) {
		return nil, false
	}
	pattern = &Pattern{Docs: docs, Iteration: iterationMark, Replica: replicaMark}
	// Slots at which some scalars are numbers and some are not.
	for _, s := range [...][2]int{{0, 1}, {1, 1}, {2, 7}, {7, 7}, {8, 9}, {9, 8}, {10, 10}, {10, 11}, {12, 10}, {99, 100}, {123, 1}, {1_234_567, 12}} {
		v.Iteration, v.Replica = s[0], s[1]
		slow, err := t.Render(v)
		if err != nil || !reflect.DeepEqual(slow, pattern.Fill(s[0], s[1])) {
			return nil, false
		}
	}
	return pattern, true
}

// Fill returns the manifests of one slot: a copy of Docs with numbers for marks.
func (p *Pattern) Fill(iteration, replica int) []map[string]any {
	r := strings.NewReplacer(p.Iteration, strconv.Itoa(iteration), p.Replica, strconv.Itoa(replica))
	filled := make([]map[string]any, len(p.Docs))
	for i, doc := range p.Docs {
		filled[i] = copyWith(doc, r.Replace).(map[string]any)
	}
	return filled
}

// copyWith copies a generic tree, and applies text to every text value and key.
func copyWith(v any, text func(string) string) any {
	switch v := v.(type) {
	case string:
		return text(v)
	case []any:
		l := make([]any, len(v))
		for i := range v {
			l[i] = copyWith(v[i], text)
		}
		return l
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, value := range v {
			m[text(k)] = copyWith(value, text)
		}
		return m
	}
	return v
}

// keysMayMeet reports whether two keys could become equal for some slot: they are, without numbers.
func keysMayMeet(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, keysMayMeet)
	case map[string]any:
		marked := false
		bare := map[string]bool{}
		meet := false
		for k, value := range v {
			if keysMayMeet(value) {
				return true
			}
			marked = marked || strings.Contains(k, iterationMark) || strings.Contains(k, replicaMark)
			b := withoutNumbers(k)
			meet = meet || bare[b]
			bare[b] = true
		}
		return marked && meet
	}
	return false
}

func withoutNumbers(key string) string {
	key = strings.NewReplacer(iterationMark, "", replicaMark, "").Replace(key)
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, key)
}

// slotWalk finds out whether parts of a syntax tree are free of the slot; dot and root say that "." and "$"
// are the template's data there.
type slotWalk struct {
	all        *template.Template
	repeatable map[string]bool
	called     map[string]bool // {{define}} blocks that were walked
}

func isSlotName(name string) bool { return name == "Iteration" || name == "Replica" }

func (w *slotWalk) list(n *parse.ListNode, dot, root bool) bool {
	return n == nil || !slices.ContainsFunc(n.Nodes, func(n parse.Node) bool { return !w.node(n, dot, root) })
}

func (w *slotWalk) node(n parse.Node, dot, root bool) bool {
	switch n := n.(type) {
	case *parse.TextNode, *parse.CommentNode, *parse.BreakNode, *parse.ContinueNode:
		return true
	case *parse.ActionNode:
		return w.writesOut(n.Pipe, dot, root) || w.pipe(n.Pipe, dot, root)
	case *parse.IfNode:
		return w.pipe(n.Pipe, dot, root) && w.list(n.List, dot, root) && w.list(n.ElseList, dot, root)
	case *parse.WithNode:
		return w.pipe(n.Pipe, dot, root) && w.list(n.List, false, root) && w.list(n.ElseList, dot, root)
	case *parse.RangeNode:
		return w.pipe(n.Pipe, dot, root) && w.list(n.List, false, root) && w.list(n.ElseList, dot, root)
	case *parse.TemplateNode:
		return w.pipe(n.Pipe, dot, root) && w.call(n.Name)
	}
	return false
}

// call walks a {{define}} block; its caller checked the argument, so "." and "$" are not the template's data.
func (w *slotWalk) call(name string) bool {
	if w.called[name] {
		return true
	}
	w.called[name] = true
	block := w.all.Lookup(name)
	return block != nil && block.Tree != nil && w.list(block.Root, false, false)
}

// writesOut recognises {{.Iteration}} and {{$.Iteration}}, and Replica alike.
func (w *slotWalk) writesOut(p *parse.PipeNode, dot, root bool) bool {
	cmds := budget.Written(p.Cmds)
	if len(p.Decl) > 0 || len(cmds) != 1 || len(cmds[0].Args) != 1 {
		return false
	}
	switch arg := cmds[0].Args[0].(type) {
	case *parse.FieldNode:
		return dot && len(arg.Ident) == 1 && isSlotName(arg.Ident[0])
	case *parse.VariableNode:
		return root && len(arg.Ident) == 2 && arg.Ident[0] == "$" && isSlotName(arg.Ident[1])
	}
	return false
}

func (w *slotWalk) pipe(p *parse.PipeNode, dot, root bool) bool {
	bound := func(arg parse.Node) bool { return !w.argument(arg, dot, root) }
	return p == nil || !slices.ContainsFunc(p.Cmds, func(c *parse.CommandNode) bool {
		return slices.ContainsFunc(w.withoutLookup(c.Args, dot, root), bound)
	})
}

// withoutLookup removes data in which get, hasKey or index look up a name other than the slot's.
func (w *slotWalk) withoutLookup(args []parse.Node, dot, root bool) []parse.Node {
	if len(args) < 3 {
		return args
	}
	call, ok := args[0].(*parse.IdentifierNode)
	if !ok || call.Ident != "get" && call.Ident != "hasKey" && call.Ident != "index" {
		return args
	}
	name, ok := args[2].(*parse.StringNode)
	if !ok || isSlotName(name.Text) || w.argument(args[1], dot, root) {
		return args
	}
	switch whole := args[1].(type) {
	case *parse.DotNode:
		return args[2:]
	case *parse.VariableNode:
		if len(whole.Ident) == 1 {
			return args[2:]
		}
	}
	return args
}

func (w *slotWalk) argument(n parse.Node, dot, root bool) bool {
	switch n := n.(type) {
	case *parse.BoolNode, *parse.NilNode, *parse.NumberNode, *parse.StringNode:
		return true
	case *parse.IdentifierNode:
		return w.repeatable[n.Ident] || budget.Internal(n.Ident)
	case *parse.DotNode:
		return !dot
	case *parse.FieldNode:
		return !dot || !isSlotName(n.Ident[0])
	case *parse.VariableNode:
		// Other variables hold the results of pipes, which are checked.
		return n.Ident[0] != "$" || !root || len(n.Ident) > 1 && !isSlotName(n.Ident[1])
	case *parse.ChainNode:
		return w.argument(n.Node, dot, root)
	case *parse.PipeNode:
		return w.pipe(n, dot, root)
	}
	return false
}
