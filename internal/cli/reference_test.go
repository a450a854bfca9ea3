package cli_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
)

// keysOf returns the keys of a document by the type that it is read into, as a page
// of reference writes them: a[].b for those of a list's items, a.NAME.b for
// those of a mapping's. A type stands once, and leave says which not at all.
func keysOf(t reflect.Type, tag string, leave ...reflect.Type) (keys []string) {
	// A type that stands twice is described where it stands first, the shallower
	// the earlier.
	type item struct {
		t    reflect.Type
		path string
	}
	seen := make(map[reflect.Type]bool)
	queue := []item{{t, ""}}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		t, path := at.t, at.path
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Duration]() || seen[t] || slices.Contains(leave, t) {
			continue
		}
		seen[t] = true
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get(tag), ",")
			switch {
			case name == "" && f.Anonymous:
				seen[f.Type] = false
				queue = append(queue, item{f.Type, path})
			case name != "" && name != "-" && f.IsExported():
				keys = append(keys, path+name)
				queue = append(queue, item{f.Type, path + name + "."})
			}
		}
	}
	return keys
}

var (
	lists = strings.NewReplacer("[]", "")
	names = regexp.MustCompile(`\.[A-Z]+`)
	ticks = regexp.MustCompile("`([^`]+)`")
)

// documentedKeys returns the keys in a page's tables: the first cell of a row names
// one in full, and others beside it.
func documentedKeys(t *testing.T, page string) (keys []string) {
	t.Helper()
	for _, row := range tableRows(t, page) {
		parent := ""
		for i, m := range ticks.FindAllStringSubmatch(row[0], -1) {
			key := names.ReplaceAllString(lists.Replace(m[1]), "")
			switch at := strings.LastIndexByte(key, '.'); {
			case i > 0 && at < 0:
				key = parent + key
			case i == 0:
				parent = key[:at+1]
			}
			keys = append(keys, key)
		}
	}
	return keys
}

