package lint

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// planFile looks at an experiment file with the program's own parser.
func planFile(t *text) (out report) {
	out.recognised = true
	p, err := plan.Parse(t.file.Name, []byte(t.data))
	if err != nil {
		out.add(ownProblems(t, err))
		return
	}
	if t.options.Workload == nil {
		return
	}
	w, err := t.options.Workload(p.Workload)
	at := linePlace(t, "workload", func(line string) int {
		if strings.HasPrefix(line, "workload:") {
			return 1
		}
		return 0
	})
	var unknown *workload.UnknownError
	switch {
	case errors.As(err, &unknown):
		out.find("plimsoll-file", at, near(p.Workload, unknown.Known, "there is: "+strings.Join(unknown.Known, ", ")), unknown.Error())
		return
	case err != nil:
		out.note("plimsoll-file", at, "the workload %s cannot be read here, so that the plan was checked in part: %v", p.Workload, err)
		return
	}
	p.Default(w)
	out.add(ownProblems(t, p.Validate(w)))
	return out
}

// linePlace is the place of the first line for which column is not 0.
func linePlace(t *text, path string, column func(line string) int) place {
	for n := 1; n <= len(t.lines); n++ {
		if c := column(t.line(n)); c > 0 {
			return place{text: t, line: n, column: c, path: path}
		}
	}
	return t.place(1, 1)
}

// workloadFile looks at the description of a workload, with the files beside it.
func workloadFile(t *text) (out report) {
	out.recognised = true
	if t.file.Dir == nil || path.Base(t.file.Name) != workload.File {
		return
	}
	_, err := workload.Read(t.file.Dir, t.options.Targets)
	out.add(ownProblems(t, err))
	return out
}

// ownProblems makes findings of what a parser of ours said.
func ownProblems(t *text, err error) (out report) {
	if err == nil {
		return
	}
	found := strictyaml.Problems(err)
	if len(found) == 0 {
		out.find("plimsoll-file", t.place(1, 1), "correct it", err.Error())
	}
	for _, p := range found {
		at := place{text: t, line: max(1, p.Line), column: p.Column, path: p.Path}
		text := p.Message
		if p.Path != "" {
			text = p.Path + ": " + text
		}
		if p.File != "" && p.File != t.file.Name && path.Base(p.File) != path.Base(t.file.Name) {
			text = p.File + ": " + text // of a file beside it
			at = t.place(1, 1)
		}
		if p.Text != "" {
			text += ", in the rendered line: " + strings.TrimSpace(p.Text)
		}
		out.find("plimsoll-file", at, cmp.Or(p.Hint, "correct it"), text)
	}
	return out
}

// kubeBurnerFile looks at a configuration of kube-burner's.
func kubeBurnerFile(t *text) (out report) {
	out.recognised = true
	input := kubeburner.Input{FS: t.file.Dir, UUID: "00000000-0000-0000-0000-000000000000"}
	c, err := kubeburner.Parse(t.file.Name, []byte(t.data), input)
	if err != nil {
		if !strings.Contains(t.data, "{{") {
			out.add(ownProblems(t, err))
			return
		}
		// It needs data that is not here: what no data can fix is still told.
		input.AllowMissing = true
		var kept []strictyaml.Problem
		_, again := kubeburner.Parse(t.file.Name, []byte(t.data), input)
		for _, p := range strictyaml.Problems(again) {
			if strings.HasPrefix(p.Message, "unknown key") {
				kept = append(kept, p)
			}
		}
		out.add(ownProblems(t, strictyaml.Join(kept)))
		if len(kept) == 0 {
			out.note("plimsoll-file", t.place(1, 1), "a template that needs data: it was checked in part")
		}
		return
	}
	kubeburner.Default(c)
	if err := kubeburner.Validate(c); err != nil {
		out.add(ownProblems(t, err))
		return
	}
	out.add(servicesPerNamespace(t, c))
	return out
}

// servicesPerNamespace counts the services that jobs put into one namespace.
func servicesPerNamespace(t *text, c *kubeburner.Config) (out report) {
	if t.file.Dir == nil {
		return
	}
	templates, err := c.Templates(t.file.Dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			out.add(ownProblems(t, err))
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
		if total := each * iterations; total > ceiling.NamespaceServices {
			at := linePlace(t, "jobs", func(line string) int {
				i := strings.Index(line, "name:")
				if i >= 0 && strings.Trim(strings.TrimSpace(line[i+5:]), `"'`) != job.Name {
					return 0
				}
				return i + 1
			})
			at.path = "jobs"
			per := max(1, ceiling.NamespaceServices/each)
			out.find("services-per-namespace", at, "write namespacedIterations: true with iterationsPerNamespace of at most "+strconv.Itoa(per)+", and enableServiceLinks: false in the pods",
				"the job "+job.Name+" puts "+strconv.Itoa(total)+" services into one namespace")
		}
	}
	return out
}
