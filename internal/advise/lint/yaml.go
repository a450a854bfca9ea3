package lint

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

type node = strictyaml.Node

// doc is a document of a YAML or JSON text.
type doc struct {
	text *text
	// templated says that the text has actions of a template in it, or
	// parameters: what has them is not judged.
	templated bool
}

// documents reads a text, and tells all problems of its documents.
func documents(name, data string) ([]strictyaml.Document, []strictyaml.Problem) {
	docs, problems := strictyaml.Documents(name, []byte(data))
	for _, d := range docs {
		problems = append(problems, d.Problems...)
	}
	return docs, problems
}

// single reads a text of one document; its node is nil when it is no such text.
func single(t *text) (root value, problems []strictyaml.Problem) {
	docs, problems := documents(t.name, t.data)
	root.doc = &doc{text: t}
	if len(problems) == 0 && len(docs) == 1 {
		root.node = docs[0].Root
	}
	return root, problems
}

// value is a value of a document, and the path on which it was reached. Its
// node is nil where nothing stands.
type value struct {
	doc  *doc
	node *node
	path string
}

// get follows keys down.
func (v value) get(keys ...string) value {
	for _, key := range keys {
		v.node, v.path = v.node.Get(key), strictyaml.Key(v.path, key)
	}
	return v
}

// items are those of a list; nothing when it is none.
func (v value) items() (all []value) {
	if v.node != nil {
		for i, item := range v.node.Items {
			all = append(all, value{v.doc, item, strictyaml.Index(v.path, i)})
		}
	}
	return all
}

// entries are the keys of a mapping; nothing when it is none.
func (v value) entries() (all []entry) {
	if v.node != nil {
		for _, e := range v.node.Entries {
			all = append(all, v.child(e))
		}
	}
	return all
}

// child is a key of this mapping.
func (v value) child(e strictyaml.Entry) entry {
	return entry{value{v.doc, e.Value, strictyaml.Key(v.path, e.Key)}, e}
}

// entry is a key of a mapping; ok is false when there is none, or it has no
// value.
func (v value) entry(key string) (e entry, ok bool) {
	raw, ok := v.node.Entry(key)
	return v.child(raw), ok && !isNull(raw.Value)
}

// walk goes through all keys of a value, at any depth. visit reports whether to
// go on below one.
func (v value) walk(visit func(entry) bool) {
	for _, item := range v.items() {
		item.walk(visit)
	}
	for _, e := range v.entries() {
		if visit(e) {
			e.walk(visit)
		}
	}
}

// text is a scalar's; "" when it is none, or null.
func (v value) text() string {
	if isNull(v.node) || v.node.Kind != strictyaml.Scalar {
		return ""
	}
	return v.node.Text
}

// integer is a whole number; ok is false when it is none.
func (v value) integer() (n int64, ok bool) {
	if v.node != nil {
		n, ok = v.node.Value().(int64)
	}
	return n, ok
}

func (v value) at() place {
	if v.node == nil {
		return place{text: v.doc.text, line: 1, column: 1, path: v.path}
	}
	return place{text: v.doc.text, line: v.node.Line, column: max(1, v.node.Column), path: v.path}
}

// entryOrSelf is the place of a mapping's key, or that of the mapping when it
// has no such key.
func (v value) entryOrSelf(key string) place {
	if raw, ok := v.node.Entry(key); ok {
		return v.child(raw).keyAt()
	}
	return v.at()
}

// entry is a key of a mapping with its value.
type entry struct {
	value
	raw strictyaml.Entry
}

func (e entry) key() string { return e.raw.Key }

func (e entry) keyAt() place {
	return place{text: e.doc.text, line: e.raw.Line, column: max(1, e.raw.Column), path: e.path}
}

// isNull reports whether a key has no value.
func isNull(n *node) bool {
	return n == nil || n.Kind == strictyaml.Scalar && n.Value() == nil
}

