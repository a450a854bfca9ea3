// Package answer is what a calculator answers: its inputs, its formula with the
// numbers put in, its sources, what those print wrongly, and the files to apply. It
// puts answers together and shows them.
package answer

import (
	"slices"
)

// Schema names the form of an Answer as JSON and YAML.
const Schema = "plimsoll/tune/v1"

// Answer is what a calculator found out. All lists are in the order in which
// they are to be read; none is nil.
type Answer struct {
	Schema string `json:"schema"`
	Tool   string `json:"tool"`  // the calculator's name, such as "ceph"
	Title  string `json:"title"` // one line
	// Inputs are what the answer follows from, defaults included.
	Inputs  []Input  `json:"inputs"`
	Results []Result `json:"results"`
	Steps   []Step   `json:"steps"`
	// Findings compare what is with what is wanted.
	Findings []Finding `json:"findings"`
	// Corrections say where a source is wrong.
	Corrections []Correction `json:"corrections"`
	Warnings    []string     `json:"warnings"`
	// Ceilings, Settings and Stages are a plan's: what bounds it, what must be
	// changed, and in which order. Empty elsewhere.
	Ceilings []Ceiling `json:"ceilings,omitempty"`
	Settings []Setting `json:"settings,omitempty"`
	Stages   []Stage   `json:"stages,omitempty"`
	Files    []File    `json:"files"`
	Commands []Command `json:"commands"`
	Sources  []Source  `json:"sources"`
}

// Input is one parameter as it was used.
type Input struct {
	Name  string `json:"name"`
	Value any    `json:"value"` // a number or a text
	Unit  string `json:"unit,omitempty"`
	// From says where the value came from: "flag --osds", "default: ...",
	// "read from ...".
	From string `json:"from"`
}

// Result is one figure of an answer. Name stays the same for ever.
type Result struct {
	Name  string `json:"name"`
	Value any    `json:"value"` // a number or a text
	Unit  string `json:"unit,omitempty"`
	Note  string `json:"note,omitempty"`
}

// Step is one line of the calculation.
type Step struct {
	// Formula is in words, Numbers the same with the values put in and the
	// result behind the equals sign.
	Formula string   `json:"formula"`
	Numbers string   `json:"numbers"`
	Sources []string `json:"sources,omitempty"` // ids of Answer.Sources
}

// Grade says what a finding is worth.
type Grade string

// The grades of findings.
const (
	OK     Grade = "ok"     // as it should be
	Change Grade = "change" // differs from what is wanted
	Advice Grade = "advice" // not a fault, and worth knowing
	Cannot Grade = "cannot" // what was asked for cannot be had
	NoSuch Grade = "noSuch" // the setting does not exist here
	Unseen Grade = "unseen" // could not be read
)

// Finding is one comparison of what is with what is wanted.
type Finding struct {
	Grade  Grade  `json:"grade"`
	What   string `json:"what"`
	Now    string `json:"now,omitempty"`
	Wanted string `json:"wanted,omitempty"`
	// Cost is what the difference costs, Remedy what to do about it.
	Cost   string `json:"cost,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// Correction is one place where a source is wrong.
type Correction struct {
	Row    string `json:"row"`
	Says   string `json:"says"`
	Right  string `json:"right"`
	Effect string `json:"effect,omitempty"` // what following the source gives
}

// Ceiling is one bound of a plan.
type Ceiling struct {
	Name  string `json:"name"` // stays the same for ever, such as addressesPerNode
	What  string `json:"what"`
	Limit int64  `json:"limit"` // with the settings of the plan
	Asked int64  `json:"asked"`
	// Usual is what it is without the plan; 0 is unknown.
	Usual int64 `json:"usual,omitempty"`
	// Set says what moves it: "installation", which cannot be done again,
	// "setting", or "tested", beyond which is untested ground.
	Set   string `json:"set"`
	Holds bool   `json:"holds"`
}

// Setting is one change that a plan asks for.
type Setting struct {
	Name  string `json:"name"`
	From  string `json:"from"`
	To    string `json:"to"`
	Stage int    `json:"stage"` // from 1
	// Fixed says that it can only be chosen at installation.
	Fixed bool   `json:"fixed,omitempty"`
	File  string `json:"file,omitempty"`
}

// Stage is one step of a plan.
type Stage struct {
	When string   `json:"when"`
	Do   []string `json:"do"`
	// Fixed says that what is chosen here cannot be changed later.
	Fixed bool `json:"fixed,omitempty"`
}

// File is one file to apply.
type File struct {
	Path    string `json:"path"` // relative, with slashes
	Content string `json:"content"`
	// For says what reads the file and how it is applied.
	For string `json:"for"`
}

// Command is one command to run, as a shell reads it.
type Command struct {
	Line string `json:"line"`
	Why  string `json:"why,omitempty"`
}

// Result returns the figure of this name, or nil.
func (a *Answer) Result(name string) any {
	for _, r := range a.Results {
		if r.Name == name {
			return r.Value
		}
	}
	return nil
}

// Impossible reports whether something that was asked for cannot be had.
func (a *Answer) Impossible() bool {
	return slices.ContainsFunc(a.Findings, func(f Finding) bool { return f.Grade == Cannot })
}
