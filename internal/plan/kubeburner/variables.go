package kubeburner

import (
	"maps"
	"regexp"
	"slices"
	"text/template/parse"
)

// Variables returns the sorted names of the data that a configuration's template uses, without UUID: fields,
// looked-up keys and environment variables with literal names. It returns a *strictyaml.Error.
func Variables(file string, text []byte) ([]string, error) {
	t, err := newTemplate(file, string(text), configFunctions(nil, nil), true)
	if err != nil {
		return nil, err
	}
	v := variables{}
	for _, part := range t.Templates() {
		if part.Tree != nil {
			v.list(part.Root, part.Name() == t.Name())
		}
	}
	delete(v, "UUID")
	return slices.Sorted(maps.Keys(v)), nil
}

// readsEnvironment matches a call of sprig's env with a name.
var readsEnvironment = regexp.MustCompile(`\benv\s+"([^"]+)"`)

// EnvironmentOf returns the names that an object template reads from the environment.
func EnvironmentOf(text []byte) (names []string) {
	for _, m := range readsEnvironment.FindAllSubmatch(text, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// templateNames matches the object templates that a configuration names without an action in the name.
var templateNames = regexp.MustCompile(`\bobjectTemplate:\s*["']?([^\s"'{},#]+)`)

// TemplateNames returns the object templates that the text of a configuration names.
func TemplateNames(text []byte) (names []string) {
	for _, m := range templateNames.FindAllSubmatch(text, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

type variables map[string]bool

// list searches nodes; root says that the dot is the template's data there.
func (v variables) list(l *parse.ListNode, root bool) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			v.pipe(n.Pipe, root)
		case *parse.TemplateNode:
			v.pipe(n.Pipe, root)
		case *parse.IfNode:
			v.branch(&n.BranchNode, root, root)
		case *parse.RangeNode:
			v.branch(&n.BranchNode, root, false)
		case *parse.WithNode:
			v.branch(&n.BranchNode, root, false)
		}
	}
}

func (v variables) branch(n *parse.BranchNode, root, within bool) {
	v.pipe(n.Pipe, root)
	v.list(n.List, within)
	v.list(n.ElseList, root)
}

func (v variables) pipe(p *parse.PipeNode, root bool) {
	if p == nil {
		return
	}
	for _, c := range p.Cmds {
		v.lookUp(c.Args, root)
		for _, a := range c.Args {
			v.argument(a, root)
		}
	}
}

func (v variables) argument(n parse.Node, root bool) {
	switch n := n.(type) {
	case *parse.FieldNode:
		if root {
			v[n.Ident[0]] = true
		}
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			v[n.Ident[1]] = true
		}
	case *parse.ChainNode:
		v.argument(n.Node, root)
	case *parse.PipeNode:
		v.pipe(n, root)
	}
}

// lookUp finds names in calls such as get . "NAME", hasKey . "NAME", index $ "NAME" and env "NAME".
func (v variables) lookUp(args []parse.Node, root bool) {
	if len(args) < 2 {
		return
	}
	f, ok := args[0].(*parse.IdentifierNode)
	if !ok {
		return
	}
	named := args[1]
	switch f.Ident {
	case "env":
	case "get", "hasKey", "index", "pick":
		if len(args) < 3 || !v.isData(args[1], root) {
			return
		}
		named = args[2]
	default:
		return
	}
	if text, ok := named.(*parse.StringNode); ok {
		v[text.Text] = true
	}
}

// isData reports whether an argument is the template's whole data.
func (v variables) isData(n parse.Node, root bool) bool {
	if d, ok := n.(*parse.VariableNode); ok {
		return len(d.Ident) == 1 && d.Ident[0] == "$"
	}
	_, dot := n.(*parse.DotNode)
	return dot && root
}
