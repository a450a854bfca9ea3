package faults

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// pageFile is the page that a run of the whole matrix writes.
const pageFile = "../../../docs/tables/reliability.md"

// page returns the text of pageFile: the table of a run of the matrix.
func (m *matrix) page() string {
	var b strings.Builder
	of := "the whole"
	if !m.whole {
		of = "the short part (`make faults-core`)"
	}
	fmt.Fprintf(&b, "# The matrix of faults\n\n[Reliability](../reliability.md) explains it.\n\nThe table is of %s with the seed %d, made on %s.", of, m.seed, time.Now().UTC().Format(time.DateOnly))
	if m.unmade > 0 {
		fmt.Fprintf(&b, " Its time was over before %d of its cells or rows began; \"not made\" is not tested.", m.unmade)
	}
	judged := 0
	for _, n := range m.healed.verdicts {
		judged += n
	}
	judged -= m.healed.verdicts[notJudged]
	fmt.Fprintf(&b, " Of %d runs whose fault a client can heal, %d ended as their twins.\n\n", judged, m.healed.verdicts[same])
	b.WriteString(rows(func(f fault, l load) string {
		x := m.tallies[f.name+"/"+l.name]
		if x == nil {
			return "not made"
		}
		var parts []string
		for _, v := range []verdict{same, named_, unknown, differs, endedBefore, notJudged} {
			if n := x.verdicts[v]; n > 0 {
				text := string(v)
				if v == same && f.must == prompt {
					text = "prompt"
				}
				parts = append(parts, fmt.Sprint(text, " ", n))
			}
		}
		if x.problems > 0 {
			parts = append(parts, fmt.Sprintf("**%d failed**", x.problems))
		}
		return strings.Join(parts, ", ")
	}))
	return b.String() + legend()
}

// rows returns the table of Markdown, with what a cell that is made says.
func rows(made func(f fault, l load) string) string {
	var b strings.Builder
	b.WriteString("| fault | must hold |")
	for _, l := range loads() {
		b.WriteString(" " + l.name + " |")
	}
	b.WriteString("\n" + strings.Repeat("|---", 2+len(loads())) + "|\n")
	for _, f := range table() {
		fmt.Fprintf(&b, "| %s | %s |", f.name, f.must)
		for _, l := range loads() {
			if slices.Contains(f.on, l.name) {
				b.WriteString(" " + made(f, l) + " |")
			} else {
				b.WriteString(" " + note(f.elsewhere[l.name]) + " |")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// note returns the number of a reason why a cell is not made here.
func note(reason string) string { return fmt.Sprint("(", 1+slices.Index(reasons(), reason), ")") }

// reasons returns the reasons of the table, in its order.
func reasons() (list []string) {
	for _, f := range table() {
		for _, l := range loads() {
			if r := f.elsewhere[l.name]; r != "" && !slices.Contains(list, r) {
				list = append(list, r)
			}
		}
	}
	return list
}

func legend() string {
	var b strings.Builder
	b.WriteString("\n")
	for i, r := range reasons() {
		fmt.Fprintf(&b, "%d. %s%s.\n", i+1, strings.ToUpper(r[:1]), r[1:])
	}
	return b.String()
}

// The page has the rows and columns of the matrix, whatever the latest results
// were: a fault that is added is documented.
func TestTheReliabilityPageShowsTheMatrix(t *testing.T) {
	text, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, want := range strings.Split(strings.TrimSpace(rows(func(fault, load) string { return "*" })), "\n") {
		if !slices.ContainsFunc(lines, func(line string) bool { return fits(line, want) }) {
			t.Errorf("%s lacks the row %q: make faults writes it", pageFile, want)
		}
	}
	if !strings.Contains(string(text), legend()) {
		t.Errorf("%s lacks\n%s", pageFile, legend())
	}
}

// fits reports whether a row is the wanted one, where * is anything.
func fits(line, want string) bool {
	have, must := strings.Split(line, "|"), strings.Split(want, "|")
	if len(have) != len(must) {
		return false
	}
	for i := range must {
		if strings.TrimSpace(must[i]) != "*" && have[i] != must[i] {
			return false
		}
	}
	return true
}

// Every cell is made, or says why not; a test that is said to make it exists.
func TestEveryCellIsMadeOrSaysWhyNot(t *testing.T) {
	var sources strings.Builder
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		sources.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, f := range table() {
		if names[f.name] {
			t.Errorf("two rows are called %q", f.name)
		}
		names[f.name] = true
		for _, l := range loads() {
			made, reason := slices.Contains(f.on, l.name), f.elsewhere[l.name]
			if made == (reason != "") {
				t.Errorf("%s, %s: made %v, and why not: %q", f.name, l.name, made, reason)
			}
			for _, word := range strings.FieldsFunc(reason, func(r rune) bool { return strings.ContainsRune(" ,:;", r) }) {
				if strings.HasPrefix(word, "Test") && !strings.Contains(sources.String(), "func "+word+"(") {
					t.Errorf("%s, %s: there is no %s", f.name, l.name, word)
				}
			}
		}
		for _, name := range f.short {
			if !slices.Contains(f.on, name) {
				t.Errorf("%s: the short matrix makes it on %q, the whole does not", f.name, name)
			}
		}
	}
}
