package signature

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// FigureMade names the largest number in any namespace of a kind of objects that the load makes beside its own.
func FigureMade(kind string) string { return strings.ToLower(kind) + "s in a namespace" }

var nameForm = regexp.MustCompile(`^[a-z][-a-z0-9]{0,59}$`)

// Figures for conditions, besides those of processes.
const (
	FigurePending   = "pending objects"        // the most
	FigureUnplaced  = "objects without a node" // the most
	FigureInFlight  = "requests in flight"     // the most
	FigureRequest   = "time of a request"      // median, in seconds
	FigureAPI       = "API latency"            // of a canary's requests, median, in seconds
	FigureWatchLag  = "watch lag"              // median, in seconds
	FigureMachine   = "CPU of the machine"     // all processes, in percent of all processors
	FigureThrottled = "answers of 429"
	FigureCPU       = "CPU of "    // and a process: the most over five seconds, in percent of one processor
	FigureMemory    = "memory of " // and a process: the most resident, in bytes
)

func figureNames() []string {
	return []string{FigurePending, FigureUnplaced, FigureInFlight, FigureRequest, FigureAPI, FigureWatchLag, FigureMachine, FigureMade("Service"), FigureThrottled}
}

// Validate returns the mistakes in signatures, also examples that do not match, at a path of a file.
func Validate(list []Signature, positions *strictyaml.Positions, under string) []strictyaml.Problem {
	v := &validator{strictyaml.Validation{At: positions}}
	seen := make(map[string]bool)
	for i := range list {
		s := &list[i]
		at := strictyaml.Index(under, i)
		before := len(v.Problems)
		switch {
		case s.Name == "":
			v.Add(at+".name", "for example many-pending-pods", "the signature has no name")
		case !nameForm.MatchString(s.Name):
			v.Add(at+".name", "", "the name %q must consist of lower case letters, digits and '-', begin with a letter and have at most 60 characters", s.Name)
		case seen[s.Name]:
			v.Add(at+".name", "give one of them another name", "there are two signatures %q", s.Name)
		}
		seen[s.Name] = true
		for _, text := range []struct{ key, value string }{{"title", s.Title}, {"explain", s.Explain}, {"remedy", s.Remedy}} {
			if strings.TrimSpace(text.value) == "" {
				v.Add(at+"."+text.key, "", "the signature has no %s", text.key)
			}
		}
		if s.Tested != "" && s.Tested != Real && s.Tested != Quoted {
			v.Add(at+".tested", nearest.OneOf(s.Tested, []string{Real, Quoted}), "%q is not a sort of test: want %s or %s", s.Tested, Real, Quoted)
		}
		v.detector(s.Detect, at+".detect")
		if len(v.Problems) == before {
			v.examples(*s, at+".examples")
		}
	}
	return v.Problems
}

type validator struct{ strictyaml.Validation }

func (v *validator) detector(d Detector, at string) {
	if len(d.All)+len(d.Any) == 0 {
		v.Add(at, "give all, or any, a list of event, state, request, log and condition", "the signature does not say what to look for")
	}
	for _, part := range []struct {
		key     string
		clauses []Clause
	}{{"all", d.All}, {"any", d.Any}, {"none", d.None}} {
		for i, c := range part.clauses {
			v.clause(c, strictyaml.Index(at+"."+part.key, i))
		}
	}
}

func (v *validator) clause(c Clause, at string) {
	given := 0
	told := func(kind string, reason Words, message string) {
		given++
		v.expression(message, at+"."+kind+".message")
		if len(reason) == 0 && message == "" {
			v.Add(at+"."+kind, "give reason, message, or both", "the clause matches any %s", kind)
		}
	}
	if p := c.Event; p != nil {
		told("event", p.Reason, p.Message)
	}
	if p := c.State; p != nil {
		told("state", p.Reason, p.Message)
	}
	if p := c.Request; p != nil {
		given++
		v.expression(p.Error, at+".request.error")
		for _, code := range p.Code {
			if code != 0 && (code < 100 || code > 599) {
				v.Add(at+".request.code", "", "%d is not an HTTP code: want 100 to 599, or 0 for an answer that never came", code)
			}
		}
	}
	if p := c.Log; p != nil {
		given++
		v.expression(p.Message, at+".log.message")
		if p.Message == "" {
			v.Add(at+".log", "give message", "the clause matches any line")
		}
	}
	if p := c.Condition; p != nil {
		given++
		v.condition(*p, at+".condition")
		if c.AtLeast != 0 {
			v.Add(at+".atLeast", "leave it out", "a condition is not counted")
		}
	}
	switch {
	case given == 0:
		v.Add(at, "event, state, request, log or condition", "the clause has nothing to look for")
	case given > 1:
		v.Add(at, "make a clause of each", "the clause looks for more than one thing")
	}
	if c.AtLeast < 0 {
		v.Add(at+".atLeast", "", "%d is not a number of matches", c.AtLeast)
	}
}

func (v *validator) expression(text, at string) {
	if _, err := regexp.Compile(text); err != nil {
		v.Add(at, "the syntax is that of RE2", "%v", err)
	}
}

func (v *validator) condition(p ConditionPattern, at string) {
	known := slices.Contains(figureNames(), p.Figure)
	for _, prefix := range []string{FigureCPU, FigureMemory} {
		known = known || len(p.Figure) > len(prefix) && strings.HasPrefix(p.Figure, prefix)
	}
	switch {
	case p.Figure == "":
		v.Add(at, "for example figure: CPU of kubelet", "the condition names no figure")
	case !known:
		v.Add(at+".figure", nearest.OneOf(p.Figure, append(figureNames(), FigureCPU+"kubelet", FigureMemory+"kubelet")), "there is no figure %q", p.Figure)
	}
	if (p.Above == nil) == (p.Below == nil) {
		v.Add(at, "for example above: 90", "the condition wants one of above and below")
	}
	for _, bound := range []*float64{p.Above, p.Below} {
		if bound != nil && (math.IsNaN(*bound) || math.IsInf(*bound, 0)) {
			v.Add(at, "", "%g is not a bound", *bound)
		}
	}
}

func (v *validator) examples(s Signature, at string) {
	for i, e := range s.Examples {
		if e.With && i > 0 {
			continue // the loop tests it with those before it
		}
		last := i
		for last+1 < len(s.Examples) && s.Examples[last+1].With {
			last++
		}
		if m, err := NewMatcher([]Signature{s}); err != nil || len(m.try(s.Examples[i:last+1])) == 0 {
			v.Add(strictyaml.Index(at, last), "compare it with detect", "the signature does not match its own example")
		}
	}
}
