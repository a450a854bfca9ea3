// Package report collects what was found in files, and what they say that other files are compared with.
package report

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/schema"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Report collects findings and facts of files.
type Report struct {
	Recognised bool                         // the file, or the current part, is of a known kind
	Look       func(*Report, *reading.Text) // looks at a text inside of another by its format
	*Tables
	Findings []Finding
	Notes    []Note
	Problems []Problem
	facts
}

// Tables holds what is known beforehand.
type Tables struct {
	*schema.Schemas
	Kernel *schema.Kernel
}

// NewTables reads the tables.
func NewTables() *Tables { return &Tables{schema.New(), schema.NewKernel()} }

// Find adds a finding. The edits, if any, are its fix, made all or none.
func (r *Report) Find(rule string, at reading.Place, fix, found string, edits ...reading.Edit) {
	r.FindAs("", rule, at, fix, found, edits...)
}

// FindAs adds a finding with a severity other than the rule's own.
func (r *Report) FindAs(s Severity, rule string, at reading.Place, fix, found string, edits ...reading.Edit) {
	if at.Text.Ignores(at.Line, rule) {
		return
	}
	if slices.ContainsFunc(edits, func(e reading.Edit) bool { return !e.Text.Editable() }) {
		edits = nil
	}
	file, line, column, inside := at.Text.Position(at.Line, at.Column)
	r.Findings = append(r.Findings, Finding{
		Rule: rule, Severity: s, File: file, Line: line, Column: column, Path: at.Path, Inside: inside,
		Found: found, Fix: fix, Fixable: len(edits) > 0, Edits: edits,
	})
}

// Note tells the reader something that is not a fault.
func (r *Report) Note(rule string, at reading.Place, format string, args ...any) {
	file, line, column, _ := at.Text.Position(at.Line, at.Column)
	r.Notes = append(r.Notes, Note{Rule: rule, File: file, Line: line, Column: column, Text: fmt.Sprintf(format, args...)})
}

// Unreadable records why a text cannot be read.
func (r *Report) Unreadable(t *reading.Text, problems []strictyaml.Problem) {
	for _, p := range problems {
		file, line, column, inside := t.Position(max(1, p.Line), p.Column)
		if p.Line == 0 {
			line, column = 0, 0
		}
		text := p.Message
		if inside != "" {
			text = inside + ": " + text
		}
		if p.Hint != "" {
			text += " (" + p.Hint + ")"
		}
		r.Problems = append(r.Problems, Problem{File: file, Line: line, Column: column, Text: text})
	}
}

// Severity says how bad a finding is.
type Severity string

// The severities of findings.
const (
	Error   Severity = "error"   // it is refused, or does not do what it says
	Warning Severity = "warning" // it works, but costs something or will stop to work
)

// Finding is one fault.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line"`           // from 1
	Column   int      `json:"column"`         // from 1, in characters; 0 is unknown
	Path     string   `json:"path,omitempty"` // in its document, such as spec.template.spec, or ""
	// Inside names a file within this one, with its line, such as "/etc/sysctl.d/99.conf:3", or "".
	Inside  string `json:"inside,omitempty"`
	Found   string `json:"found"` // what is wrong
	Why     string `json:"why"`   // what it costs
	Fix     string `json:"fix"`   // what to do about it
	Source  string `json:"source"`
	Fixable bool   `json:"fixable"` // by Edits, made all or none

	Edits []reading.Edit `json:"-"`
}

// Note tells the reader what was not checked, which is not a fault.
type Note struct {
	Rule   string `json:"rule,omitempty"`
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Text   string `json:"text"`
}

// Problem says why a file, or a part of it, could not be read.
type Problem struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Text   string `json:"text"`
}

// facts holds what files say, for comparison with each other.
type facts struct {
	Objects   []*Object
	Labels    []Labelled
	Settings  []Setting
	MaxPods   []PodLimit
	Clusters  []ClusterNetwork
	CephPools []CephPool
	HAProxy   []*reading.Text // whole configurations of HAProxy
}

// Object is an object of Kubernetes in a document.
type Object struct {
	reading.Value
	APIVersion, Kind, Group, Namespace, Name string
}

// Closest returns the place of a value below the object, or of the nearest existing mapping.
func (o *Object) Closest(keys ...string) reading.Place {
	v := o.Value
	at := v.At()
	for _, k := range keys {
		raw, ok := v.Node.Entry(k)
		if !ok {
			break
		}
		e := v.Child(raw)
		v, at = e.Value, e.KeyAt()
		if v.Node.Kind == strictyaml.Scalar && !reading.IsNull(v.Node) {
			at = v.At()
		}
	}
	return at
}

func (o *Object) String() string {
	if o.Name == "" {
		return "the " + o.Kind
	}
	return o.Kind + " " + o.Name
}

// Article returns a kind with its article.
func Article(kind string) string {
	if strings.ContainsAny(kind[:1], "AEIO") {
		return "an " + kind
	}
	return "a " + kind
}

// Labelled is a label that a command sets.
type Labelled struct {
	Kind       string // MachineConfigPool or Node
	Name       string // "" for all of its kind that the command selects
	Key, Value string
	At         reading.Place
	Replace    func(value string) []reading.Edit
}

// Setting is a sysctl key with its value.
type Setting struct {
	Key, Value     string
	AtKey, AtValue reading.Place
	ReplaceValue   func(string) []reading.Edit // nil if it cannot be replaced
	Scope          string                      // settings of one scope meet on one machine
}

// PodLimit is the number of pods that a node takes.
type PodLimit struct {
	MaxPods int64
	At      reading.Place
}

// ClusterNetwork is a range from which nodes get their pods' subnets.
type ClusterNetwork struct {
	Prefix     netip.Prefix
	HostPrefix int
	At         reading.Place
}

// Addresses returns the number of addresses for pods in a node's subnet.
func (c ClusterNetwork) Addresses() int64 {
	return int64(min(1<<62, ceiling.Addresses(netip.PrefixFrom(c.Prefix.Addr(), c.HostPrefix))))
}

// Nodes returns the number of nodes that get a subnet.
func (c ClusterNetwork) Nodes() int64 {
	return int64(min(1<<62, ceiling.NodeRanges(ceiling.Range{Prefix: c.Prefix, PerNode: c.HostPrefix})))
}

// CephPool is a script's setting of a pool.
type CephPool struct {
	Pool, Key, Value string
	At               reading.Place
}

// Few shortens a list that is too long for a message.
func Few(names []string) []string {
	const most = 8
	if len(names) > most {
		return append(slices.Clone(names[:most]), fmt.Sprintf("... (%d in all)", len(names)))
	}
	return names
}

// Near returns a hint for a misspelling, or otherwise.
func Near(word string, known []string, otherwise string) string {
	if w, ok := nearest.Word(word, known); ok {
		return "did you mean " + w + "?"
	}
	return otherwise
}
