package reading

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Node is a part of a document.
type Node = strictyaml.Node

// Doc is a document of a YAML or JSON text.
type Doc struct {
	Text *Text
	// Templated means that the text has parameters or actions of a template. Values with them are not judged.
	Templated bool
}

// Documents reads a text, and returns the problems of all its documents.
func Documents(name, data string) ([]strictyaml.Document, []strictyaml.Problem) {
	docs, problems := strictyaml.Documents(name, []byte(data))
	for _, d := range docs {
		problems = append(problems, d.Problems...)
	}
	return docs, problems
}

// Single reads a text of one document; the root's node is nil for any other text.
func Single(t *Text) (root Value, problems []strictyaml.Problem) {
	docs, problems := Documents(t.Name, t.Data)
	root.Doc = &Doc{Text: t}
	if len(problems) == 0 && len(docs) == 1 {
		root.Node = docs[0].Root
	}
	return root, problems
}

// Value holds a value of a document and its path; its node is nil where the document lacks it.
type Value struct {
	Doc  *Doc
	Node *Node
	Path string
}

// Get follows keys down.
func (v Value) Get(keys ...string) Value {
	for _, key := range keys {
		v.Node, v.Path = v.Node.Get(key), strictyaml.Key(v.Path, key)
	}
	return v
}

// Plain returns the value as JSON has it: maps, lists and scalars.
func (v Value) Plain() any {
	switch {
	case v.Node == nil || v.Node.Kind == strictyaml.Scalar:
		return v.Node.Value()
	case v.Node.Kind == strictyaml.List:
		list := []any{}
		for _, item := range v.Items() {
			list = append(list, item.Plain())
		}
		return list
	}
	mapping := make(map[string]any)
	for _, e := range v.Entries() {
		mapping[e.Key()] = e.Plain()
	}
	return mapping
}

// Items returns the items of a list, nil for any other value.
func (v Value) Items() (all []Value) {
	if v.Node != nil {
		for i, item := range v.Node.Items {
			all = append(all, Value{v.Doc, item, strictyaml.Index(v.Path, i)})
		}
	}
	return all
}

// Entries returns the keys of a mapping, nil for any other value.
func (v Value) Entries() (all []Entry) {
	if v.Node != nil {
		for _, e := range v.Node.Entries {
			all = append(all, v.Child(e))
		}
	}
	return all
}

// Child returns a key of this mapping.
func (v Value) Child(e strictyaml.Entry) Entry {
	return Entry{Value{v.Doc, e.Value, strictyaml.Key(v.Path, e.Key)}, e}
}

// Entry returns a key of a mapping; ok is false if it does not exist or has no value.
func (v Value) Entry(key string) (e Entry, ok bool) {
	raw, ok := v.Node.Entry(key)
	return v.Child(raw), ok && !IsNull(raw.Value)
}

// Walk visits all keys of a value, at any depth. visit reports whether to go on below a key.
func (v Value) Walk(visit func(Entry) bool) {
	for _, item := range v.Items() {
		item.Walk(visit)
	}
	for _, e := range v.Entries() {
		if visit(e) {
			e.Walk(visit)
		}
	}
}

// Text returns the text of a scalar, "" for null and other values.
func (v Value) Text() string {
	if IsNull(v.Node) || v.Node.Kind != strictyaml.Scalar {
		return ""
	}
	return v.Node.Text
}

// Integer returns a whole number; ok is false for other values.
func (v Value) Integer() (n int64, ok bool) {
	if v.Node != nil {
		n, ok = v.Node.Value().(int64)
	}
	return n, ok
}

// At returns the place of the value.
func (v Value) At() Place {
	if v.Node == nil {
		return Place{Text: v.Doc.Text, Line: 1, Column: 1, Path: v.Path}
	}
	return Place{Text: v.Doc.Text, Line: v.Node.Line, Column: max(1, v.Node.Column), Path: v.Path}
}

// EntryOrSelf returns the place of a mapping's key, or of the mapping without that key.
func (v Value) EntryOrSelf(key string) Place {
	if raw, ok := v.Node.Entry(key); ok {
		return v.Child(raw).KeyAt()
	}
	return v.At()
}

// Entry is a key of a mapping with its value.
type Entry struct {
	Value
	Raw strictyaml.Entry
}

// Key returns the key's name.
func (e Entry) Key() string { return e.Raw.Key }

// KeyAt returns the place of the key.
func (e Entry) KeyAt() Place {
	return Place{Text: e.Doc.Text, Line: e.Raw.Line, Column: max(1, e.Raw.Column), Path: e.Path}
}

// IsNull reports whether a key has no value.
func IsNull(n *Node) bool { return n == nil || n.Kind == strictyaml.Scalar && n.Value() == nil }

