package kubeburner

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Input holds what a configuration is rendered with: template data is UUID over UserData over Env.
type Input struct {
	FS           fs.FS // files for ReadFile; nil has none
	Env          map[string]string
	UserData     map[string]any
	UUID         string // also the run's identity
	AllowMissing bool   // a template may name data that is not set
}

func (in Input) data() map[string]any {
	data := make(map[string]any, len(in.Env)+len(in.UserData)+1)
	for k, v := range in.Env {
		data[k] = v
	}
	for k, v := range in.UserData {
		data[k] = deepCopy(v)
	}
	data["UUID"] = in.UUID
	return data
}

// Load reads a configuration file with defaults, and checks it: fs.ErrNotExist or a *strictyaml.Error.
func Load(fsys fs.FS, file string, in Input) (*Config, error) {
	text, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	in.FS = cmp.Or(in.FS, fsys)
	c, err := Parse(file, text, in)
	if err != nil {
		return nil, err
	}
	Default(c)
	if err := Validate(c); err != nil {
		return nil, err
	}
	return c, nil
}

// Parse renders and reads a configuration file, without defaults. A *strictyaml.Error has the file's lines.
func Parse(file string, text []byte, in Input) (*Config, error) {
	funcs := configFunctions(in.FS, in.Env)
	t, err := newTemplate(file, string(text), funcs, in.AllowMissing)
	if err != nil {
		return nil, err
	}
	data := in.data()
	timed(file, data)
	rendered, origin, err := executeWithLines(t, string(text), data, funcs)
	if err != nil {
		return nil, err
	}
	c := &Config{UUID: in.UUID, env: in.Env}
	c.positions, err = strictyaml.Decode(file, rendered, c, strictyaml.LinesFrom(origin))
	if err != nil {
		return nil, err
	}
	if err := c.set(in.UserData); err != nil {
		return nil, err
	}
	for i := range c.Jobs {
		for k := range c.Jobs[i].Objects {
			vars := c.Jobs[i].Objects[k].InputVars
			for name, value := range vars {
				vars[name] = asInts(value)
			}
		}
	}
	return c, nil
}