// hole stands for each character of a template's action, so that what is around
// it keeps its place. No file has this character of the private use area.
const hole = "\ue0ff"

// placeholder matches what people write for what is filled in later by hand or
// by a script of their own: $NAME and __NAME__.
var placeholder = regexp.MustCompile(`\$[A-Za-z_(]|__[A-Z][A-Z_]*__`)

// hasHole reports whether a scalar holds something that is filled in later: a
// template's action or a parameter.
func hasHole(text string) bool {
	return strings.Contains(text, "${") || strings.Contains(text, "{{") || strings.Contains(text, hole) || placeholder.MatchString(text)
}

// stringMap reads a mapping of texts, such as labels.
func stringMap(v value) map[string]string {
	m := make(map[string]string)
	for _, e := range v.entries() {
		if e.node.Kind == strictyaml.Scalar {
			m[e.key()] = e.node.Text
		}
	}
	return m
}

// Edits of YAML. They are made of the text itself, so that form and comments
// stay; ok is false wherever the text is not of the plain form that is needed
// to be sure.

// scalarRange is where a scalar stands, with its quotes.
func (v value) scalarRange() (start, end int, ok bool) {
	d, n := v.doc, v.node
	if n == nil || n.Kind != strictyaml.Scalar || n.Aliased || n.Tag != "" || n.Literal {
		return 0, 0, false
	}
	start, ok = d.text.offset(n.Line, n.Column)
	if !ok {
		return 0, 0, false
	}
	rest := d.text.data[start:]
	if n.Plain {
		return start, start + len(n.Text), n.Text != "" && strings.HasPrefix(rest, n.Text)
	}
	for _, quote := range []string{`"`, `'`} {
		// What needs escapes is left to a person.
		if strings.HasPrefix(rest, quote+n.Text+quote) && !strings.ContainsAny(n.Text, `\"'`) {
			return start, start + len(n.Text) + 2, true
		}
	}
	return 0, 0, false
}

// replace writes another value in place of a scalar, in its quotes.
func (v value) replace(with string) []edit {
	start, end, ok := v.scalarRange()
	if !ok {
		return nil
	}
	if !v.node.Plain {
		start, end = start+1, end-1
	}
	return []edit{{v.doc.text, start, end, with}}
}

// rename writes another key in place of one.
func (e entry) rename(with string) []edit {
	t := e.doc.text
	start, ok := t.offset(e.raw.Line, e.raw.Column)
	if !ok || e.raw.Merged {
		return nil
	}
	rest := t.data[start:]
	if strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, `'`) {
		start, rest = start+1, rest[1:]
	}
	if !strings.HasPrefix(rest, e.key()) || e.key() == "" {
		return nil
	}
	return []edit{{t, start, start + len(e.key()), with}}
}

// block is whole lines that hold one key of a mapping and its value.
type block struct {
	first, last int // lines
	indent      int // of the key
}

// blockOf finds the lines of a key in block style that stands alone at the
// beginning of its line.
func (d *doc) blockOf(e strictyaml.Entry) (b block, ok bool) {
	b, ok = d.extentOf(e)
	line := d.text.line(e.Line)
	// Otherwise it stands behind a dash.
	return b, ok && strings.TrimLeft(line[:min(b.indent, len(line))], " ") == ""
}