// Hole replaces each character of a template's action. No file has this character of the private use area.
const Hole = "\ue0ff"

// placeholder matches what people or their scripts fill in later: $NAME and __NAME__.
var placeholder = regexp.MustCompile(`\$[A-Za-z_(]|__[A-Z][A-Z_]*__`)

// HasHole reports whether a scalar has parts that are filled in later: a template's action or a parameter.
func HasHole(text string) bool {
	return strings.Contains(text, "${") || strings.Contains(text, "{{") || strings.Contains(text, Hole) || placeholder.MatchString(text)
}

// StringMap reads a mapping of texts, such as labels.
func StringMap(v Value) map[string]string {
	m := make(map[string]string)
	for _, e := range v.Entries() {
		if e.Node.Kind == strictyaml.Scalar {
			m[e.Key()] = e.Node.Text
		}
	}
	return m
}

// Edits of YAML change the text itself and keep its form. They are nil unless its plain form makes them safe.

// ScalarRange returns the range of a scalar, with its quotes.
func (v Value) ScalarRange() (start, end int, ok bool) {
	d, n := v.Doc, v.Node
	if n == nil || n.Kind != strictyaml.Scalar || n.Aliased || n.Tag != "" || n.Literal {
		return 0, 0, false
	}
	start, ok = d.Text.Offset(n.Line, n.Column)
	if !ok {
		return 0, 0, false
	}
	rest := d.Text.Data[start:]
	if n.Plain {
		return start, start + len(n.Text), n.Text != "" && strings.HasPrefix(rest, n.Text)
	}
	for _, quote := range []string{`"`, `'`} {
		// A person must change what needs escapes.
		if strings.HasPrefix(rest, quote+n.Text+quote) && !strings.ContainsAny(n.Text, `\"'`) {
			return start, start + len(n.Text) + 2, true
		}
	}
	return 0, 0, false
}

// Replace writes another value for a scalar, in its quotes.
func (v Value) Replace(with string) []Edit {
	start, end, ok := v.ScalarRange()
	if !ok {
		return nil
	}
	if !v.Node.Plain {
		start, end = start+1, end-1
	}
	return []Edit{{v.Doc.Text, start, end, with}}
}

// Rename writes another key.
func (e Entry) Rename(with string) []Edit {
	t := e.Doc.Text
	start, ok := t.Offset(e.Raw.Line, e.Raw.Column)
	if !ok || e.Raw.Merged {
		return nil
	}
	rest := t.Data[start:]
	if strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, `'`) {
		start, rest = start+1, rest[1:]
	}
	if !strings.HasPrefix(rest, e.Key()) || e.Key() == "" {
		return nil
	}
	return []Edit{{t, start, start + len(e.Key()), with}}
}

// block is the whole lines of a key of a mapping with its value.
type block struct {
	First, Last int // lines
	indent      int // of the key
}

// BlockOf finds the lines of a key in block style that is alone at the beginning of its line.
func (d *Doc) BlockOf(e strictyaml.Entry) (b block, ok bool) {
	b, ok = d.extentOf(e)
	line := d.Text.Line(e.Line)
	// Otherwise the key is behind a dash.
	return b, ok && strings.TrimLeft(line[:min(b.indent, len(line))], " ") == ""
}

// extentOf finds the lines of a key in block style. Only space and the dashes of items may be before the key.
func (d *Doc) extentOf(e strictyaml.Entry) (b block, ok bool) {
	t := d.Text
	indent := e.Column - 1
	first := t.Line(e.Line)
	if e.Merged || e.Value.Aliased || indent < 0 || indent >= len(first) || strings.TrimLeft(first[:indent], " -") != "" {
		return block{}, false
	}
	b = block{First: e.Line, Last: e.Line, indent: indent}
	isList := e.Value.Kind == strictyaml.List && !e.Value.Flow
	for n := e.Line + 1; n <= len(t.Lines); n++ {
		line := t.Line(n)
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
		b.Last = n
	}
	return b, lastLine(e.Value) <= b.Last
}

// itemFollows reports whether the next line that is not a comment is an item of a list at this indentation.
func itemFollows(t *Text, n, indent int) bool {
	for n++; n <= len(t.Lines); n++ {
		trimmed := strings.TrimLeft(t.Line(n), " ")
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		return len(t.Line(n))-len(trimmed) == indent && (trimmed == "-" || strings.HasPrefix(trimmed, "- "))
	}
	return false
}

