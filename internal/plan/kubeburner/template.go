package kubeburner

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"text/template"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

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
	Iteration int // of the job, from 0
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
func (t *Template) Render(v Vars) ([]map[string]any, error) {
	return t.render(v.data())
}

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
