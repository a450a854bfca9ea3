package lint

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Fixes change what they are about, and not a byte besides: what is left of the
// text before and after the edits is the same text.
func TestEditsStayInTheirRanges(t *testing.T) {
	for _, a := range archives(t) {
		r := Lint(a.parts["faulty"], Options{})
		for _, f := range r.Findings {
			for _, e := range f.Edits {
				if e.Start < 0 || e.End < e.Start || e.End > len(e.Text.Data) {
					t.Fatalf("%s %s: edit %d to %d of %d", a.name, f.Rule, e.Start, e.End, len(e.Text.Data))
				}
				line, _ := e.Text.At(e.Start)
				if line < 1 || line > len(e.Text.Lines) {
					t.Errorf("%s %s: edit on line %d", a.name, f.Rule, line)
				}
			}
		}
	}
}

// A fix keeps what the documents mean: comments stay, and every value that no
// finding is about is there as often as before.
func TestMendsKeepTheRest(t *testing.T) {
	for _, a := range archives(t) {
		fixed := Fix(a.parts["faulty"], Options{})
		for _, c := range fixed.Changes {
			if !strings.HasSuffix(c.Name, ".yaml") {
				continue
			}
			count := func(data []byte) (comments, leaves int) {
				for line := range bytes.Lines(data) {
					if bytes.Contains(line, []byte("#")) {
						comments++
					}
				}
				docs, _ := strictyaml.Documents("", data)
				var walk func(n *reading.Node)
				walk = func(n *reading.Node) {
					if n.Kind == strictyaml.Scalar {
						leaves++
					}
					for _, i := range n.Items {
						walk(i)
					}
					for _, e := range n.Entries {
						walk(e.Value)
					}
				}
				for _, d := range docs {
					if d.Root != nil {
						walk(d.Root)
					}
				}
				return comments, leaves
			}
			wereComments, wereLeaves := count(c.Before)
			comments, leaves := count(c.After)
			removed := 0
			for _, f := range fixed.Done {
				if f.File == c.Name && strings.Contains(f.Fix, "remove it") || strings.HasPrefix(f.Fix, "remove running") {
					removed++
				}
			}
			if comments < wereComments || leaves < wereLeaves-removed {
				t.Errorf("%s %s: %d comments of %d, %d values of %d are left, %d were to be removed", a.name, c.Name, comments, wereComments, leaves, wereLeaves, removed)
			}
		}
	}
}

// Files with other ends of lines, a byte order mark or letters of two bytes are
// fixed in their own form.
func TestMendsInOtherForms(t *testing.T) {
	const before = "kind: VirtualMachineInstance\napiVersion: kubevirt.io/v1\nmetadata: {name: a}\nspec:\n  # Größe\n  domain:\n    hostname: b # wörtlich\n    devices:\n      disks:\n      - {name: ä, serial: 1}\n  volumes: [{name: ä, containerDisk: {image: a}}]\n"
	const after = "kind: VirtualMachineInstance\napiVersion: kubevirt.io/v1\nmetadata: {name: a}\nspec:\n  # Größe\n  domain:\n    devices:\n      disks:\n      - {name: ä, serial: \"1\"}\n  hostname: b # wörtlich\n  volumes: [{name: ä, containerDisk: {image: a}}]\n"
	for _, form := range []struct {
		name string
		of   func(string) string
	}{
		{"as it is", func(s string) string { return s }},
		{"carriage returns", func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }},
		{"a byte order mark", func(s string) string { return "\ufeff" + s }},
		{"no end of the last line", func(s string) string { return strings.TrimSuffix(s, "\n") }},
	} {
		fixed := Fix([]reading.Input{{Name: "a.yaml", Data: []byte(form.of(before))}}, Options{})
		if len(fixed.Changes) != 1 {
			t.Errorf("%s: %d changes: %+v", form.name, len(fixed.Changes), fixed.Left)
			continue
		}
		if got := strings.TrimSuffix(string(fixed.Changes[0].After), "\n"); got != strings.TrimSuffix(form.of(after), "\n") && strings.TrimSuffix(got, "\r") != strings.TrimSuffix(form.of(after), "\r\n") {
			t.Errorf("%s: %q\nwant %q", form.name, got, form.of(after))
		}
	}
}

