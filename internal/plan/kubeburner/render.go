package kubeburner

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"plimsoll.dev/plimsoll/internal/text/budget"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// newTemplate compiles a template file and its {{define}} blocks. missingAsZero allows missing data.
func newTemplate(name, text string, funcs calls, missingAsZero bool, called ...Source) (*template.Template, error) {
	t := template.New(name).Option("missingkey=error").Funcs(funcs.FuncMap)
	if missingAsZero {
		t.Option("missingkey=zero")
	}
	for _, f := range called {
		if _, err := t.New(f.Name).Parse(f.Text); err != nil {
			return nil, templateProblem(f.Name, err, funcs, nil)
		}
	}
	// Last, so that a function template cannot take the template's own name.
	if _, err := t.Parse(text); err != nil {
		return nil, templateProblem(name, err, funcs, nil)
	}
	budget.Compile(t)
	return t, nil
}

func execute(t *template.Template, data map[string]any, funcs calls) ([]byte, error) {
	out, err := funcs.budget.Execute(t, data)
	if err != nil {
		return nil, templateProblem(t.Name(), err, funcs, data)
	}
	return out, nil
}

// Messages of text/template that are reworded for users.
var (
	templateError   = regexp.MustCompile(`(?s)^template: .*?:(\d+)(?::(\d+))?: (.*)$`)
	executingPart   = regexp.MustCompile(`(?s)^executing ".*?" at <(.*?)>: (.*)$`)
	missingKey      = regexp.MustCompile(`map has no entry for key "(.*)"$`)
	missingFunction = regexp.MustCompile(`^function "(.*)" not defined$`)
	innerFailedCall = regexp.MustCompile(`(?s)error calling (\w+): (.*)$`)
)

// templateProblem rewords an error of text/template, with file and line.
func templateProblem(file string, err error, funcs calls, data map[string]any) error {
	p := strictyaml.Problem{File: file, Message: "the template fails: " + err.Error()}
	m := templateError.FindStringSubmatch(err.Error())
	if m == nil {
		return &strictyaml.Error{Problems: []strictyaml.Problem{p}}
	}
	p.Line, _ = strconv.Atoi(m[1])
	if column, err := strconv.Atoi(m[2]); err == nil {
		p.Column = column + 1 // text/template counts from 0
	}
	message := m[3]
	at := ""
	if in := executingPart.FindStringSubmatch(message); in != nil {
		at, message = in[1], in[2]
	}
	switch {
	case missingKey.MatchString(message):
		name := missingKey.FindStringSubmatch(message)[1]
		p.Message = fmt.Sprintf("the template needs %q, which is not set", name)
		p.Hint = nearest.Hint(name, slices.Sorted(maps.Keys(data)), fmt.Sprintf("give it a value: --set %s=VALUE, --user-data FILE or the environment; in an object template, inputVars", name))
	case missingFunction.MatchString(message):
		name := missingFunction.FindStringSubmatch(message)[1]
		p.Message = fmt.Sprintf("the template calls %q, which is not a function here", name)
		p.Hint = nearest.Hint(name, slices.Sorted(maps.Keys(funcs.FuncMap)), "")
		if name == "env" || name == "expandenv" {
			p.Hint = "object templates do not read the environment: pass the value in inputVars"
		}
	case innerFailedCall.MatchString(message):
		call := innerFailedCall.FindStringSubmatch(message)
		if p.Message = fmt.Sprintf("the template's call of %s fails: %s", call[1], call[2]); budget.Internal(call[1]) {
			p.Message = call[2]
		}
	case at != "":
		p.Message = fmt.Sprintf("the template fails at {{%s}}: %s", at, message)
	default:
		p.Message = "the template is not valid: " + message
	}
	return &strictyaml.Error{Problems: []strictyaml.Problem{p}}
}

// executeWithLines renders a template, and returns the source line of each line of the result. Marks before
// the lines of text between actions show where they went; lines that an action wrote belong to its line.
func executeWithLines(t *template.Template, source string, data map[string]any, funcs calls) ([]byte, func(line int) strictyaml.Origin, error) {
	marked, err := withMarks(t, source)
	if err != nil {
		return nil, nil, err
	}
	out, err := execute(marked, data, funcs)
	if err != nil {
		return nil, nil, err
	}
	text, lines := withoutMarks(out)
	rendered, sources := strings.Split(string(text), "\n"), strings.Split(source, "\n")
	origin := func(line int) strictyaml.Origin {
		if line < 1 || line > len(lines) {
			return strictyaml.Origin{Line: line}
		}
		from := strictyaml.Origin{Line: lines[line-1]}
		if from.Line < 1 || from.Line > len(sources) {
			return from
		}
		if was, is := sources[from.Line-1], rendered[line-1]; was != is {
			from.Text = strings.TrimSpace(is)
			if secret.MatchString(was) {
				from.Text = strings.TrimSpace(was)
			}
		}
		return from
	}
	return text, origin, nil
}

