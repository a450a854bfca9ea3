package strictyaml

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/test/ring"
)

// share is a type that reads itself from text, such as "5%".
type share float64

func (s *share) UnmarshalText(text []byte) error {
	var percent float64
	if _, err := fmt.Sscanf(string(text), "%g%%", &percent); err != nil {
		return errors.New("wants a share such as 5%")
	}
	*s = share(percent / 100)
	return nil
}

// names takes one name or a list of them.
type names []string

func (n *names) UnmarshalYAML(unmarshal func(any) error) error {
	var one string
	if err := unmarshal(&one); err == nil {
		*n = names{one}
		return nil
	}
	var list []string
	if err := unmarshal(&list); err != nil {
		return err
	}
	*n = list
	return nil
}

type base struct {
	Name string `yaml:"name"`
}

type inner struct {
	Step int `yaml:"step"`
	Max  int `yaml:"max"`
}

type plan struct {
	base
	Common  inner              `yaml:",inline"`
	Level   *int               `yaml:"level"`
	Levels  []int              `yaml:"levels"`
	Hold    time.Duration      `yaml:"hold"`
	Margin  share              `yaml:"margin"`
	On      bool               `yaml:"on"`
	Rate    float64            `yaml:"rate"`
	Small   int8               `yaml:"small"`
	Count   uint16             `yaml:"count"`
	Labels  map[string]string  `yaml:"labels"`
	Any     map[string]any     `yaml:"any"`
	Goals   Ordered[[]string]  `yaml:"goals"`
	Names   names              `yaml:"names"`
	Axis    *inner             `yaml:"axis"`
	Arms    []inner            `yaml:"arms"`
	ByName  map[string]inner   `yaml:"byName"`
	Skipped string             `yaml:"-"`
	Plain   string             // lower case without a tag
	Deep    map[string][]inner `yaml:"deep"`
}

func ptr[T any](v T) *T { return &v }

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		why, yaml string
		want      plan
	}{
		{"scalars of every kind", "level: 3\nhold: 1m30s\nmargin: 5%\non: true\nrate: 2.5\nsmall: -3\ncount: 7\n",
			plan{Level: ptr(3), Hold: 90 * time.Second, Margin: 0.05, On: true, Rate: 2.5, Small: -3, Count: 7}},
		{"embedded and inline keys lie side by side", "name: a\nstep: 2\n", plan{base: base{"a"}, Common: inner{Step: 2}}},
		{"text keeps what was written", "name: 1.10\nplain: yes\n", plan{base: base{"1.10"}, Plain: "yes"}},
		{"a duration of nothing needs no unit", "hold: 0\n", plan{}},
		{"a whole float is a whole number", "levels: [1e3, 5.0, 0x10, 0o17, 1_000]\n", plan{Levels: []int{1000, 5, 16, 15, 1000}}},
		{"a whole number is a number", "rate: 5\n", plan{Rate: 5}},
		{"the words of truth of YAML 1.1 fill a bool", "on: yes\n", plan{On: true}},
		{"null says nothing", "name:\nlevel: null\nlevels: ~\nany: {a: null}\n", plan{Any: map[string]any{"a": nil}}},
		{"untyped values", "any: {a: [1, 2.5, yes, true, '3', {b: c}], d: 2001-01-01}\n",
			plan{Any: map[string]any{"a": []any{int64(1), 2.5, "yes", true, "3", map[string]any{"b": "c"}}, "d": "2001-01-01"}}},
		{"labels take any scalar as text", "labels: {a: true, b: 1, c: '', d: x}\n",
			plan{Labels: map[string]string{"a": "true", "b": "1", "c": "", "d": "x"}}},
		{"an ordered mapping keeps its order", "goals: {z: [a], b: [c, d]}\n",
			plan{Goals: Ordered[[]string]{{"z", []string{"a"}}, {"b", []string{"c", "d"}}}}},
		{"a type that reads itself: scalar", "names: x\n", plan{Names: names{"x"}}},
		{"a type that reads itself: list", "names: [x, y]\n", plan{Names: names{"x", "y"}}},
		{"a pointer is made when needed", "axis: {step: 1}\n", plan{Axis: &inner{Step: 1}}},
		{"anchors and aliases", "arms: [&a {step: 1, max: 2}, *a]\naxis: *a\n",
			plan{Arms: []inner{{1, 2}, {1, 2}}, Axis: &inner{1, 2}}},
		{"a key of its own wins over a merged one", "byName:\n  a: &a {step: 1, max: 2}\n  b: {<<: *a, max: 3}\n  c: {max: 4, <<: *a}\n",
			plan{ByName: map[string]inner{"a": {1, 2}, "b": {1, 3}, "c": {1, 4}}}},
		{"the first of several merged mappings wins", "byName:\n  a: &a {step: 1}\n  b: &b {step: 2, max: 5}\n  c: {<<: [*a, *b]}\n",
			plan{ByName: map[string]inner{"a": {1, 0}, "b": {2, 5}, "c": {1, 5}}}},
		{"tags", "name: !!str 5\nlevel: !!int \"6\"\n", plan{base: base{"5"}, Level: ptr(6)}},
		{"a byte order mark and Windows line ends", "\ufeffname: a\r\nlevel: 1\r\n", plan{base: base{"a"}, Level: ptr(1)}},
		{"document markers around one document", "# comment\n---\nname: a\n...\n", plan{base: base{"a"}}},
		{"a version directive", "%YAML 1.2\n---\nname: a\n", plan{base: base{"a"}}},
		{"a marker inside a block scalar is indented", "name: |\n  a\n  ---\n  b\n", plan{base: base{"a\n---\nb\n"}}},
	} {
		var got plan
		if _, err := Decode("f.yaml", []byte(c.yaml), &got); err != nil {
			t.Errorf("%s: %v", c.why, err)
		} else if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.why, got, c.want)
		}
	}
}

