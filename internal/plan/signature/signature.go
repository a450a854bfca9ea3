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

// Schema names the format of a file of signatures.
const Schema = "plimsoll/signatures/v1"

// Signature is a failure that is known by what it leaves behind.
type Signature struct {
	Name   string   `yaml:"name"`
	Title  string   `yaml:"title"`
	Detect Detector `yaml:"detect"`
	// Explain says what it means, Evidence what the matches show, in a phrase
	// that they follow, and Remedy what to do.
	Explain  string `yaml:"explain"`
	Evidence string `yaml:"evidence"`
	Remedy   string `yaml:"remedy"`
	// Source is where it is described: a row of a document, or a page.
	Source string `yaml:"source,omitempty"`
	// Tested is what its examples are: Real or Quoted; "" is not said.
	Tested string `yaml:"tested,omitempty"`
	// Examples are what it must match.
	Examples []Example `yaml:"examples,omitempty"`
}

// What the examples of a signature are.
const (
	Real   = "real"   // produced on a lab, by a test that does so again
	Quoted = "quoted" // the message as it was published
)

// Detector says when a step shows a signature: every clause of All holds, and
// one of Any if there are any, and none of None.
type Detector struct {
	All  []Clause `yaml:"all,omitempty"`
	Any  []Clause `yaml:"any,omitempty"`
	None []Clause `yaml:"none,omitempty"`
}

// Clause is one thing to look for in a step: exactly one of its patterns.
// Messages are matched by RE2 regular expressions, anywhere unless they are
// anchored, in the form that Shape gives them.
type Clause struct {
	Event     *EventPattern     `yaml:"event,omitempty"`
	State     *StatePattern     `yaml:"state,omitempty"`
	Request   *RequestPattern   `yaml:"request,omitempty"`
	Log       *LogPattern       `yaml:"log,omitempty"`
	Condition *ConditionPattern `yaml:"condition,omitempty"`
	// AtLeast is how many must match for the clause to hold; 0 is 1.
	AtLeast int `yaml:"atLeast,omitempty"`
}

// EventPattern matches events that the cluster published. What is empty
// matches any.
type EventPattern struct {
	Reason  Words  `yaml:"reason,omitempty"`
	Message string `yaml:"message,omitempty"`
	About   string `yaml:"about,omitempty"`  // the kind of what it is about
	Source  string `yaml:"source,omitempty"` // the component that published it
}

// StatePattern matches what keeps an object from being ready, or took it
// away from where it was, each time that the reason changes.
type StatePattern struct {
	Reason  Words  `yaml:"reason,omitempty"`
	Message string `yaml:"message,omitempty"`
}

// RequestPattern matches answers of the server that were no success, also of
// requests that succeeded at another attempt.
type RequestPattern struct {
	Code  Codes  `yaml:"code,omitempty"`
	Error string `yaml:"error,omitempty"`
}

// LogPattern matches lines of the logs of failing objects.
type LogPattern struct {
	Message string `yaml:"message"`
}

// ConditionPattern matches a figure of the whole step, such as "CPU of
// kubelet"; a * in its name stands for any text. One of Above and Below is
// given.
type ConditionPattern struct {
	Figure string   `yaml:"figure"`
	Above  *float64 `yaml:"above,omitempty"`
	Below  *float64 `yaml:"below,omitempty"`
}

// Example is one thing that a signature must match, by itself or, where it
// takes several, with the others.
type Example struct {
	About   string `yaml:"about,omitempty"`
	Source  string `yaml:"source,omitempty"`
	Reason  string `yaml:"reason,omitempty"`
	Message string `yaml:"message,omitempty"` // of an event, or of a state if State is set
	State   bool   `yaml:"state,omitempty"`
	Code    int    `yaml:"code,omitempty"` // of a request
	Error   string `yaml:"error,omitempty"`
	Log     string `yaml:"log,omitempty"`
	Figure  string `yaml:"figure,omitempty"`
	// Value is the figure's.
	Value float64 `yaml:"value,omitempty"`
	// Times is how often it came; 0 is once.
	Times int `yaml:"times,omitempty"`
	// With says that it takes the examples before it too.
	With bool `yaml:"with,omitempty"`
	// From is where it was published.
	From string `yaml:"from,omitempty"`
}

// Words is one word or a list of them, any of which may be meant.
type Words []string

// UnmarshalYAML reads one word or a list.
func (w *Words) UnmarshalYAML(unmarshal func(any) error) error {
	return oneOrMore(unmarshal, (*[]string)(w))
}

// Codes is one HTTP code or a list of them, any of which may be meant.
type Codes []int

// UnmarshalYAML reads one code or a list.
func (c *Codes) UnmarshalYAML(unmarshal func(any) error) error {
	return oneOrMore(unmarshal, (*[]int)(c))
}

// oneOrMore reads one value or a list into a list, which it leaves as it is
// where it can read neither.
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

// Builtin are the signatures that the program knows by itself, in the order of
// their files.
func Builtin() ([]Signature, error) {
	dir, err := fs.Sub(builtin, "signatures")
	if err != nil {
		return nil, fmt.Errorf("open the built-in signatures: %w", err)
	}
	return Load(dir, "")
}

// Load reads the signatures of a directory's *.yaml and *.yml files, in the
// order of the files' names. What is wrong with them is a *strictyaml.Error,
// with every file's problems; name goes before the files' names in it. A
// directory without any such file is a *NoFilesError, one that does not exist
// is fs.ErrNotExist.
func Load(dir fs.FS, name string) ([]Signature, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, fmt.Errorf("read the signatures: %w", err)
	}
	var list []Signature
	var problems []strictyaml.Problem
	files := 0
	where := make(map[string]string) // of each name
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

// NoFilesError says that a directory holds no file of signatures.
type NoFilesError struct{ Dir string }

func (e *NoFilesError) Error() string {
	return fmt.Sprintf("there is no file of signatures in %s: they end in .yaml", e.Dir)
}

// Merge is the signatures of both lists; one of more comes in the place of one
// of the same name.
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

// OneLine is a text without line breaks.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Marshal writes signatures as a file that Load reads.
func Marshal(list []Signature) ([]byte, error) {
	text, err := yaml.MarshalWithOptions(file{Schema: Schema, Signatures: list}, yaml.Indent(2), yaml.IndentSequence(false))
	if err != nil {
		return nil, fmt.Errorf("write the signatures: %w", err)
	}
	return text, nil
}
