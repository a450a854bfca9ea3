// Package commands finds commands in scripts and runbooks that will not do what their author meant.
package commands

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

type word struct {
	value   string // without quotes; expansions of the shell are holes
	literal bool   // without expansions
	start   int    // in the text, with quotes, as end
	end     int
	inner   int // where the value begins in the text, or -1 if it is written otherwise
}

// call is a simple command with its arguments.
type call struct {
	text *reading.Text
	args []word
	to   string // the file of the output, "" if none or unknown
}

func (c call) name() string {
	if len(c.args) == 0 {
		return ""
	}
	return path.Base(c.args[0].value)
}

func (c call) at(w word) reading.Place { return c.text.PlaceAt(w.start) }

// replace writes another value for a part of a word's value.
func (c call) replace(w word, from, to int, fresh string) []reading.Edit {
	if w.inner < 0 || strings.ContainsAny(fresh, " \t\n\"'\\$`;|&<>()*?[]#~") {
		return nil
	}
	return []reading.Edit{{Text: c.text, Start: w.inner + from, End: w.inner + to, With: fresh}}
}

type script struct {
	out    *report.Report
	text   *reading.Text
	source string // with the offsets of the text
	broken bool   // the last command ended where its patch belongs
}

// ShellText reads a text as commands of a shell. It skips parts of a text for people that it cannot read.
func ShellText(out *report.Report, t *reading.Text) {
	s := script{out: out}
	isScript := strings.HasPrefix(t.Data, "#!") || strings.HasSuffix(t.Name, ".sh") || strings.HasSuffix(t.Name, ".bash")
	if !t.Snippet && (isScript || !reading.CommandLine.MatchString(t.Data)) {
		out.Recognised = true
		switch problem := s.read(t, t.Data); {
		case problem == nil:
		case !t.File.Asked && t.Parent == nil:
			// A file found in a directory may be in another shell's dialect.
			out.Note("", t.Place(problem.Line, problem.Column), "not looked at: %s", problem.Message)
		default:
			out.Unreadable(t, []strictyaml.Problem{*problem})
		}
		return
	}
	source, pieces := typed(t)
	if len(pieces) == 0 {
		if s.read(t, source) == nil {
			out.Recognised = true
			return
		}
		// Commands mixed with their output: read line by line.
		pieces = commandLines(source)
	}
	for _, p := range pieces {
		out.Recognised = true
		s.read(t.Part(p[0], p[1], t.Name), source[p[0]:p[1]])
	}
}

// read reads commands of a source that has the same offsets as the text.
func (s *script) read(t *reading.Text, source string) *strictyaml.Problem {
	s.text, s.source = t, source
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(source), "")
	if err != nil {
		p := &strictyaml.Problem{Line: 1, Message: "the shell cannot read this: " + err.Error()}
		if e, ok := err.(syntax.ParseError); ok {
			p.Line, p.Column, p.Message = int(e.Pos.Line()), int(e.Pos.Col()), "the shell cannot read this: "+e.Text
		}
		return p
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			s.statement(n)
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				s.pipeline(n)
			}
		}
		return true
	})
	return nil
}

func (s *script) statement(n *syntax.Stmt) {
	c := call{text: s.text}
	if simple, ok := n.Cmd.(*syntax.CallExpr); ok {
		c.args = wordsOf(s.source, simple.Args)
	}
	var body *syntax.Redirect
	for _, r := range n.Redirs {
		switch r.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll, syntax.RdrClob:
			if r.N == nil || r.N.Value == "1" {
				c.to = wordOf(s.source, r.Word).value
			}
		case syntax.Hdoc, syntax.DashHdoc:
			body = r
		}
	}
	c = withoutSudo(c)
	if len(c.args) > 0 {
		s.broken = command(s.out, c, s.broken)
	}
	if body != nil && body.Hdoc != nil {
		hereDocument(s.out, c, body)
	}
}

func withoutSudo(c call) call {
	for len(c.args) > 1 && (c.name() == "sudo" || c.name() == "nohup" || c.name() == "time") && !strings.HasPrefix(c.args[1].value, "-") {
		c.args = c.args[1:]
	}
	return c
}

// hereDocument looks at a file that a here document writes.
func hereDocument(out *report.Report, c call, r *syntax.Redirect) {
	name := c.to
	switch c.name() {
	case "tee":
		for _, a := range c.args[1:] {
			if !strings.HasPrefix(a.value, "-") {
				name = a.value
			}
		}
	case "kubectl", "oc":
		name = "manifest.yaml"
	case "bash", "sh", "ssh":
		return
	}
	name = cmp.Or(name, "block") // its content may show its format
	if len(r.Hdoc.Parts) == 0 {
		return
	}
	// The word ends behind the mark that ends the document.
	start, end := int(r.Hdoc.Pos().Offset()), int(r.Hdoc.Parts[len(r.Hdoc.Parts)-1].End().Offset())
	if lit, ok := r.Hdoc.Parts[len(r.Hdoc.Parts)-1].(*syntax.Lit); ok {
		end = int(lit.Pos().Offset()) + len(lit.Value)
	}
	if start >= end || end > len(c.text.Data) {
		return
	}
	t := c.text.Part(start, end, name)
	whole := true
	for _, p := range r.Hdoc.Parts {
		if _, ok := p.(*syntax.Lit); !ok {
			whole = false
			a, b := int(p.Pos().Offset())-start, int(p.End().Offset())-start
			if a >= 0 && b <= len(t.Data) && a < b {
				t.Data = t.Data[:a] + reading.Holes(t.Data[a:b]) + t.Data[b:]
			}
		}
	}
	if !whole {
		// The offsets in it no longer match the text, and columns may not either.
		t.Encode = nil
		t.Index()
		return
	}
	if r.Op == syntax.DashHdoc {
		t.Encode = nil
	}
	if reading.WouldRecognise(t) {
		out.Look(out, t)
	}
}