func TestDecodeKeepsWhatTheFileDoesNotSay(t *testing.T) {
	got := plan{base: base{"kept"}, Common: inner{Step: 9}, Labels: map[string]string{"a": "b"}}
	if _, err := Decode("f.yaml", []byte("name:\nmax: 4\nlabels: {c: d}\n"), &got); err != nil {
		t.Fatal(err)
	}
	want := plan{base: base{"kept"}, Common: inner{Step: 9, Max: 4}, Labels: map[string]string{"a": "b", "c": "d"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The keys of what has very many are no help in a line.
func TestVeryManyKeysAreNotListed(t *testing.T) {
	for n, want := range map[int]bool{32: true, 33: false} {
		var fields []reflect.StructField
		for i := range n {
			fields = append(fields, reflect.StructField{Name: fmt.Sprintf("Field%d", i), Type: reflect.TypeFor[int]()})
		}
		_, err := Decode("f.yaml", []byte("xyz: 1\n"), reflect.New(reflect.StructOf(fields)).Interface())
		if err == nil || strings.Contains(err.Error(), "allowed: field0, ") != want {
			t.Errorf("with %d keys: %v", n, err)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, c := range []struct {
		why, yaml string
		want      string
	}{
		{"an empty file", "", "f.yaml: the file is empty"},
		{"comments only", "# nothing\n---\n", "f.yaml: the file is empty"},
		{"a misspelt key has a hint", "lables: {a: b}\n", `f.yaml:1:1: unknown key "lables" (did you mean "labels"?)`},
		{"few keys are listed", "axis:\n  foo: 1\n", `f.yaml:2:3: axis: unknown key "foo" (allowed: step, max)`},
		{"as many keys as an experiment has are listed", "frobnicate: 1\n", `f.yaml:1:1: unknown key "frobnicate" (allowed: name, step, max, level, levels, hold, margin, on, rate, small, count, labels, any, goals, names, axis, arms, byName, plain, deep)`},
		{"a key twice", "name: a\nlevel: 1\nname: b\n", `f.yaml:3:1: the key "name" stands here a second time, first on line 1`},
		{"all problems, by line", "level: x\nfoobarbaz: 1\narms:\n- step: y\n  stepp: 1\n- 5\n", strings.Join([]string{
			`f.yaml:1:8: level: wants a whole number, found the text "x"`,
			`f.yaml:2:1: unknown key "foobarbaz" (allowed: name, step, max, level, levels, hold, margin, on, rate, small, count, labels, any, goals, names, axis, arms, byName, plain, deep)`,
			`f.yaml:4:9: arms[0].step: wants a whole number, found the text "y"`,
			`f.yaml:5:3: arms[0]: unknown key "stepp" (did you mean "step"?)`,
			`f.yaml:6:3: arms[1]: wants a mapping, found the number 5`,
		}, "\n")},
		{"a list where a mapping is wanted", "axis: [1]\n", "f.yaml:1:7: axis: wants a mapping, found a list"},
		{"a mapping where a list is wanted", "arms: {a: 1}\n", "f.yaml:1:7: arms: wants a list, found a mapping"},
		{"a mapping where a scalar is wanted", "level: {a: 1}\n", "f.yaml:1:8: level: wants a whole number, found a mapping"},
		{"quotes make a number text", "level: \"5\"\n", `f.yaml:1:8: level: wants a whole number, found the text "5" (remove the quotes)`},
		{"a fraction is no whole number", "level: 5.5\n", "f.yaml:1:8: level: wants a whole number, found the number 5.5"},
		{"too large for its type", "small: 300\n", "f.yaml:1:8: small: wants a whole number of 8 bits, found the number 300"},
		{"negative where it cannot be", "count: -1\n", "f.yaml:1:8: count: wants a whole number that is not negative, found the number -1"},
		{"a duration without unit", "hold: 10\n", "f.yaml:1:7: hold: wants a duration such as 10s, found the number 10 (write the unit: 10s)"},
		{"not a duration", "hold: soon\n", `f.yaml:1:7: hold: wants a duration such as 10s, found the text "soon"`},
		{"a type's own message", "margin: lots\n", "f.yaml:1:9: margin: wants a share such as 5%"},
		{"the last try of a type's own method", "names: {a: b}\n", "f.yaml:1:8: names: wants a list, found a mapping"},
		{"infinity is no number", "rate: .inf\n", "f.yaml:1:7: rate: wants a number, found the number .inf"},
		{"infinity is no value either", "any: {a: .nan}\n", "f.yaml:1:10: any.a: .nan is not a number that can be used here"},
		{"an inner key with dots", "byName:\n  a.b: {foo: 1}\n", `f.yaml:2:9: byName["a.b"]: unknown key "foo" (allowed: step, max)`},
		{"an ordered mapping's inside", "goals:\n  ready: [{a: b}]\n", "f.yaml:2:11: goals.ready[0]: wants text, found a mapping"},
		{"two documents", "name: a\n---\nname: b\n", "f.yaml:3:1: the file holds 2 documents, one is wanted (remove what follows the line ---)"},
		{"a document after an empty one is not lost", "---\n---\n# c\n---\nname: a\n---\nname: b\n", "f.yaml:7:1: the file holds 2 documents, one is wanted (remove what follows the line ---)"},
		{"a syntax error", "name: a\nlevel: [1,\n", "f.yaml:2:8: not valid YAML: sequence end token ']' not found"},
		{"a syntax error in a later document counts lines from the top", "name: a\n---\n\nb: c: d\n", "f.yaml:4:4: not valid YAML: mapping value is not allowed in this context"},
		{"a forgotten template action", "name: {{ .x }}\n", "f.yaml:1:8: not valid YAML: could not find flow map content (a template action {{ }} was left unrendered)"},
		{"an unknown alias", "name: *nope\n", "f.yaml:1:7: no anchor &nope comes before this alias"},
		{"an alias within itself", "any: &a {b: *a}\n", "f.yaml:1:13: the alias *a stands inside the value that it names"},
		{"a key that is a list", "? [a]\n: b\n", "f.yaml:2:1: not valid YAML: found an invalid key for this map"},
		{"a merge of something else", "axis: {<<: 5}\n", "f.yaml:1:12: a merge key wants a mapping or a list of mappings, found the number 5"},
		{"an unknown tag", "name: !secret x\n", "f.yaml:1:7: the tag !secret means nothing here"},
		{"a tag that does not fit", "any: {a: !!int x}\n", `f.yaml:1:10: any.a: the tag !!int does not fit "x"`},
		{"a tag on the wrong kind", "any: !!str {a: b}\n", "f.yaml:1:11: not valid YAML: unexpected scalar value type"},
		{"not UTF-8", "name: a\nplain: \xff\n", "f.yaml:2: the line is not valid UTF-8"},
		{"a control character", "name: a\x00b\n", "f.yaml:1: the line holds the control character U+0000"},
	} {
		var got plan
		_, err := Decode("f.yaml", []byte(c.yaml), &got)
		if err == nil {
			t.Errorf("%s: no error", c.why)
		} else if err.Error() != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.why, err, c.want)
		}
	}
}

func TestHostileFilesEndSoon(t *testing.T) {
	ring.Long(t, "it measures how long hostile files take")
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	manyKeys := "k: 1"
	for i := range 500 {
		manyKeys += fmt.Sprintf(", k%d: 1", i)
	}
	merges := "a: &a {" + manyKeys + "}\nb: {<<: [" + strings.TrimSuffix(strings.Repeat("*a,", 5000), ",") + "]}\n"
	const n = 100_000
	for _, c := range []struct{ why, yaml, want string }{
		{"aliases of aliases", bomb, "aliases blow this up"},
		{"many mappings merged", merges, "aliases blow this up"},
		{"one mapping merged many times", "a: &a {" + manyKeys + "}\nb: {" + strings.Repeat("<<: *a, ", 3000) + "c: d}\n", "merge keys add more than"},
		{"open brackets", strings.Repeat("[", n), "nest more than"},
		{"balanced brackets", strings.Repeat("[", n) + strings.Repeat("]", n), "nest more than"},
		{"dashes on a line", strings.Repeat("- ", n) + "a", "nest more than"},
		{"question marks on a line", strings.Repeat("? ", n) + "a", "nest more than"},
		{"anchors on a line", "a: " + strings.Repeat("&a ", n) + "b", "nest more than"},
		{"tags on a line", "a: " + strings.Repeat("!!str ", n) + "b", "nest more than"},
		{"keys on a line", strings.Repeat("a: ", n), "too many keys on one line"},
		{"a very large file", "a: " + strings.Repeat("x", maxBytes), "at most"},
	} {
		start := time.Now()
		var got any
		_, err := Decode("f.yaml", []byte(c.yaml), &got)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %.200v, want %q", c.why, err, c.want)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: took %v", c.why, took)
		}
	}
}

func TestPositions(t *testing.T) {
	const text = `name: a
axis:
  step: 2
arms:
- step: 1
- {max: 3}
labels:
  app.kubernetes.io/name: x
level:
any:
  list:
  - a: 1
`
	var p plan
	at, err := Decode("f.yaml", []byte(text), &p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why, path    string
		line, column int
		has          bool
	}{
		{"a scalar is at its value", "name", 1, 7, true},
		{"a mapping is at its key", "axis", 2, 1, true},
		{"nested", "axis.step", 3, 9, true},
		{"missing: the innermost part there is", "axis.max", 2, 1, false},
		{"missing at the top: the document", "hold", 1, 1, false},
		{"a list is at its key", "arms", 4, 1, true},
		{"an item", "arms[1]", 6, 3, true},
		{"inside an item", "arms[1].max", 6, 9, true},
		{"missing inside an item", "arms[0].max", 5, 3, false},
		{"a key with dots", `labels["app.kubernetes.io/name"]`, 8, 27, true},
		{"missing key with dots", `labels["a\"]b"]`, 7, 1, false},
		{"a key without value says nothing", "level", 1, 1, false},
		{"inside an untyped value", "any.list[0].a", 12, 8, true},
	} {
		if got := at.At(c.path); got.Line != c.line || got.Column != c.column {
			t.Errorf("%s: At(%q) = %d:%d, want %d:%d", c.why, c.path, got.Line, got.Column, c.line, c.column)
		}
		if got := at.Has(c.path); got != c.has {
			t.Errorf("%s: Has(%q) = %v", c.why, c.path, got)
		}
	}
	err = Join([]Problem{at.Problem("axis.step", "must be above %d", 2), at.Problem("name", "is taken")})
	want := "f.yaml:1:7: name: is taken\nf.yaml:3:9: axis.step: must be above 2"
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	var none *Positions
	if p := none.Problem("a", "wrong"); p.String() != "a: wrong" || none.Has("a") {
		t.Errorf("positions of no file: %q", p)
	}
}

func TestLinesFrom(t *testing.T) {
	rendered := "name: a\nlevel: x\nhold: 1\n"
	origin := func(line int) Origin {
		if line == 2 {
			return Origin{Line: 7, Text: "level: x"}
		}
		return Origin{Line: line + 5}
	}
	var p plan
	at, err := Decode("f.yaml", []byte(rendered), &p, LinesFrom(origin))
	want := "f.yaml:7: level: wants a whole number, found the text \"x\" in the rendered line: level: x\n" +
		"f.yaml:8:7: hold: wants a duration such as 10s, found the number 1 (write the unit: 1s)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if got := at.At("name"); got != (Position{Line: 6, Column: 7}) {
		t.Errorf("name is at %+v", got)
	}
}

