package strictyaml

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	kubernetes "k8s.io/apimachinery/pkg/util/yaml"
)

// asKubernetesReads returns the slow twin of DecodeAll with Kubernetes(): the reader
// that Kubernetes itself uses, by way of JSON.
func asKubernetesReads(text string) (any, error) {
	var asJSON json.RawMessage
	if err := kubernetes.UnmarshalStrict([]byte(text), &asJSON); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	return withNumbers(v), nil
}

func withNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = withNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = withNumbers(v[k])
		}
	}
	return v
}

// writer makes YAML in the many styles that people write it in.
type writer struct {
	*rand.Rand
	strings.Builder
}

func (w *writer) pick(of ...string) string { return of[w.IntN(len(of))] }

func (w *writer) either(a, b int) int {
	if w.IntN(2) == 0 {
		return a
	}
	return b
}

func (w *writer) indent(n int) { w.WriteString(strings.Repeat(" ", n)) }

func (w *writer) endOfLine() {
	if w.IntN(6) == 0 {
		w.WriteString(w.pick(" # c", " #", "  # a: b", "\t# t"))
	}
	w.WriteString("\n")
}

func (w *writer) between(indent int) {
	switch w.IntN(14) {
	case 0:
		w.WriteString("\n")
	case 1:
		w.indent(indent)
		w.WriteString("# com: ment\n")
	case 2:
		w.WriteString("# at the left\n")
	case 3:
		w.WriteString("\n\n")
	}
}

func (w *writer) scalar() string {
	return w.pick("a", "b c", "1", "-5", "+7", "1.5", "1.0", "1e3", "-.5", "0644", "0o17", "0x1F", "0b101", "1_000", "08",
		"9223372036854775807", "9223372036854775808", "true", "False", "no", "y", "Off", "~", "null", "NULL", "''", `""`,
		"x:y", "http://a:80/b?c=d&e", "'q: # r'", `"d\n\"e\" # f"`, "'it''s'", `"\u00e9\x41\t"`, "100m", "a#b", ".x",
		"sha256:ab", "--foo=bar", "-x", "2001-01-01", "12:30", `"{{ .x }}"`, "a,b", "[]", "{}", "[ ]", "{ }", "a{b}", "é",
		"<none>", "a & b", "a*", "=", "x   y", "$(A)", "a|", "key=val", "{a: 1, b: [x, y], c: {d: e}}",
		`[1, 'a', "b", {c: d}]`, `{a: b, "c": 'd'}`, "!!str 5")
}

func (w *writer) key() string {
	return w.pick("a", "b", "app.kubernetes.io/name", `"q k"`, "'s'", "x-y", "k z", "1", "0x10", "true", "on", "_u") +
		w.pick("", "", "2")
}

func (w *writer) block(indent int) {
	w.WriteString(w.pick("|", "|-", "|+", ">", ">-", ">+"))
	w.endOfLine()
	w.indent(indent)
	w.WriteString(w.pick("first\n", "# no comment\n"))
	for range w.IntN(4) {
		switch w.IntN(7) {
		case 0:
			w.WriteString("\n")
		case 1:
			w.indent(indent + 2)
			w.WriteString("more: indented\n")
		default:
			w.indent(indent)
			w.WriteString(w.pick("line one", "key: val", "- item", "# hash", "{ json: 1 }", `"quoted"`, "--- nope", "#!/bin/sh", "trail ", "é", "if [ -f x ]; then") + "\n")
		}
	}
	w.indent(indent)
	w.WriteString(w.pick("end\n", "end\n\n"))
}

func (w *writer) severalLines(indent int) {
	in := strings.Repeat(" ", indent)
	w.WriteString(w.pick(
		"plain one\n"+in+"two\n", "\"dq one\n"+in+"two\"\n", "'sq\n\n"+in+"two'\n", "[a,\n"+in+"b, {c: d},\n"+in+"]\n",
		"{a: 1,\n"+in+"b: 2\n"+in+"}\n", "\n"+in+"next line\n", "\"esc\\\n"+in+"aped\"\n",
		"[\n"+in+"  1,\n"+in+"  2\n"+in+"]\n", "{\n"+in+"\"a\": \"b\",\n"+in+"\"c\": [1,2]\n"+in+"}\n"))
}

func (w *writer) mapping(indent, depth int, inItem bool) {
	for i := range 1 + w.IntN(4) {
		if i > 0 || !inItem {
			w.between(indent)
			w.indent(indent)
		}
		w.WriteString(w.key() + ":")
		switch r := w.IntN(12); {
		case r < 5 || depth <= 0:
			w.WriteString(w.pick(" ", "  ") + w.scalar())
			w.endOfLine()
		case r == 5:
			w.WriteString(" ")
			w.block(indent + 2)
		case r == 6:
			w.WriteString(" ")
			w.severalLines(indent + 2)
		case r < 10:
			w.endOfLine()
			w.mapping(indent+w.either(2, 4), depth-1, false)
		default:
			w.endOfLine()
			w.list(indent+w.either(0, 2), depth-1)
		}
	}
}

func (w *writer) list(indent, depth int) {
	for range 1 + w.IntN(3) {
		w.between(indent)
		w.indent(indent)
		w.WriteString("-")
		switch r := w.IntN(10); {
		case r < 4 || depth <= 0:
			w.WriteString(" " + w.scalar())
			w.endOfLine()
		case r == 4:
			w.WriteString(" ")
			w.block(indent + 2)
		case r == 5:
			w.WriteString(" ")
			w.severalLines(indent + 2)
		case r == 6:
			w.WriteString("\n")
			w.mapping(indent+2, depth-1, false)
		default:
			w.WriteString(" ")
			w.mapping(indent+2, depth-1, true)
		}
	}
}

func TestReadsAsKubernetesReads(t *testing.T) {
	compared := 0
	for seed := range uint64(8000) {
		w := &writer{Rand: rand.New(rand.NewPCG(seed, 1))}
		if w.IntN(10) == 0 {
			w.list(0, 1+w.IntN(3))
		} else {
			w.mapping(0, 1+w.IntN(3), false)
		}
		text := w.String()
		want, err := asKubernetesReads(text)
		if err != nil {
			continue // for example a key that came twice
		}
		got, err := DecodeAll[any]("f.yaml", []byte(text), Kubernetes())
		if err != nil {
			t.Fatalf("seed %d: rejected %q: %v", seed, text, err)
		}
		if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Fatalf("seed %d: %q\n got %#v\nwant %#v", seed, text, got, want)
		}
		compared++
	}
	if compared < 2000 {
		t.Errorf("only %d texts were compared", compared)
	}
}