// secret matches lines whose rendered text must not appear in a message.
var secret = regexp.MustCompile(`(?i)passw|token|secret|bearer|credential|esServers|private|//.*@`)

const markByte = 0 // no YAML file can contain it

func withMarks(t *template.Template, source string) (*template.Template, error) {
	marked, err := t.Clone()
	if err != nil {
		return nil, fmt.Errorf("copy the template %s: %w", t.Name(), err)
	}
	for _, part := range marked.Templates() {
		if part.Tree == nil || part.ParseName != t.Name() {
			continue // text of another file
		}
		tree := part.Tree.Copy()
		markList(tree.Root, source)
		if _, err := marked.AddParseTree(part.Name(), tree); err != nil {
			return nil, fmt.Errorf("copy the template %s: %w", part.Name(), err)
		}
	}
	return marked.Lookup(t.Name()), nil
}

func markList(list *parse.ListNode, source string) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			markText(n, source)
		case *parse.IfNode:
			markBranch(&n.BranchNode, source)
		case *parse.RangeNode:
			markBranch(&n.BranchNode, source)
		case *parse.WithNode:
			markBranch(&n.BranchNode, source)
		}
	}
}

func markBranch(n *parse.BranchNode, source string) {
	markList(n.List, source)
	markList(n.ElseList, source)
}

func markText(n *parse.TextNode, source string) {
	at := int(n.Pos)
	if at < 0 || at+len(n.Text) > len(source) || source[at:at+len(n.Text)] != string(n.Text) {
		return // at another place; no line is better than a wrong one
	}
	line := 1 + strings.Count(source[:at], "\n")
	var b bytes.Buffer
	for i, part := range bytes.SplitAfter(n.Text, []byte("\n")) {
		fmt.Fprintf(&b, "%c%d%c", markByte, line+i, markByte)
		b.Write(part)
	}
	n.Text = b.Bytes()
}

// withoutMarks removes the marks, and returns the source line of each remaining line.
func withoutMarks(out []byte) (text []byte, lines []int) {
	last, atStart := 1, true // the first line wrote what precedes all text
	lines = []int{1}
	for i := 0; i < len(out); i++ {
		if out[i] == markByte {
			if end := bytes.IndexByte(out[i+1:], markByte); end > 0 {
				if n, err := strconv.Atoi(string(out[i+1 : i+1+end])); err == nil {
					last = n
					if atStart {
						lines[len(lines)-1] = n
					}
					i += 1 + end
					continue
				}
			}
		}
		text = append(text, out[i])
		atStart = out[i] == '\n'
		if atStart {
			lines = append(lines, last)
		}
	}
	return text, lines
}

