package signature

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

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
	return fmt.Sprintf("there is no file of signatures in %s: they end in .yaml", e.Dir)
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