func lastLine(n *Node) int {
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

// Remove removes a key from a mapping.
func (v Value) Remove(key string) []Edit {
	d, mapping := v.Doc, v.Node
	entries := mapping.Entries
	i := slices.IndexFunc(entries, func(e strictyaml.Entry) bool { return e.Key == key })
	if i < 0 || mapping.Aliased || entries[i].Merged {
		return nil
	}
	e := entries[i]
	if mapping.Flow {
		return d.removeFromFlow(entries, i)
	}
	if b, ok := d.BlockOf(e); ok {
		if len(entries) == 1 {
			return nil // the empty mapping would mean something else
		}
		return []Edit{{d.Text, d.Text.Lines[b.First-1], d.Text.LineEnd(b.Last), ""}}
	}
	// The first key behind the dash of an item: the next key takes its place.
	if i+1 < len(entries) && !entries[i+1].Merged && entries[i+1].Column == e.Column && i == 0 {
		start, ok := d.Text.Offset(e.Line, e.Column)
		end, ok2 := d.Text.Offset(entries[i+1].Line, entries[i+1].Column)
		if ok && ok2 && e.Value.Kind == strictyaml.Scalar && entries[i+1].Line == e.Line+1 && !e.Value.Aliased &&
			!strings.Contains(d.Text.Data[start:end], "#") {
			return []Edit{{d.Text, start, end, ""}}
		}
	}
	return nil
}

func (d *Doc) removeFromFlow(entries []strictyaml.Entry, i int) []Edit {
	offset := func(e strictyaml.Entry) (int, bool) {
		if e.Merged {
			return 0, false
		}
		return d.Text.Offset(e.Line, e.Column)
	}
	start, ok := offset(entries[i])
	if !ok {
		return nil
	}
	if i+1 < len(entries) {
		end, ok := offset(entries[i+1])
		if !ok || end < start || strings.Contains(d.Text.Data[start:end], "#") {
			return nil
		}
		return []Edit{{d.Text, start, end, ""}}
	}
	if i == 0 {
		return nil
	}
	// The last key goes with the comma before it.
	end, closed := flowEnd(d.Text.Data, start)
	comma := strings.LastIndexByte(d.Text.Data[:start], ',')
	if !closed || comma < 0 || strings.TrimSpace(d.Text.Data[comma+1:start]) != "" {
		return nil
	}
	return []Edit{{d.Text, comma, end, ""}}
}

// flowEnd returns where a key and its value end within braces.
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

// MoveEntry moves a key to the end of another mapping; child is that mapping's key around it, or "".
func (v Value) MoveEntry(key string, to *Node, child string) []Edit {
	d, from := v.Doc, v.Node
	e, ok := from.Entry(key)
	if !ok || from.Flow || to.Flow || to.Aliased || len(to.Entries) == 0 || to.Get(key) != nil {
		return nil
	}
	moved, ok := d.BlockOf(e)
	if !ok {
		return nil
	}
	removed := v.Remove(key)
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
	end := target.Last
	var b strings.Builder
	if last := d.Text.LineEnd(end); last == len(d.Text.Data) && !strings.HasSuffix(d.Text.Data, "\n") {
		b.WriteByte('\n')
	}
	shift := behind.Column - 1 - moved.indent
	for n := moved.First; n <= moved.Last; n++ {
		line := d.Text.Data[d.Text.Lines[n-1]:d.Text.LineEnd(n)]
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
	at := d.Text.LineEnd(end)
	if removed[0].Start < at && at < removed[0].End {
		return nil
	}
	return append(removed, Edit{d.Text, at, at, b.String()})
}

// Decoded returns the text that a value holds in base64.
func (v Value) Decoded(name string) (t *Text, ok bool) {
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(v.Text()), ""))
	if err != nil || v.Node == nil {
		return nil, false
	}
	return v.Holding(name, string(data)), true
}

// Holding returns a text that a value holds in another form.
func (v Value) Holding(name, data string) *Text {
	start, _ := v.Doc.Text.Offset(v.Node.Line, max(1, v.Node.Column))
	t := v.Doc.Text.Inner(start, start, name, data)
	t.Snippet, t.Inside = false, name
	return t
}

// Literal returns the text of a block scalar; ok is false for other values.
func (v Value) Literal(name string) (t *Text, ok bool) {
	d, n := v.Doc, v.Node
	if n == nil || !n.Literal || n.Aliased {
		return nil, false
	}
	first := n.Line + 1
	indent := ""
	last := n.Line
	for i := first; i <= len(d.Text.Lines); i++ {
		line := d.Text.Line(i)
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
	t = d.Text.Indented(d.Text.Lines[first-1], d.Text.LineEnd(last), indent, name)
	// An indicator such as |2 keeps spaces of the first line.
	return t, strings.TrimRight(strings.ReplaceAll(t.Data, "\r\n", "\n"), "\n") == strings.TrimRight(n.Text, "\n")
}