// extentOf finds the lines of a key in block style, with what stands before
// the key on its first line: space, and the dashes of items.
func (d *doc) extentOf(e strictyaml.Entry) (b block, ok bool) {
	t := d.text
	indent := e.Column - 1
	first := t.line(e.Line)
	if e.Merged || e.Value.Aliased || indent < 0 || indent >= len(first) || strings.TrimLeft(first[:indent], " -") != "" {
		return block{}, false
	}
	b = block{first: e.Line, last: e.Line, indent: indent}
	isList := e.Value.Kind == strictyaml.List && !e.Value.Flow
	for n := e.Line + 1; n <= len(t.lines); n++ {
		line := t.line(n)
		trimmed := strings.TrimLeft(line, " ")
		if strings.TrimSpace(line) == "" {
			continue
		}
		depth := len(line) - len(trimmed)
		item := isList && depth == indent && (trimmed == "-" || strings.HasPrefix(trimmed, "- "))
		if depth <= indent && !item {
			if strings.HasPrefix(trimmed, "#") && depth == indent && isList && itemFollows(t, n, indent) {
				continue // a comment between items
			}
			break
		}
		b.last = n
	}
	return b, lastLine(e.Value) <= b.last
}

// itemFollows reports whether the next line that is no comment is an item of a
// list at this indentation.
func itemFollows(t *text, n, indent int) bool {
	for n++; n <= len(t.lines); n++ {
		trimmed := strings.TrimLeft(t.line(n), " ")
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		return len(t.line(n))-len(trimmed) == indent && (trimmed == "-" || strings.HasPrefix(trimmed, "- "))
	}
	return false
}

// lastLine is the last line on which some part of a value begins.
func lastLine(n *node) int {
	last := n.Line
	for _, item := range n.Items {
		last = max(last, lastLine(item))
	}
	for _, e := range n.Entries {
		if !e.Merged {
			last = max(last, lastLine(e.Value))
		}
	}
	return last
}

// remove takes a key out of a mapping.
func (v value) remove(key string) []edit {
	d, mapping := v.doc, v.node
	entries := mapping.Entries
	i := slices.IndexFunc(entries, func(e strictyaml.Entry) bool { return e.Key == key })
	if i < 0 || mapping.Aliased || entries[i].Merged {
		return nil
	}
	e := entries[i]
	if mapping.Flow {
		return d.removeFromFlow(entries, i)
	}
	if b, ok := d.blockOf(e); ok {
		if len(entries) == 1 {
			return nil // an empty mapping would be left, which means something else
		}
		return []edit{{d.text, d.text.lines[b.first-1], d.text.lineEnd(b.last), ""}}
	}
	// The first key behind the dash of an item: the next one takes its place.
	if i+1 < len(entries) && !entries[i+1].Merged && entries[i+1].Column == e.Column && i == 0 {
		start, ok := d.text.offset(e.Line, e.Column)
		end, ok2 := d.text.offset(entries[i+1].Line, entries[i+1].Column)
		if ok && ok2 && e.Value.Kind == strictyaml.Scalar && entries[i+1].Line == e.Line+1 && !e.Value.Aliased &&
			!strings.Contains(d.text.data[start:end], "#") {
			return []edit{{d.text, start, end, ""}}
		}
	}
	return nil
}

// removeFromFlow takes a key out of braces.
func (d *doc) removeFromFlow(entries []strictyaml.Entry, i int) []edit {
	offset := func(e strictyaml.Entry) (int, bool) {
		if e.Merged {
			return 0, false
		}
		return d.text.offset(e.Line, e.Column)
	}
	start, ok := offset(entries[i])
	if !ok {
		return nil
	}
	if i+1 < len(entries) {
		end, ok := offset(entries[i+1])
		if !ok || end < start || strings.Contains(d.text.data[start:end], "#") {
			return nil
		}
		return []edit{{d.text, start, end, ""}}
	}
	if i == 0 {
		return nil
	}
	// The last one goes with the comma before it.
	end, closed := flowEnd(d.text.data, start)
	comma := strings.LastIndexByte(d.text.data[:start], ',')
	if !closed || comma < 0 || strings.TrimSpace(d.text.data[comma+1:start]) != "" {
		return nil
	}
	return []edit{{d.text, comma, end, ""}}
}

