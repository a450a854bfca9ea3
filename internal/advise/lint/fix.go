package lint

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
	"plimsoll.dev/plimsoll/internal/text/writeall"
)

// Fixed is the result of Fix.
type Fixed struct {
	Changes []Change         // files that differ, in the given order
	Done    []report.Finding // that were fixed
	Left    *Result          // for the changed files
}

// Change holds a file before and after.
type Change struct {
	Name          string
	Before, After []byte
}

// maxRounds bounds the rounds in which fixes uncover further findings.
const maxRounds = 20

// Fix makes all safe fixes, until a further Fix would change nothing. It writes nothing: see Write.
func Fix(inputs []reading.Input, o Options) *Fixed {
	files := slices.Clone(inputs)
	fixed := &Fixed{Left: Lint(files, o)}
	stubborn := make(map[string]bool) // files that fixes would break
	for range maxRounds {
		edited, done := fixesOf(fixed.Left.Findings, stubborn)
		if len(done) == 0 {
			break
		}
		next := slices.Clone(files)
		for i := range next {
			if data, ok := edited[next[i].Name]; ok {
				next[i].Data = data
			}
		}
		result := Lint(next, o)
		broken := false
		for i := range next {
			name := next[i].Name
			if _, ok := edited[name]; ok && problemsOf(result, name) > problemsOf(fixed.Left, name) {
				stubborn[name], broken = true, true
			}
		}
		if broken {
			continue // again, without these files
		}
		files = next
		fixed.Left = result
		fixed.Done = append(fixed.Done, done...)
	}
	for i := range fixed.Left.Findings {
		f := &fixed.Left.Findings[i]
		f.Fixable = f.Fixable && !stubborn[f.File]
	}
	for i, in := range inputs {
		if !bytes.Equal(in.Data, files[i].Data) {
			fixed.Changes = append(fixed.Changes, Change{in.Name, in.Data, files[i].Data})
		}
	}
	return fixed
}

func problemsOf(r *Result, file string) int {
	return count(r.Problems, func(p report.Problem) bool { return p.File == file })
}

// fixesOf makes the edits of findings whose edits do not overlap.
func fixesOf(findings []report.Finding, stubborn map[string]bool) (edited map[string][]byte, fixed []report.Finding) {
	accepted := make(map[*reading.Text][]reading.Edit)
	taken := make(spans)
	for _, f := range findings {
		if len(f.Edits) == 0 || stubborn[f.File] || slices.ContainsFunc(f.Edits, func(e reading.Edit) bool { return !taken.free(e) }) {
			continue
		}
		for _, e := range f.Edits {
			taken.take(e)
			accepted[e.Text] = append(accepted[e.Text], e)
		}
		fixed = append(fixed, f)
	}
	// The innermost texts come first.
	deepest := 0
	for t := range accepted {
		deepest = max(deepest, t.Depth())
	}
	for ; deepest > 0; deepest-- {
		for t, edits := range maps.Clone(accepted) {
			if t.Depth() == deepest {
				accepted[t.Parent] = append(accepted[t.Parent], reading.Edit{Text: t.Parent, Start: t.Start, End: t.End, With: t.Encode(apply(t.Data, edits))})
				delete(accepted, t)
			}
		}
	}
	edited = make(map[string][]byte)
	for t, edits := range accepted {
		edited[t.File.Name] = []byte(apply(t.Data, edits))
	}
	return edited, fixed
}

// spans holds the ranges that edits change in texts, sorted and without overlaps.
type spans map[*reading.Text][]span

// span is changed itself (inner is nil), or by changes inside of inner.
type span struct {
	start, end int
	inner      *reading.Text
}

// free reports whether an edit overlaps no taken span, in its own text and in those around it.
func (s spans) free(e reading.Edit) bool {
	want := span{e.Start, e.End, nil}
	for t := e.Text; t != nil; t = t.Parent {
		all := s[t]
		i, _ := slices.BinarySearchFunc(all, want.start, func(a span, start int) int { return a.end - start })
		for ; i < len(all) && all[i].start <= want.end; i++ {
			if overlap(all[i].start, all[i].end, want.start, want.end) && (want.inner == nil || all[i].inner != want.inner) {
				return false
			}
		}
		want = span{t.Start, t.End, t}
	}
	return true
}

func (s spans) take(e reading.Edit) {
	want := span{e.Start, e.End, nil}
	for t := e.Text; t != nil; t = t.Parent {
		all := s[t]
		i, _ := slices.BinarySearchFunc(all, want, func(a, b span) int { return cmp.Or(a.start-b.start, a.end-b.end) })
		if want.inner == nil || i == len(all) || all[i] != want {
			s[t] = slices.Insert(all, i, want)
		}
		want = span{t.Start, t.End, t}
	}
}

// overlap reports whether two ranges share a byte, or one inserts in the middle of the other.
func overlap(aStart, aEnd, bStart, bEnd int) bool {
	if aStart == aEnd || bStart == bEnd {
		return aStart < bEnd && bStart < aEnd && aStart != bStart
	}
	return aStart < bEnd && bStart < aEnd
}

func apply(data string, edits []reading.Edit) string {
	sorted := slices.Clone(edits)
	slices.SortStableFunc(sorted, func(a, b reading.Edit) int { return cmp.Or(a.Start-b.Start, a.End-b.End) })
	var b strings.Builder
	at := 0
	for _, e := range sorted {
		b.WriteString(data[at:e.Start])
		b.WriteString(e.With)
		at = e.End
	}
	b.WriteString(data[at:])
	return b.String()
}

// Diff shows a change as a unified diff.
func (c Change) Diff() string {
	// Errors come from the writer alone, and this one returns none.
	text, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(string(c.Before)), B: difflib.SplitLines(string(c.After)),
		FromFile: c.Name, ToFile: c.Name, Context: 3,
	})
	return text
}

// Write writes all changes to disk, or none. A file that has changed since it was read is an error.
func Write(changes []Change) error {
	var files []writeall.File
	for _, c := range changes {
		path, err := filepath.EvalSymlinks(c.Name)
		var now []byte
		if err == nil {
			now, err = os.ReadFile(path)
		}
		var info fs.FileInfo
		if err == nil {
			info, err = os.Stat(path)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", c.Name, err)
		}
		if !bytes.Equal(now, c.Before) {
			return fmt.Errorf("write %s: it was changed meanwhile", c.Name)
		}
		files = append(files, writeall.File{In: filepath.Dir(path), Name: filepath.Base(path), Data: c.After, Mode: info.Mode()})
	}
	return writeall.Files(files, true)
}