// readFile reads a file that a configuration names, relative to the configuration and within its directory.
func readFile(fsys fs.FS, name string) (string, error) {
	if IsURL(name) {
		return "", fmt.Errorf("%s is a URL, and URLs are not supported yet: save the file beside the configuration", name)
	}
	clean := path.Clean(name)
	if fsys == nil {
		return "", fmt.Errorf("there are no files beside the configuration, %q cannot be read", name)
	}
	text, err := fs.ReadFile(fsys, clean)
	if clean == "." || err != nil && !fs.ValidPath(clean) {
		return "", fmt.Errorf("%q lies outside the configuration's directory; --allow names a file or directory that may be read", name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("file %q does not exist%s", name, nearFile(fsys, clean))
	}
	if err != nil {
		return "", fmt.Errorf("read %q: %w", name, err)
	}
	return string(text), nil
}

// nearFile suggests a file of the same directory.
func nearFile(fsys fs.FS, name string) string {
	entries, err := fs.ReadDir(fsys, path.Dir(name))
	if err != nil {
		return ""
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	near, ok := nearest.Word(path.Base(name), names)
	if !ok {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", path.Join(path.Dir(name), near))
}

// IsURL reports whether an objectTemplate is on the network.
func IsURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// Template is a compiled object template, safe for concurrent use.
type Template struct {
	name, text string
	compiled   *template.Template
	funcs      calls
}

// Source is the text of a file.
type Source struct {
	Name, Text string
}

// TemplateOptions configure the compilation of an object template.
type TemplateOptions struct {
	FS                fs.FS             // files for ReadFile; nil has none
	Env               map[string]string // environment for env; nil removes the function
	Functions         []Source          // files with {{define}} blocks that the template may call
	MissingKeysAsZero bool              // missing data reads as nothing instead of failing
}

// Vars holds the data of an object template for one object.
type Vars struct {
	Iteration int // of the object, from 0: how often it was made before
	Replica   int // of the object in its iteration, from 1
	JobName   string
	UUID      string // of the run
	RunID     string
	Input     map[string]any // the object's inputVars, which override the names above as in kube-burner
}

func (v Vars) data() map[string]any {
	data := map[string]any{"Iteration": v.Iteration, "Replica": v.Replica, "JobName": v.JobName, "UUID": v.UUID, "RunID": v.RunID}
	for k, value := range v.Input {
		data[k] = deepCopy(value)
	}
	return data
}

// CompileTemplate compiles an object template with a name for messages. It returns a *strictyaml.Error.
func CompileTemplate(name, text string, o TemplateOptions) (*Template, error) {
	funcs := functions(o.FS)
	if o.Env != nil {
		funcs = configFunctions(o.FS, o.Env)
	}
	compiled, err := newTemplate(name, text, funcs, o.MissingKeysAsZero, o.Functions...)
	if err != nil {
		return nil, err
	}
	return &Template{name: name, text: text, compiled: compiled, funcs: funcs}, nil
}

// Name returns the name given to CompileTemplate.
func (t *Template) Name() string { return t.name }

// Render returns an object's manifests, one for each YAML document of the template, as Kubernetes reads YAML.
// It returns a *strictyaml.Error with the template's lines. Specialise is faster.
func (t *Template) Render(v Vars) ([]map[string]any, error) { return t.render(v.data()) }

// RenderOne returns the only document that the template writes, in any form, such as a patch.
func (t *Template) RenderOne(v Vars) (any, error) {
	text, err := execute(t.compiled, v.data(), t.funcs)
	if err != nil {
		return nil, err
	}
	docs, err := strictyaml.DecodeAll[any](t.name, text, strictyaml.Kubernetes())
	if err == nil && len(docs) != 1 {
		err = fmt.Errorf("%s writes %d documents, and is to write one", t.name, len(docs))
	}
	if err != nil {
		return nil, err
	}
	return docs[0], nil
}

func (t *Template) render(data map[string]any) ([]map[string]any, error) {
	text, err := execute(t.compiled, data, t.funcs)
	if err != nil {
		return nil, err
	}
	docs, err := strictyaml.DecodeAll[map[string]any](t.name, text, strictyaml.Kubernetes())
	if err == nil {
		return docs, nil
	}
	// Render again to find the line in the template. Random parts may differ, and may even be valid this time.
	marked, origin, failed := executeWithLines(t.compiled, t.text, data, t.funcs)
	if failed != nil {
		return nil, err
	}
	_, again := strictyaml.DecodeAll[map[string]any](t.name, marked, strictyaml.Kubernetes(), strictyaml.LinesFrom(origin))
	if again == nil {
		return nil, err
	}
	return nil, again
}

// Problem describes a fault in the n-th document, from 0, of v at a path such as "spec.ports[0].port", with
// the template's line. For a missing path it locates the innermost existing part.
func (t *Template) Problem(v Vars, n int, path, message string) strictyaml.Problem {
	p := strictyaml.Problem{File: t.name, Path: path, Message: message}
	text, origin, err := executeWithLines(t.compiled, t.text, v.data(), t.funcs)
	if err != nil {
		return p
	}
	docs, _ := strictyaml.Documents(t.name, text)
	if n >= len(docs) || docs[n].Root == nil {
		return p
	}
	from := origin(lineOf(docs[n].Root, path))
	p.Line, p.Text = from.Line, from.Text
	return p
}

// lineOf returns the line of the value at a path below a node.
func lineOf(n *strictyaml.Node, path string) int {
	line := n.Line
	for path != "" && n != nil {
		if strings.HasPrefix(path, "[") {
			index, rest, _ := strings.Cut(path[1:], "]")
			path = strings.TrimPrefix(rest, ".")
			if i, err := strconv.Atoi(index); err == nil {
				if i < 0 || i >= len(n.Items) {
					return line
				}
				n = n.Items[i]
				line = n.Line
				continue
			}
			path = index + strings.TrimSuffix("."+path, ".") // a key with dots
		}
		// A key may have dots: take the longest with which the path begins.
		var best strictyaml.Entry
		found := false
		for _, e := range n.Entries {
			rest, ok := strings.CutPrefix(path, e.Key)
			if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') && (!found || len(e.Key) > len(best.Key)) {
				best, found = e, true
			}
		}
		if !found {
			return line
		}
		n, line, path = best.Value, best.Line, strings.TrimPrefix(path[len(best.Key):], ".")
	}
	return line
}
