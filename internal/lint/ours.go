package lint

import (
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/strictyaml"
	"plimsoll.dev/plimsoll/internal/workload"
)

// plan looks at an experiment file with the program's own parser.
func (l *linter) plan(t *text) {
	l.recognised = true
	p, err := plan.Parse(t.file, []byte(t.data))
	if err != nil {
		l.problems(t, err)
		return
	}
	if l.options.Workload == nil {
		return
	}
	w, err := l.options.Workload(p.Workload)
	var unknown *workload.UnknownError
	switch {
	case errors.As(err, &unknown):
		l.report("plimsoll-file", yamlKeyPlace(t, "workload"), near(p.Workload, unknown.Known, "there is: "+strings.Join(unknown.Known, ", ")), unknown.Error())
		return
	case err != nil:
		l.note("plimsoll-file", yamlKeyPlace(t, "workload"), "the workload %s cannot be read here, so that the plan was checked in part: %v", p.Workload, err)
		return
	}
	p.Default(w)
	l.problems(t, p.Validate(w))
}

// yamlKeyPlace is where a key stands at the beginning of a line.
func yamlKeyPlace(t *text, key string) place {
	for n := 1; n <= len(t.lines); n++ {
		if strings.HasPrefix(t.line(n), key+":") {
			return place{text: t, line: n, column: 1, path: key}
		}
	}
	return place{text: t, line: 1, column: 1}
}

// workload looks at the description of a workload, with the files beside it.
func (l *linter) workload(t *text) {
	l.recognised = true
	if l.input.Dir == nil || path.Base(t.file) != workload.File {
		return
	}
	_, err := workload.Read(l.input.Dir)
	l.problems(t, err)
}

// problems makes findings of what a parser of ours said.
func (l *linter) problems(t *text, err error) {
	if err == nil {
		return
	}
	found := strictyaml.Problems(err)
	if len(found) == 0 {
		l.report("plimsoll-file", place{text: t, line: 1, column: 1}, "correct it", err.Error())
	}
	for _, p := range found {
		at := place{text: t, line: max(1, p.Line), column: p.Column, path: p.Path}
		text := p.Message
		if p.File != "" && p.File != t.file && path.Base(p.File) != path.Base(t.file) {
			text = p.File + ": " + text // of a file beside it
			at = place{text: t, line: 1, column: 1}
		}
		if p.Text != "" {
			text += ", in the rendered line: " + strings.TrimSpace(p.Text)
		}
		mend := p.Hint
		if mend == "" {
			mend = "correct it"
		}
		l.report("plimsoll-file", at, mend, text)
	}
}

// kubeBurner looks at a configuration of kube-burner's.
func (l *linter) kubeBurner(t *text) {
	l.recognised = true
	input := kubeburner.Input{FS: l.input.Dir, UUID: "00000000-0000-0000-0000-000000000000"}
	c, err := kubeburner.Parse(t.file, []byte(t.data), input)
	if err != nil {
		if !strings.Contains(t.data, "{{") {
			l.problems(t, err)
			return
		}
		// It needs data that is not here: what no data can mend is still told.
		input.AllowMissing = true
		var kept []strictyaml.Problem
		_, again := kubeburner.Parse(t.file, []byte(t.data), input)
		for _, p := range strictyaml.Problems(again) {
			if strings.HasPrefix(p.Message, "unknown key") {
				kept = append(kept, p)
			}
		}
		l.problems(t, strictyaml.Join(kept))
		if len(kept) == 0 {
			l.note("plimsoll-file", place{text: t, line: 1, column: 1}, "a template that needs data: it was checked in part")
		}
		return
	}
	kubeburner.Default(c)
	if err := kubeburner.Validate(c); err != nil {
		l.problems(t, err)
		return
	}
	l.servicesPerNamespace(t, c)
}

// testedServices is how many services a namespace is tested with (Kubernetes'
// and OpenShift's limits).
const testedServices = 5000

// servicesPerNamespace counts the services that jobs put into one namespace.
func (l *linter) servicesPerNamespace(t *text, c *kubeburner.Config) {
	if l.input.Dir == nil {
		return
	}
	templates, err := c.Templates(l.input.Dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			l.problems(t, err)
		}
		return
	}
	for i := range c.Jobs {
		job := &c.Jobs[i]
		iterations := job.JobIterations
		if job.NamespacedIterations {
			iterations = min(iterations, job.IterationsPerNamespace)
		}
		each := 0
		for k := range job.Objects {
			if templates[i][k] == nil {
				continue
			}
			docs, err := templates[i][k].Render(kubeburner.Vars{JobName: job.Name, Input: job.Objects[k].InputVars, Replica: 1, UUID: c.UUID})
			if err != nil {
				continue
			}
			for _, doc := range docs {
				if doc["kind"] == "Service" {
					each += job.Objects[k].Replicas
				}
			}
		}
		if total := each * iterations; total > testedServices {
			at := jobPlace(t, job.Name)
			per := max(1, testedServices/each)
			l.report("services-per-namespace", at, "write namespacedIterations: true with iterationsPerNamespace of at most "+strconv.Itoa(per)+", and enableServiceLinks: false in the pods",
				"the job "+job.Name+" puts "+strconv.Itoa(total)+" services into one namespace")
		}
	}
}

// jobPlace is where a job is named.
func jobPlace(t *text, name string) place {
	for n := 1; n <= len(t.lines); n++ {
		line := t.line(n)
		if i := strings.Index(line, "name:"); i >= 0 && strings.Trim(strings.TrimSpace(line[i+5:]), `"'`) == name {
			return place{text: t, line: n, column: i + 1, path: "jobs"}
		}
	}
	return place{text: t, line: 1, column: 1, path: "jobs"}
}