// tableRows returns the cells of the rows of a page's tables, without their heads.
func tableRows(t *testing.T, page string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			inside = false
		case strings.HasPrefix(line, "|---"):
			inside = true
		case inside:
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i, cell := range cells {
				cells[i] = strings.TrimSpace(cell)
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

// A page of reference has every key of its document, and no other.
func TestReferenceHasEveryKey(t *testing.T) {
	for _, c := range []struct {
		page string
		keys []string
	}{
		{"experiment.md", append(keysOf(reflect.TypeFor[plan.Plan](), "yaml", reflect.TypeFor[signature.Signature]()), ownKeys()...)},
		{"workload.md", append(keysOf(reflect.TypeFor[workload.Workload](), "yaml"), followedKeys()...)},
		{"result.md", keysOf(reflect.TypeFor[result.Result](), "json")},
		{"grid.md", keysOf(reflect.TypeFor[judge.Grid](), "json", reflect.TypeFor[result.Result](), reflect.TypeFor[compare.Compared](), reflect.TypeFor[compare.LineComparison]())},
	} {
		got := documentedKeys(t, c.page)
		for i, key := range got {
			if slices.Contains(got[:i], key) {
				t.Errorf("docs/%s has the key %s twice", c.page, key)
			}
			if !slices.Contains(c.keys, key) {
				t.Errorf("docs/%s has the key %s, which there is not", c.page, key)
			}
		}
		for _, key := range c.keys {
			if !slices.Contains(got, key) {
				t.Errorf("docs/%s lacks the key %s", c.page, key)
			}
		}
	}
}

// ownKeys returns the keys of targets' own settings in a plan.
func ownKeys() (keys []string) {
	for _, p := range process.Providers() {
		declared := p.Declare().Settings
		if declared == nil {
			continue
		}
		for _, f := range settings.Fields(declared()) {
			parts := strings.Split("target."+f.Path, ".")
			for n := 2; n <= len(parts); n++ {
				if key := strings.Join(parts[:n], "."); !slices.Contains(keys, key) {
					keys = append(keys, key)
				}
			}
		}
	}
	return keys
}

// followedKeys returns the keys of what targets follow by a workload's description.
func followedKeys() (keys []string) {
	for _, p := range process.Providers() {
		declared := p.Declare().Objects
		if declared == nil {
			continue
		}
		for _, key := range keysOf(reflect.TypeOf(declared()), "yaml") {
			if key = "objects." + key; !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// The page of reference names the flag of each of a target's own settings beside
// its key.
func TestReferenceNamesTheFlagsOfSettings(t *testing.T) {
	for _, p := range process.Providers() {
		declared := p.Declare().Settings
		if declared == nil {
			continue
		}
		for _, f := range settings.Fields(declared()) {
			key := f.Path[strings.LastIndexByte(f.Path, '.')+1:]
			if !slices.ContainsFunc(tableRows(t, "experiment.md"), func(row []string) bool {
				return strings.HasPrefix(row[0], "`target.") && strings.Contains(row[0], key+"`") && strings.Contains(row[1], "`--"+f.Flag+"`")
			}) {
				t.Errorf("docs/experiment.md has no row with the key %s and the flag --%s", f.Path, f.Flag)
			}
		}
	}
}

// A flag that a page of reference names is one of some command that makes an
// experiment.
func TestReferenceNamesFlagsThatThereAre(t *testing.T) {
	stop := process.NewInterrupts(nil, func(string, ...any) {})
	defer stop.Close()
	root := cli.NewRootCommand(&process.Process{}, stop)
	for _, row := range tableRows(t, "experiment.md") {
		for _, m := range ticks.FindAllStringSubmatch(row[1], -1) {
			there := slices.ContainsFunc([]string{"limit", "sweep", "ab"}, func(name string) bool {
				c, _, err := root.Find([]string{name})
				return err == nil && c.Flags().Lookup(strings.TrimPrefix(m[1], "--")) != nil
			})
			if !there {
				t.Errorf("docs/experiment.md names the flag %s, which there is not", m[1])
			}
		}
	}
}

// The page of objectives has every form of the grammar, each with an example
// that is read as what it says.
func TestReferenceOfObjectives(t *testing.T) {
	rows := tableRows(t, "objectives.md")
	forms := make(map[slo.Form]bool)
	for _, row := range rows {
		form, example := ticks.FindStringSubmatch(row[0])[1], ticks.FindStringSubmatch(row[1])[1]
		s, err := slo.Parse(example)
		if err != nil {
			t.Errorf("the example of %q is refused: %v", form, err)
		}
		forms[s.Form] = true
		// Without its example's words a form is a part of the grammar.
		written := strings.NewReplacer("pNN OP", "pNN|max|mean OP", "max OP", "pNN|max|mean OP", "mean OP", "pNN|max|mean OP", " within DURATION", "").Replace(form)
		if !strings.Contains(slo.Grammar, written) {
			t.Errorf("the grammar has no %q", written)
		}
	}
	if len(forms) != 8 || strings.Count(slo.Grammar, " | ") != 6 {
		t.Errorf("the page has %d forms, and the grammar is %s", len(forms), slo.Grammar)
	}
}

// Every exit code of the program is on its page, and in the table of results.
func TestReferenceOfExitCodes(t *testing.T) {
	codes := []string{"0", "1", "2", "3", "4", "5", "129", "130", "141", "143"}
	for i, code := range []int{process.ExitPass, process.ExitFail, process.ExitUsage, process.ExitInconclusive, process.ExitInvalid, process.ExitCouldNotRun, process.CodeOf(syscall.SIGHUP), process.ExitInterrupted, process.CodeOf(syscall.SIGPIPE), process.CodeOf(syscall.SIGTERM)} {
		if codes[i] != strconv.Itoa(code) {
			t.Errorf("the code %d is documented as %s", code, codes[i])
		}
	}
	var got []string
	for _, row := range tableRows(t, "exit-codes.md") {
		got = append(got, row[0])
	}
	if !slices.Equal(got, codes) {
		t.Errorf("docs/exit-codes.md has %v, want %v", got, codes)
	}
}

// The page of the history has the fields of every kind of event, and no others.
func TestReferenceOfTheHistory(t *testing.T) {
	got := make(map[record.EventKind][]string)
	for _, row := range tableRows(t, "history.md") {
		if len(row) != 3 {
			continue // not a row of the kinds
		}
		kind := record.EventKind(strings.Trim(row[0], "`"))
		for _, m := range ticks.FindAllStringSubmatch(row[1], -1) {
			got[kind] = append(got[kind], m[1])
		}
	}
	bodies := []record.Body{
		&record.RunEvent{}, &record.StepEvent{}, &record.Slot{}, &record.Object{}, &record.State{}, &record.TargetEvent{},
		&record.Reading{}, &record.Canary{}, &record.Corrected{}, &record.Guard{}, &record.Fault{}, &record.Log{},
		&record.ComponentHistogram{}, &record.Window{}, &record.Request{}, &record.Place{}, &record.Actor{}, &record.Trial{},
		&record.Answer{}, &record.Release{}, &record.Cleanup{}, &record.File{}, &record.Note{},
	}
	for _, body := range bodies {
		var want []string
		for _, key := range keysOf(reflect.TypeOf(body), "json") {
			if !strings.Contains(key, ".") {
				want = append(want, key)
			}
		}
		slices.Sort(want)
		slices.Sort(got[body.Kind()])
		if !slices.Equal(got[body.Kind()], want) {
			t.Errorf("docs/history.md has for %s %v, want %v", body.Kind(), got[body.Kind()], want)
		}
	}
	if len(got) != len(bodies) {
		t.Errorf("docs/history.md has %d kinds, want %d", len(got), len(bodies))
	}
}