// asInts gives whole numbers the type that template functions such as until take.
func asInts(v any) any {
	switch v := v.(type) {
	case int64:
		return int(v)
	case []any:
		for i := range v {
			v[i] = asInts(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = asInts(v[k])
		}
	}
	return v
}

// Templates compiles the object templates of all jobs: that of object k of job i is [i][k], or nil. It
// returns all problems as one *strictyaml.Error.
func (c *Config) Templates(fsys fs.FS) ([][]*Template, error) {
	v := strictyaml.Validation{At: c.positions}
	fail := func(path string, err error) { failAt(&v, path, err) }
	options := TemplateOptions{FS: fsys, Env: c.env}
	for i, name := range c.Global.FunctionTemplates {
		text, err := readFile(fsys, name)
		if err != nil {
			fail(strictyaml.Index("global.functionTemplates", i), err)
			continue
		}
		options.Functions = append(options.Functions, Source{Name: name, Text: text})
	}
	if len(v.Problems) > 0 {
		return nil, strictyaml.Join(v.Problems) // any template may call what is missing
	}
	all := make([][]*Template, len(c.Jobs))
	for i := range c.Jobs {
		all[i] = make([]*Template, len(c.Jobs[i].Objects))
		options.MissingKeysAsZero = c.Jobs[i].DefaultMissingKeysWithZero
		if l := c.Jobs[i].IncrementalLoad; l != nil && l.HealthCheckScript != "" {
			script, _, _ := strings.Cut(strings.TrimSpace(l.HealthCheckScript), " ")
			if _, err := readFile(fsys, script); err != nil {
				fail(strictyaml.Index("jobs", i)+".incrementalLoad.healthCheckScript", err)
			}
		}
		for k, o := range c.Jobs[i].Objects {
			if o.ObjectTemplate == "" {
				continue
			}
			path := strictyaml.Index(strictyaml.Index("jobs", i)+".objects", k) + ".objectTemplate"
			text, err := readFile(fsys, o.ObjectTemplate)
			if err != nil {
				fail(path, err)
				continue
			}
			if all[i][k], err = CompileTemplate(o.ObjectTemplate, text, options); err != nil {
				fail(path, err)
			}
		}
	}
	if err := strictyaml.Join(v.Problems); err != nil {
		return nil, err
	}
	return all, nil
}

// failAt adds the problems of what a setting names, which lie in another file or at its path.
func failAt(v *strictyaml.Validation, path string, err error) {
	if problems := strictyaml.Problems(err); len(problems) > 0 {
		v.Problems = append(v.Problems, problems...)
	} else if err != nil {
		v.Fail(path, "%v", err)
	}
}

// deepCopy copies a generic tree, so that template functions that change it (sprig's set) change a copy.
func deepCopy(v any) any { return copyWith(v, func(text string) string { return text }) }

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

// EnvironmentOf returns the sorted names that an object template, or a file of functions for it, reads from the
// environment; none of a text that is not a template.
func EnvironmentOf(text []byte) (names []string) {
	t, err := newTemplate("", string(text), configFunctions(nil, nil), true)
	if err != nil {
		return nil // its compilation reports it
	}
	v := variables{}
	for _, part := range t.Templates() {
		if part.Tree != nil {
			v.list(part.Root, false)
		}
	}
	for name, read := range v {
		if read {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

var (
	// templateNames matches the object templates that a configuration names without an action in the name.
	templateNames = regexp.MustCompile(`\bobjectTemplate:\s*["']?([^\s"'{},#]+)`)
	// functionNames matches the files of functions that it names, in either form of a list.
	functionNames = regexp.MustCompile(`\bfunctionTemplates:((?:\s*-[ \t]+[^\n]+)+|\s*\[[^\]]*\])`)
	nameInList    = regexp.MustCompile(`[^\s"',\[\]-][^\s"',\[\]]*`)
)

// TemplateNames returns the object templates and files of functions that the text of a configuration names.
func TemplateNames(text []byte) (names []string) {
	for _, m := range templateNames.FindAllSubmatch(text, -1) {
		names = append(names, string(m[1]))
	}
	for _, m := range functionNames.FindAllSubmatch(text, -1) {
		names = append(names, nameInList.FindAllString(string(m[1]), -1)...)
	}
	return names
}

// variables maps the names of data to whether the environment sets them.
type variables map[string]bool

func (v variables) field(name string) {
	if !v[name] {
		v[name] = false
	}
}

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
	for i, c := range p.Cmds {
		args := c.Args
		if i > 0 && len(args) == 1 && len(p.Cmds[i-1].Args) == 1 { // "NAME" | env
			args = append(slices.Clone(args), p.Cmds[i-1].Args...)
		}
		v.lookUp(args, root)
		for _, a := range c.Args {
			v.argument(a, root)
		}
	}
}

func (v variables) argument(n parse.Node, root bool) {
	switch n := n.(type) {
	case *parse.FieldNode:
		if root {
			v.field(n.Ident[0])
		}
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			v.field(n.Ident[1])
		}
	case *parse.ChainNode:
		v.argument(n.Node, root)
	case *parse.PipeNode:
		v.pipe(n, root)
	}
}

// lookUp finds names in calls such as get . "NAME", hasKey . "NAME", index $ "NAME", env "NAME" and expandenv "$NAME".
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
	case "env", "expandenv":
		if text, ok := named.(*parse.StringNode); ok && f.Ident == "env" {
			v[text.Text] = true
		} else if ok {
			os.Expand(text.Text, func(name string) string { v[name] = true; return "" })
		}
		return
	case "get", "hasKey", "index", "pick":
		if len(args) < 3 || !v.isData(args[1], root) {
			return
		}
		named = args[2]
	default:
		return
	}
	if text, ok := named.(*parse.StringNode); ok {
		v.field(text.Text)
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