// Edits that touch each other are not made in one round, and none is lost.
func TestCollisions(t *testing.T) {
	x := reading.NewText(reading.Input{Name: "x", Data: []byte("0123456789")})
	inner := x.Part(2, 6, "inner")
	finding := func(edits ...reading.Edit) report.Finding { return report.Finding{Edits: edits} }
	for _, c := range []struct {
		why  string
		in   []report.Finding
		want string
		n    int
	}{
		{"apart", []report.Finding{finding(reading.Edit{Text: x, Start: 0, End: 1, With: "a"}), finding(reading.Edit{Text: x, Start: 9, End: 10, With: "b"})}, "a12345678b", 2},
		{"the same range", []report.Finding{finding(reading.Edit{Text: x, Start: 0, End: 2, With: "a"}), finding(reading.Edit{Text: x, Start: 0, End: 2, With: "b"})}, "a23456789", 1},
		{"all or none of a finding", []report.Finding{finding(reading.Edit{Text: x, Start: 4, End: 5, With: "a"}), finding(reading.Edit{Text: x, Start: 0, End: 1, With: "b"}, reading.Edit{Text: x, Start: 3, End: 6, With: "c"})}, "0123a56789", 1},
		{"side by side", []report.Finding{finding(reading.Edit{Text: x, Start: 0, End: 2, With: ""}), finding(reading.Edit{Text: x, Start: 2, End: 4, With: ""})}, "456789", 2},
		{"an insertion at the edge", []report.Finding{finding(reading.Edit{Text: x, Start: 0, End: 2, With: ""}), finding(reading.Edit{Text: x, Start: 2, End: 2, With: "a"})}, "a23456789", 2},
		{"an insertion in the middle", []report.Finding{finding(reading.Edit{Text: x, Start: 0, End: 4, With: ""}), finding(reading.Edit{Text: x, Start: 2, End: 2, With: "a"})}, "456789", 1},
		{"two in one inner text", []report.Finding{finding(reading.Edit{Text: inner, Start: 0, End: 1, With: "a"}), finding(reading.Edit{Text: inner, Start: 3, End: 4, With: "b"})}, "01a34b6789", 2},
		{"around an inner text", []report.Finding{finding(reading.Edit{Text: inner, Start: 0, End: 1, With: "a"}), finding(reading.Edit{Text: x, Start: 0, End: 3, With: "b"})}, "01a3456789", 1},
		{"inside of what is replaced", []report.Finding{finding(reading.Edit{Text: x, Start: 0, End: 9, With: "b"}), finding(reading.Edit{Text: inner, Start: 0, End: 1, With: "a"})}, "b9", 1},
		{"beside an inner text", []report.Finding{finding(reading.Edit{Text: inner, Start: 0, End: 4, With: "a"}), finding(reading.Edit{Text: x, Start: 6, End: 7, With: "b"})}, "01ab789", 2},
	} {
		edited, fixed := fixesOf(c.in, nil)
		if string(edited["x"]) != c.want || len(fixed) != c.n {
			t.Errorf("%s: %q with %d fixes, want %q with %d", c.why, edited["x"], len(fixed), c.want, c.n)
		}
	}
}

// The ranges that are taken are those of a plain list.
func TestSpansAgainstAList(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		x := reading.NewText(reading.Input{Name: "x", Data: bytes.Repeat([]byte("x"), 20)})
		s := make(spans)
		var list []reading.Edit
		for range 8 {
			start := random.IntN(20)
			e := reading.Edit{Text: x, Start: start, End: start + random.IntN(20-start)*random.IntN(2), With: ""}
			free := !slices.ContainsFunc(list, func(o reading.Edit) bool { return overlap(o.Start, o.End, e.Start, e.End) })
			if got := s.free(e); got != free {
				t.Fatalf("%v free: %v beside %v", e, got, list)
			}
			if free {
				s.take(e)
				list = append(list, e)
			}
		}
	}
}

// Files are written all or none, with their modes, and through links.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(path(name), []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(name, want string) {
		t.Helper()
		got, err := os.ReadFile(path(name))
		if err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v, want %q", name, got, err, want)
		}
	}
	change := func(name, before, after string) Change { return Change{path(name), []byte(before), []byte(after)} }
	put("a", "1")
	put("b", "1")
	if err := os.Symlink("b", path("link")); err != nil {
		t.Fatal(err)
	}
	if err := Write([]Change{change("a", "1", "2"), change("link", "1", "2")}); err != nil {
		t.Fatal(err)
	}
	holds("a", "2")
	holds("b", "2")
	if info, err := os.Lstat(path("link")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info.Mode(), err)
	}
	if info, _ := os.Stat(path("a")); info.Mode().Perm() != 0o640 {
		t.Errorf("the mode became %v", info.Mode())
	}
	// One that changed meanwhile, or is gone, keeps all as they are.
	put("b", "somebody else's")
	if err := Write([]Change{change("a", "2", "3"), change("b", "2", "3")}); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("a file that changed: %v", err)
	}
	holds("a", "2")
	if err := Write([]Change{change("a", "2", "3"), change("gone", "2", "3")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
	holds("a", "2")
	holds("b", "somebody else's")
	left, _ := filepath.Glob(path(".*"))
	if len(left) > 0 {
		t.Errorf("files that were left: %v", left)
	}
}

// A file whose fix would make it harder to read is left alone.
func TestAStubbornFileIsLeftAlone(t *testing.T) {
	// The key's line is part of a mapping in braces that goes on: to take it
	// away with its lines would leave them open.
	text := "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata:\n  name: a\nspec:\n  domain: {devices: {},\n     cpu: {cores: 1},\n     hostname: b}\n"
	fixed := Fix([]reading.Input{{Name: "a.yaml", Data: []byte(text)}}, Options{})
	for _, c := range fixed.Changes {
		if docs, problems := strictyaml.Documents("", c.After); len(problems) > 0 || docs[0].Root == nil {
			t.Errorf("it cannot be read any more: %s", c.After)
		}
	}
}

// Many faults take time in proportion to their number.
func TestManyFaults(t *testing.T) {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: List\nitems:\n")
	const many = 500
	for i := range many {
		fmt.Fprintf(&b, "- apiVersion: cdi.kubevirt.io/v1beta1\n  kind: StorageProfile\n  metadata: {name: p%d}\n  spec:\n    clonestrategy: \"Copy\"\n", i)
	}
	fixed := Fix([]reading.Input{{Name: "a.yaml", Data: []byte(b.String())}}, Options{})
	if len(fixed.Done) != 2*many || len(fixed.Left.Findings) != 0 {
		t.Errorf("%d were fixed, %d are left", len(fixed.Done), len(fixed.Left.Findings))
	}
}
