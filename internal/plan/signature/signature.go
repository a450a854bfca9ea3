package signature

import (
	"embed"
	"fmt"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Schema names the format of signature files.
const Schema = "plimsoll/signatures/v1"

// Signature describes a known failure by its traces.
type Signature struct {
	Name   string   `yaml:"name"`
	Title  string   `yaml:"title"`
	Detect Detector `yaml:"detect"`
	// Explain says what it means, Evidence what the matches after it show, and Remedy what to do.
	Explain  string    `yaml:"explain"`
	Evidence string    `yaml:"evidence"`
	Remedy   string    `yaml:"remedy"`
	Source   string    `yaml:"source,omitempty"`   // names its description: a row of a document, or a page
	Tested   string    `yaml:"tested,omitempty"`   // tells the origin of its examples: Real or Quoted; "" for unknown
	Examples []Example `yaml:"examples,omitempty"` // must match
}

// The origins of examples.
const (
	Real   = "real"   // a test produces them on a lab
	Quoted = "quoted" // somebody published them
)

// Detector holds a signature's clauses: a step shows all of All, one of Any if there are any, none of None.
type Detector struct {
	All  []Clause `yaml:"all,omitempty"`
	Any  []Clause `yaml:"any,omitempty"`
	None []Clause `yaml:"none,omitempty"`
}

// Clause holds exactly one pattern. Messages match RE2 expressions, anywhere in their Shape.
type Clause struct {
	Event     *EventPattern     `yaml:"event,omitempty"`
	State     *StatePattern     `yaml:"state,omitempty"`
	Request   *RequestPattern   `yaml:"request,omitempty"`
	Log       *LogPattern       `yaml:"log,omitempty"`
	Condition *ConditionPattern `yaml:"condition,omitempty"`
	AtLeast   int               `yaml:"atLeast,omitempty"` // sets how many records must match; 0 stands for 1
}

// EventPattern matches events of the cluster. Empty fields match any.
type EventPattern struct {
	Reason  Words  `yaml:"reason,omitempty"`
	Message string `yaml:"message,omitempty"`
	About   string `yaml:"about,omitempty"`  // the kind of its object
	Source  string `yaml:"source,omitempty"` // the component that published it
}

// StatePattern matches each new reason why an object is not ready or has lost a milestone.
type StatePattern struct {
	Reason  Words  `yaml:"reason,omitempty"`
	Message string `yaml:"message,omitempty"`
}

// RequestPattern matches failed answers, also those of requests that a retry saved.
type RequestPattern struct {
	Code  Codes  `yaml:"code,omitempty"`
	Error string `yaml:"error,omitempty"`
}

// LogPattern matches lines of the logs of failing objects.
type LogPattern struct {
	Message string `yaml:"message"`
}

// ConditionPattern matches a step's figures, such as "CPU of kubelet" or with a *, by Above or Below.
type ConditionPattern struct {
	Figure string   `yaml:"figure"`
	Above  *float64 `yaml:"above,omitempty"`
	Below  *float64 `yaml:"below,omitempty"`
}

// Example holds one record that a signature must match, alone or together with others.
type Example struct {
	About   string  `yaml:"about,omitempty"`
	Source  string  `yaml:"source,omitempty"`
	Reason  string  `yaml:"reason,omitempty"`
	Message string  `yaml:"message,omitempty"` // of an event, or of a state if State is set
	State   bool    `yaml:"state,omitempty"`
	Code    int     `yaml:"code,omitempty"` // of a request
	Error   string  `yaml:"error,omitempty"`
	Log     string  `yaml:"log,omitempty"`
	Figure  string  `yaml:"figure,omitempty"`
	Value   float64 `yaml:"value,omitempty"`
	Times   int     `yaml:"times,omitempty"` // 0 stands for once
	With    bool    `yaml:"with,omitempty"`  // it matches together with the examples before it
	From    string  `yaml:"from,omitempty"`  // where it was published
}

// Words lists alternatives; files may write a single one without the list.
type Words []string

// UnmarshalYAML reads one word or a list.
func (w *Words) UnmarshalYAML(unmarshal func(any) error) error {
	return oneOrMore(unmarshal, (*[]string)(w))
}

// Codes lists alternative HTTP codes; files may write a single one without the list.
type Codes []int

// UnmarshalYAML reads one code or a list.
func (c *Codes) UnmarshalYAML(unmarshal func(any) error) error {
	return oneOrMore(unmarshal, (*[]int)(c))
}

// oneOrMore reads one value or a list; on an error it leaves the target alone.
func oneOrMore[T any](unmarshal func(any) error, into *[]T) error {
	var one T
	if unmarshal(&one) == nil {
		*into = []T{one}
		return nil
	}
	var list []T
	err := unmarshal(&list)
	if err == nil {
		*into = append([]T(nil), list...) // nil where it is empty
	}
	return err
}

type file struct {
	Schema     string      `yaml:"schema"`
	Signatures []Signature `yaml:"signatures"`
}

//go:embed signatures
var builtin embed.FS

// Builtin returns the program's own signatures, in the order of their files.
func Builtin() ([]Signature, error) {
	dir, err := fs.Sub(builtin, "signatures")
	if err != nil {
		return nil, fmt.Errorf("open the built-in signatures: %w", err)
	}
	return Load(dir, "")
}

// Load reads the signatures of a directory's *.yaml and *.yml files in order. A *strictyaml.Error lists all
// mistakes, with name before the files'. Without such files it returns a *NoFilesError, for a missing
// directory fs.ErrNotExist.
func Load(dir fs.FS, name string) ([]Signature, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, fmt.Errorf("read the signatures: %w", err)
	}
	var list []Signature
	var problems []strictyaml.Problem
	files := 0
	where := make(map[string]string) // the file of each name
	for _, e := range entries {
		if e.IsDir() || path.Ext(e.Name()) != ".yaml" && path.Ext(e.Name()) != ".yml" {
			continue
		}
		files++
		text, err := fs.ReadFile(dir, e.Name())
		if err != nil {
			return nil, fmt.Errorf("read the signatures: %w", err)
		}
		full := path.Join(name, e.Name())
		var f file
		positions, err := strictyaml.Decode(full, text, &f)
		if err != nil {
			problems = append(problems, strictyaml.Problems(err)...)
			continue
		}
		if f.Schema != Schema {
			problems = append(problems, positions.OtherSchema(f.Schema, Schema))
			continue
		}
		if len(f.Signatures) == 0 {
			problems = append(problems, positions.Problem("signatures", "the file has no signatures"))
		}
		problems = append(problems, Validate(f.Signatures, positions, "signatures")...)
		for i, s := range f.Signatures {
			if other, twice := where[s.Name]; twice && other != full {
				problems = append(problems, positions.Problem(strictyaml.Index("signatures", i)+".name", "the name %q is taken by a signature of %s", s.Name, other))
			}
			where[s.Name] = full
		}
		list = append(list, f.Signatures...)
	}
	if files == 0 {
		return nil, &NoFilesError{name}
	}
	return list, strictyaml.Join(problems)
}

// NoFilesError says that a directory holds no signatures.
type NoFilesError struct{ Dir string }

func (e *NoFilesError) Error() string {
	return fmt.Sprintf("%s has no file of signatures: their names end in .yaml", e.Dir)
}

// Merge returns the signatures of both lists; those of more replace those of the same name.
func Merge(list, more []Signature) []Signature {
	merged := slices.Clone(list)
	for _, s := range more {
		if i := slices.IndexFunc(merged, func(x Signature) bool { return x.Name == s.Name }); i >= 0 {
			merged[i] = s
		} else {
			merged = append(merged, s)
		}
	}
	return merged
}

// OneLine returns a text without line breaks.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Marshal writes signatures as a file that Load reads.
func Marshal(list []Signature) ([]byte, error) {
	text, err := yaml.MarshalWithOptions(file{Schema: Schema, Signatures: list}, yaml.Indent(2), yaml.IndentSequence(false))
	if err != nil {
		return nil, fmt.Errorf("write the signatures: %w", err)
	}
	return text, nil
}

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
