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

// page is the table of a run of the matrix, as docs/reliability.md has it.
func (m *matrix) page() string {
	var b strings.Builder
	of := "the whole"
	if !m.whole {
		of = "the short part (`make faults-core`)"
	}
	fmt.Fprintf(&b, "%s\nThe table is of %s with the seed %d, made on %s.", preface, of, m.seed, time.Now().UTC().Format(time.DateOnly))
	if m.unmade > 0 {
		fmt.Fprintf(&b, " Its time was over before %d of its cells or rows were begun; what is \"not made\" is not tested by it.", m.unmade)
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
	return b.String() + legend() + kept()
}

// pageFile is where the page lies, and heading begins what people write below it.
const (
	pageFile = "../../../docs/reliability.md"
	heading  = "\n## Seeds that were made\n"
)

// kept is what people have written below the page, which a new table leaves alone.
func kept() string {
	text, _ := os.ReadFile(pageFile)
	if _, below, ok := strings.Cut(string(text), heading); ok {
		return heading + below
	}
	return ""
}

// rows is the table of Markdown, with what a cell that is made says.
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

// note is the number of a reason why a cell is not made here.
func note(reason string) string { return fmt.Sprint("(", 1+slices.Index(reasons(), reason), ")") }

// reasons are those of the table, in its order.
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
	return b.String() + ending
}

const preface = `# Reliability: faults that are planted, and what holds then

` + "`make faults`" + ` draws new seeds, makes this table and writes this page. Each run has a twin, the
same run without the fault. Runs against a Kubernetes API go through a proxy
that makes the faults and counts what passes; a real control plane with
simulated nodes is behind it. Rows that begin with a component stop or kill it
while all loads of the lab are under way.

A moment is chosen, not hit: a signal is sent, and a component, a server or a node is
disturbed, when the run's own record shows an event. For a signal the seed draws the
event: the run, the raise, the hold or the removal begins, the third object is created
or the third window of a stream is over, the step ends, the result is written. Other
disturbances come with the third object or window. A run that ends before its moment is
no failure; more than 1 in 4 of a row of at least 8 are.

Of every run, whatever the fault:

- The record has created as many objects as the proxy has seen. A SIGKILL may
  cost it those of its latest 100 ms.
- Where a result says that cleanup is done, nothing is left, by a list past the
  proxy. Where something is left, the run names the command that removes it, and
  that command does. A SIGKILL after that, on this machine, can leave the run's own
  directory: the next command removes it.
- 'analyze' prints what the run has printed, and comes to the same result.json.
- A secret in the kubeconfig and in errors of the API server is in no file and in
  no output.
- The run ends within its bound, and nothing panics. How soon it ends after SIGTERM
  is judged where the run says that no other program took the processors.
- At least 19 of 20 runs whose fault a client can heal end as their twins.

A cell says how often the runs ended how: "as the twin" with its verdict, "named"
with an error, or a breach whose first sentence or known failure is the fault, or, where
that is enough, the reason why requests failed, "inconclusive", "ended before" the
moment of its fault, or "not judged" because other programs kept the processors busy.
`

const ending = `
## What is not tested

- Faults of a real cluster's network between nodes: a lab's nodes are on one
  machine.
- Faults of disks other than a full or a read-only one: no bit of a block is
  flipped below the file system. Flipped bits in a record are tested where it is
  read.
- A proxy between components and the API server: components are stopped and
  killed, their requests are not faulted.
- Machine crashes. SIGKILL of the program is tested, a lost page cache is not.
- Several faults of different kinds at once, such as a stopped scheduler and a
  full disk.
- Real guests and real nodes: machines and nodes of the matrix are simulated.
`

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
			t.Errorf("docs/reliability.md lacks the row %q: make faults writes it", want)
		}
	}
	for _, part := range []string{preface, legend()} {
		if !strings.Contains(string(text), part) {
			t.Errorf("docs/reliability.md lacks\n%s", part)
		}
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