func wordsOf(source string, list []*syntax.Word) []word {
	words := make([]word, len(list))
	for i, w := range list {
		words[i] = wordOf(source, w)
	}
	return words
}

func wordOf(source string, w *syntax.Word) word {
	out := word{literal: true, start: int(w.Pos().Offset()), end: int(w.End().Offset()), inner: -1}
	var b strings.Builder
	for _, p := range w.Parts {
		out.part(&b, p)
	}
	out.value = b.String()
	if out.literal && out.end <= len(source) {
		raw := source[out.start:out.end]
		for _, quote := range []string{"", `"`, "'"} {
			if raw == quote+out.value+quote {
				out.inner = out.start + len(quote)
			}
		}
	}
	return out
}

func (w *word) part(b *strings.Builder, p syntax.WordPart) {
	switch p := p.(type) {
	case *syntax.Lit:
		b.WriteString(unescape(p.Value, ""))
	case *syntax.SglQuoted:
		b.WriteString(p.Value)
	case *syntax.DblQuoted:
		for _, inner := range p.Parts {
			if lit, ok := inner.(*syntax.Lit); ok {
				b.WriteString(unescape(lit.Value, "$`\"\\\n"))
				continue
			}
			w.part(b, inner)
		}
	default:
		w.literal = false
		b.WriteString(reading.Hole)
	}
}

// unescape removes the backslashes that the shell removes: those before a character of before, or with "" all.
func unescape(s, before string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (before == "" || strings.IndexByte(before, s[i+1]) >= 0) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func (s *script) pipeline(p *syntax.BinaryCmd) {
	// Returns the last simple command of a pipeline, or an empty call.
	last := func(n *syntax.Stmt) (c call) {
		pipe, ok := n.Cmd.(*syntax.BinaryCmd)
		for ; ok && (pipe.Op == syntax.Pipe || pipe.Op == syntax.PipeAll); pipe, ok = n.Cmd.(*syntax.BinaryCmd) {
			n = pipe.Y
		}
		if simple, ok := n.Cmd.(*syntax.CallExpr); ok {
			c = withoutSudo(call{text: s.text, args: wordsOf(s.source, simple.Args)})
		}
		return c
	}
	from, into := last(p.X), last(p.Y)
	if len(from.args) == 0 || len(into.args) == 0 {
		return
	}
	// The first command of all, whose output may be computed with.
	first := p.X
	for b, ok := first.Cmd.(*syntax.BinaryCmd); ok; b, ok = first.Cmd.(*syntax.BinaryCmd) {
		first = b.X
	}
	piped(s.out, last(first), from, into)
}

var prompt = regexp.MustCompile(`^\s*(\[[^\]]*\])?[$#>]\s+`)

// typed finds the commands behind prompts: pieces of the source, which is the text with blanks for the prompts.
func typed(t *reading.Text) (source string, pieces [][2]int) {
	var b strings.Builder
	start := -1
	flush := func() {
		if start >= 0 {
			pieces = append(pieces, [2]int{start, b.Len()})
		}
		start = -1
	}
	quoted, continued := false, false
	document := "" // the end mark of an open here document
	for n := 1; n <= len(t.Lines); n++ {
		raw := t.Data[t.Lines[n-1]:t.LineEnd(n)]
		line := t.Line(n)
		if document != "" {
			b.WriteString(raw)
			if strings.TrimSpace(line) == document {
				document = ""
			}
			continue
		}
		mark := prompt.FindString(line)
		if strings.Contains(mark, "#") && !isCommand(line[len(mark):]) || quoted || continued {
			mark = "" // the middle of a command, or a comment
		}
		if mark != "" {
			flush()
			start = b.Len()
			b.WriteString(strings.Repeat(" ", len(mark)))
			b.WriteString(raw[len(mark):])
		} else {
			if !quoted && !continued {
				flush() // output follows
			}
			b.WriteString(raw)
		}
		continued = strings.HasSuffix(strings.TrimRight(line, " "), `\`)
		quoted = quoted != (start >= 0 && strings.Count(line, "'")%2 == 1)
		if i := strings.Index(line, "<<"); i >= 0 && start >= 0 && !quoted {
			if words := strings.Fields(strings.TrimLeft(line[i:], "<-")); len(words) > 0 {
				document = strings.Trim(words[0], `"'`)
			}
		}
	}
	flush()
	return b.String(), pieces
}

func isCommand(line string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return slices.Contains(strings.Fields("oc kubectl ceph sysctl lvs pvs vgs heketi-cli gluster fio ping bc echo cat tee export virtctl sudo"), first)
}

// commandLines returns the lines of a source with a command that has rules, and their continuations.
func commandLines(source string) (pieces [][2]int) {
	start := -1
	at := 0
	for line := range strings.Lines(source) {
		if start < 0 && isCommand(line) {
			start = at
		}
		at += len(line)
		if start >= 0 && !strings.HasSuffix(strings.TrimRight(line, " \r\n"), `\`) {
			pieces = append(pieces, [2]int{start, at})
			start = -1
		}
	}
	return pieces
}