// flowEnd is where a key and its value end inside of braces: before the comma
// or the brace that follows, and the space before that.
func flowEnd(data string, at int) (end int, ok bool) {
	depth := 0
	var quote byte
	for i := at; i < len(data); i++ {
		c := data[i]
		switch {
		case quote != 0:
			if c == '\\' && quote == '"' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '"', c == '\'':
			quote = c
		case c == '#':
			return 0, false
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']', c == ',':
			if depth == 0 {
				return at + len(strings.TrimRight(data[at:i], " \t\r\n")), true
			}
			if c != ',' {
				depth--
			}
		}
	}
	return 0, false
}

// moveEntry takes a key out of one mapping and puts it at the end of another.
// child is the key of the target on whose way the key stands, or "" when the
// target is elsewhere: it then goes behind the target's last key.
func (v value) moveEntry(key string, to *node, child string) []edit {
	d, from := v.doc, v.node
	e, ok := from.Entry(key)
	if !ok || from.Flow || to.Flow || to.Aliased || len(to.Entries) == 0 || to.Get(key) != nil {
		return nil
	}
	moved, ok := d.blockOf(e)
	if !ok {
		return nil
	}
	removed := v.remove(key)
	if removed == nil {
		return nil
	}
	entries := to.Entries
	behind := entries[len(entries)-1]
	if child != "" {
		if behind, ok = to.Entry(child); !ok {
			return nil
		}
	}
	target, ok := d.extentOf(behind)
	if !ok {
		return nil
	}
	end := target.last
	var b strings.Builder
	if last := d.text.lineEnd(end); last == len(d.text.data) && !strings.HasSuffix(d.text.data, "\n") {
		b.WriteByte('\n')
	}
	shift := behind.Column - 1 - moved.indent
	for n := moved.first; n <= moved.last; n++ {
		line := d.text.data[d.text.lines[n-1]:d.text.lineEnd(n)]
		if strings.TrimSpace(line) == "" {
			b.WriteString(line)
			continue
		}
		if shift >= 0 {
			b.WriteString(strings.Repeat(" ", shift))
		} else {
			if strings.TrimLeft(line[:min(-shift, len(line))], " ") != "" {
				return nil
			}
			line = line[-shift:]
		}
		b.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			b.WriteByte('\n')
		}
	}
	at := d.text.lineEnd(end)
	if removed[0].start < at && at < removed[0].end {
		return nil
	}
	return append(removed, edit{d.text, at, at, b.String()})
}

// decoded is what a value holds in base64, as a text of its own.
func (v value) decoded(name string) (t *text, ok bool) {
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(v.text()), ""))
	if err != nil || v.node == nil {
		return nil, false
	}
	return v.holding(name, string(data)), true
}

// holding is a text that a value holds in another form.
func (v value) holding(name, data string) *text {
	start, _ := v.doc.text.offset(v.node.Line, max(1, v.node.Column))
	t := v.doc.text.inner(start, start, name, data)
	t.snippet, t.inside = false, name
	return t
}

// literal is the text of a scalar that is written as a block of lines; ok is
// false for all others.
func (v value) literal(name string) (t *text, ok bool) {
	d, n := v.doc, v.node
	if n == nil || !n.Literal || n.Aliased {
		return nil, false
	}
	first := n.Line + 1
	indent := ""
	last := n.Line
	for i := first; i <= len(d.text.lines); i++ {
		line := d.text.line(i)
		if strings.TrimSpace(line) == "" {
			continue
		}
		if indent == "" {
			if indent = line[:len(line)-len(strings.TrimLeft(line, " "))]; indent == "" {
				return nil, false
			}
		}
		if !strings.HasPrefix(line, indent) {
			break
		}
		last = i
	}
	if indent == "" {
		return nil, false
	}
	t = d.text.indented(d.text.lines[first-1], d.text.lineEnd(last), indent, name)
	// An indicator such as |2 keeps spaces of the first line.
	return t, strings.TrimRight(strings.ReplaceAll(t.data, "\r\n", "\n"), "\n") == strings.TrimRight(n.Text, "\n")
}