func TestDecodeAll(t *testing.T) {
	const text = "---\n---\na: yes\n--- # comment\nb: 1.0\n...\n---\nc: [0644, 1e3, 1.5]\non: 010\n"
	got, err := DecodeAll[map[string]any]("f.yaml", []byte(text), Kubernetes())
	want := []map[string]any{
		{"a": true}, {"b": int64(1)}, {"c": []any{int64(420), int64(1000), 1.5}, "true": int64(8)},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if got, err := DecodeAll[map[string]any]("f.yaml", nil); err != nil || len(got) != 0 {
		t.Errorf("an empty file: %v, %v", got, err)
	}
	_, err = DecodeAll[any]("f.yaml", []byte("a: {1: x, 0x1: y}\n"), Kubernetes())
	if want := `f.yaml:1:11: a: the key 0x1 stands here a second time: it is read as "1"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = DecodeAll[map[string]any]("f.yaml", []byte("a: 1\n---\n- b\n---\nc\n"))
	wantErr := "f.yaml:3:1: wants a mapping, found a list\nf.yaml:5:1: wants a mapping, found the text \"c\""
	if err == nil || err.Error() != wantErr {
		t.Errorf("got %v, want %s", err, wantErr)
	}
}

func TestOrdered(t *testing.T) {
	o := Ordered[int]{{"b", 1}, {"a", 2}}
	if v, ok := o.Get("a"); v != 2 || !ok {
		t.Errorf("Get(a) = %v, %v", v, ok)
	}
	if _, ok := o.Get("c"); ok {
		t.Error("Get(c) found something")
	}
}
