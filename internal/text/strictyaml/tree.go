package strictyaml

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds that keep a hostile file from costing more than it is worth. A
// Kubernetes object has at most 1.5 MB and nests some dozens deep.
const (
	maxBytes     = 4 << 20
	maxDepth     = 500
	maxExpansion = 100_000 // nodes that aliases and merge keys may add to those written
)

// Node is a value of a document: what the parser's syntax tree says, with
// aliases and merge keys resolved (aliased parts are shared, so the tree is as
// small as the file).
type Node struct {
	Kind NodeKind // null and the empty text are scalars
	// Line and Column are where the value begins, from 1, in characters; a
	// Column of 0 is unknown. A mapping begins at its first key.
	Line, Column int
	Text         string // of a scalar, without quotes
	Plain        bool   // a scalar without quotes: a null, boolean or number if it reads as one
	Literal      bool   // a scalar of the style |
	Flow         bool   // a list in brackets, a mapping in braces
	Aliased      bool   // stands elsewhere, and here is an alias
	Tag          string // of a scalar: "" or !!str, !!int, !!float, !!bool, !!null
	Items        []*Node
	Entries      []Entry // in their order, those of merge keys last
	Duplicates   []Entry // keys that stand here a second time
	size         int     // nodes of this part when aliases are written out
}

// Entry is a key of a mapping, and its value.
type Entry struct {
	Key string
	// Line and Column are the place of the key, from 1, in characters; 0 is
	// unknown.
	Line, Column int
	Value        *Node
	Merged       bool // from a merge key: a key of the mapping itself wins
	plainKey     bool
}

// parse reads the documents of a file, those without content left out.
func parse(file string, data []byte, twice duplicates) ([]*Node, []Problem) {
	data, problems := normalise(file, data, maxBytes)
	if len(problems) > 0 {
		return nil, problems
	}
	var docs []*Node
	for _, part := range splitDocuments(data) {
		doc, problems := parsePart(file, part, twice)
		if len(problems) > 0 {
			return nil, problems
		}
		if doc != nil {
			docs = append(docs, doc)
		}
	}
	return docs, nil
}

// normalise refuses what is no text, and gives every line the same end.
func normalise(file string, data []byte, most int) ([]byte, []Problem) {
	if len(data) > most {
		return nil, []Problem{{File: file, Message: fmt.Sprintf("the file has %d bytes, at most %d are read", len(data), most)}}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if p, bad := invalidText(file, data); bad {
		return nil, []Problem{p}
	}
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(data, []byte("\r"), []byte("\n")), nil
}

// invalidText finds bytes that no YAML file may hold.
func invalidText(file string, data []byte) (Problem, bool) {
	line := 1
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return Problem{File: file, Line: line, Message: "the line is not valid UTF-8"}, true
		case r == '\n':
			line++
		case r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return Problem{File: file, Line: line, Message: fmt.Sprintf("the line holds the control character %U", r)}, true
		}
		i += n
	}
	return Problem{}, false
}

// part is the text of one document and the line before its first.
type part struct {
	data   []byte
	before int
}

// splitDocuments cuts a stream at its markers, which can stand nowhere else:
// "---" or "..." at the start of a line ends whatever came before it. A part
// begins with its "---". (Splitting here rather than leaving it to the parser
// loses no document: goccy/go-yaml 1.19 drops those that follow an empty one.)
func splitDocuments(data []byte) []part {
	var parts []part
	start, startLine, line := 0, 0, 0
	cut := func(end int) {
		if hasContent(data[start:end]) {
			parts = append(parts, part{data[start:end], startLine})
		}
	}
	for at := 0; at < len(data); line++ {
		end := len(data)
		if n := bytes.IndexByte(data[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		switch text := data[at:end]; {
		case isMarker(text, "---"):
			cut(at)
			start, startLine = at, line
		case isMarker(text, "..."):
			cut(at)
			start, startLine = end, line+1
		}
		at = end
	}
	cut(len(data))
	return parts
}

// hasContent reports whether there is more than space, comments and directives
// (lines such as "%YAML 1.2", which change nothing here).
func hasContent(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, " \t\r\n")
		if len(line) > 0 && line[0] != '%' && bytes.TrimLeft(line, " \t")[0] != '#' {
			return true
		}
	}
	return false
}

func isMarker(line []byte, marker string) bool {
	if !bytes.HasPrefix(line, []byte(marker)) {
		return false
	}
	rest := line[len(marker):]
	return len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0
}

// duplicates says how a repeated key of a mapping is handled.
type duplicates int

const (
	refused  duplicates = iota // a problem
	lastWins                   // as Kubernetes' clients read it
	kept                       // beside the first
)

// parsePart reads one document; nil when it has no content.
func parsePart(file string, p part, twice duplicates) (doc *Node, problems []Problem) {
	defer func() {
		// The parser is known to panic on some malformed text.
		if r := recover(); r != nil {
			doc, problems = nil, []Problem{{File: file, Line: p.before + 1, Message: fmt.Sprintf("the YAML parser failed: %v", r)}}
		}
	}()
	tokens := lexer.Tokenize(string(p.data))
	if at, why := hostile(tokens); at != nil {
		return nil, []Problem{{File: file, Line: p.before + at.Position.Line, Column: at.Position.Column, Message: why}}
	}
	parsed, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, []Problem{syntaxProblem(file, p, err)}
	}
	for _, d := range parsed.Docs {
		if _, directive := d.Body.(*ast.DirectiveNode); d.Body == nil || directive {
			continue
		}
		if doc != nil {
			return nil, []Problem{{File: file, Line: p.before + 1, Message: "the YAML parser found two documents where one was written"}}
		}
		b := &builder{file: file, before: p.before, lines: strings.Split(string(p.data), "\n"), anchors: map[string]*Node{}, twice: twice}
		doc = b.build(d.Body, 0)
		if len(b.problems) > 0 {
			return nil, b.problems
		}
	}
	return doc, nil
}

// syntaxProblem says where the parser stopped.
func syntaxProblem(file string, in part, err error) Problem {
	p := Problem{File: file, Message: "not valid YAML: " + err.Error()}
	e, ok := err.(yaml.Error)
	if !ok {
		return p
	}
	p.Message = "not valid YAML: " + e.GetMessage()
	tk := e.GetToken()
	if tk == nil || tk.Position == nil {
		return p
	}
	p.Line, p.Column = in.before+tk.Position.Line, max(1, tk.Position.Column)
	lines := bytes.Split(in.data, []byte("\n"))
	if i := tk.Position.Line - 1; i >= 0 && i < len(lines) && bytes.Contains(lines[i], []byte("{{")) {
		p.Hint = "a template action {{ }} was left unrendered"
	}
	return p
}

// hostile finds where a text would cost the parser too much, and says why; nil
// is everywhere else. The parser recurses, and a stack that overflows cannot be
// recovered from. Block nesting needs indentation, so it is bounded by the
// square root of the file's size, except for indicators that stand behind each
// other on one line. Keys behind each other on one line are not YAML outside of
// braces, but to find that out costs the parser the square of their number.
func hostile(tokens token.Tokens) (at *token.Token, why string) {
	flow, line, indicators, keys := 0, 0, 0, 0
	for _, tk := range tokens {
		if tk.Position.Line != line {
			line, indicators, keys = tk.Position.Line, 0, 0
		}
		switch tk.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow = max(0, flow-1)
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			indicators++
		case token.MappingValueType:
			if flow == 0 {
				keys++
			}
		}
		switch {
		case flow > maxDepth || indicators > 2*maxDepth:
			return tk, fmt.Sprintf("values nest more than %d deep", maxDepth)
		case keys > maxDepth:
			return tk, "not valid YAML: too many keys on one line"
		}
	}
	return nil, ""
}

// builder turns the parser's tree into nodes.
type builder struct {
	file     string
	before   int
	lines    []string
	anchors  map[string]*Node // nil while the anchored value is being read
	written  int
	added    int // by merge keys
	problems []Problem

	twice duplicates
}

func (b *builder) fail(at ast.Node, found, format string, args ...any) *Node {
	line, column := b.place(at)
	b.problems = append(b.problems, Problem{
		File: b.file, Line: line, Column: column, Found: found, Message: fmt.Sprintf(format, args...),
	})
	return &Node{Kind: Scalar, Line: line, Column: column, Plain: true, size: 1}
}

func (b *builder) place(at ast.Node) (line, column int) {
	tk := at.GetToken()
	if tk == nil || tk.Position == nil {
		return b.before + 1, 0
	}
	return b.before + tk.Position.Line, max(1, tk.Position.Column)
}

// beginning returns the column at which a scalar without quotes begins. The parser's
// own is too far to the right by the spaces that follow the scalar on its line.
func (b *builder) beginning(n *Node) int {
	const longest = 4096 // lines of many scalars are in braces, where that does not happen
	i := n.Line - b.before - 1
	if n.Text == "" || i < 0 || i >= len(b.lines) || len(b.lines[i]) > longest {
		return n.Column
	}
	trailing := len(b.lines[i]) - len(strings.TrimRight(b.lines[i], " "))
	if trailing == 0 {
		return n.Column
	}
	line := []rune(b.lines[i])
	begins := func(column int) bool {
		return column > 0 && column <= len(line) && strings.HasPrefix(string(line[column-1:]), n.Text)
	}
	if !begins(n.Column) && begins(n.Column-trailing) {
		return n.Column - trailing
	}
	return n.Column
}

func (b *builder) build(n ast.Node, depth int) *Node {
	if depth > maxDepth {
		return b.fail(n, "", "values nest more than %d deep", maxDepth)
	}
	b.written++
	line, column := b.place(n)
	built := &Node{Line: line, Column: column, size: 1}
	switch n := n.(type) {
	case *ast.MappingNode:
		built.Kind = Mapping
		b.mapping(built, n.Values, depth)
		if n.IsFlowStyle {
			built.Line, built.Column, built.Flow = line, column, true
		}
	case *ast.MappingValueNode:
		built.Kind = Mapping
		b.mapping(built, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		built.Kind, built.Flow = List, n.IsFlowStyle
		for _, v := range n.Values {
			item := b.build(v, depth+1)
			built.Items = append(built.Items, item)
			built.size += item.size
		}
	case *ast.AnchorNode:
		return b.anchor(n, depth)
	case *ast.AliasNode:
		return b.alias(n)
	case *ast.TagNode:
		return b.tagged(n, depth)
	case *ast.LiteralNode:
		built.Text = n.Value.Value
		built.Literal = n.Start.Type == token.LiteralType
	case *ast.StringNode:
		built.Text = n.Value
		built.Plain = n.Token.Type != token.SingleQuoteType && n.Token.Type != token.DoubleQuoteType
		if built.Plain {
			built.Column = b.beginning(built)
		}
	case *ast.NullNode:
		built.Plain = true
		if n.Token.Type != token.ImplicitNullType {
			built.Text = n.Token.Value
		}
	case ast.ScalarNode:
		// Booleans and numbers: what they are is settled by what they fill.
		built.Text, built.Plain = n.GetToken().Value, true
	default:
		return b.fail(n, "", "a YAML %s cannot stand here", n.Type().YAMLName())
	}
	if built.size > b.written+maxExpansion {
		return b.fail(n, "", "aliases blow this up to %d values", built.size)
	}
	return built
}

func (b *builder) anchor(n *ast.AnchorNode, depth int) *Node {
	name := n.Name.GetToken().Value
	b.anchors[name] = nil
	built := b.build(n.Value, depth+1)
	b.anchors[name] = built
	return built
}

func (b *builder) alias(n *ast.AliasNode) *Node {
	name := n.Value.GetToken().Value
	target, known := b.anchors[name]
	if !known {
		return b.fail(n, "*"+name, "no anchor &%s comes before this alias", name)
	}
	if target == nil {
		return b.fail(n, "*"+name, "the alias *%s stands inside the value that it names", name)
	}
	// A scalar is reported where it is used, the inside of a list or a
	// mapping where it is written.
	used := *target
	used.Line, used.Column = b.place(n)
	used.Aliased = true
	return &used
}

func (b *builder) tagged(n *ast.TagNode, depth int) *Node {
	tag := n.Start.Value
	built := b.build(n.Value, depth+1)
	fits := false
	switch tag {
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!":
		fits = built.Kind == Scalar
	case "!!map":
		fits = built.Kind == Mapping
	case "!!seq":
		fits = built.Kind == List
	default:
		return b.fail(n, tag, "the tag %s means nothing here", tag)
	}
	if !fits {
		return b.fail(n, tag, "the tag %s does not fit %s", tag, built.Describe())
	}
	if built.Kind == Scalar {
		tagged := *built
		tagged.Tag = tag
		tagged.Line, tagged.Column = b.place(n)
		if tag == "!" {
			tagged.Tag = "!!str"
		}
		return &tagged
	}
	return built
}

func (b *builder) mapping(built *Node, values []*ast.MappingValueNode, depth int) {
	at := map[string]int{} // index of a key in built.Entries
	for _, v := range values {
		if v.Key.IsMergeKey() {
			b.merge(built, v.Value, at, depth)
			continue
		}
		key, plain, ok := b.key(v.Key)
		if !ok {
			continue
		}
		line, column := b.place(keyNode(v.Key))
		value := b.build(v.Value, depth+1)
		built.size += value.size
		e := Entry{Key: key, plainKey: plain, Line: line, Column: column, Value: value}
		if i, seen := at[key]; seen {
			if built.Entries[i].Merged {
				built.Entries[i] = e
				continue
			}
			switch b.twice {
			case kept:
				built.Duplicates = append(built.Duplicates, e)
				continue
			case lastWins:
				built.Entries[i] = e
				continue
			}
			b.fail(keyNode(v.Key), key, "the key %q stands here a second time, first on line %d", key, built.Entries[i].Line)
			continue
		}
		at[key] = len(built.Entries)
		built.Entries = append(built.Entries, e)
	}
	if len(built.Entries) > 0 {
		// The parser's own position of a mapping is that of its first colon.
		built.Line, built.Column = built.Entries[0].Line, built.Entries[0].Column
		if len(values) > 0 && values[0].Key.IsMergeKey() {
			built.Line, built.Column = b.place(keyNode(values[0].Key))
		}
	}
}

// merge adds the keys of other mappings that the mapping does not have itself.
func (b *builder) merge(built *Node, value ast.Node, at map[string]int, depth int) {
	failed := len(b.problems)
	from := b.build(value, depth+1)
	if len(b.problems) > failed {
		return
	}
	sources := []*Node{from}
	if from.Kind == List {
		sources = from.Items
	}
	for _, source := range sources {
		if source.Kind != Mapping {
			b.fail(value, "", "a merge key wants a mapping or a list of mappings, found %s", source.Describe())
			return
		}
		b.added += len(source.Entries)
		if b.added > maxExpansion {
			b.fail(value, "", "merge keys add more than %d keys", maxExpansion)
			return
		}
		for _, e := range source.Entries {
			if _, seen := at[e.Key]; seen {
				continue
			}
			e.Merged = true
			at[e.Key] = len(built.Entries)
			built.Entries = append(built.Entries, e)
			built.size += e.Value.size
		}
	}
}

// keyNode returns the key itself, without the "?" that may introduce it.
func keyNode(n ast.Node) ast.Node {
	if k, ok := n.(*ast.MappingKeyNode); ok && k.Value != nil {
		return k.Value
	}
	return n
}

// key returns the text of a mapping's key.
func (b *builder) key(n ast.MapKeyNode) (text string, plain, ok bool) {
	built := b.build(keyNode(n), 0)
	if built.Kind != Scalar {
		b.fail(n, "", "a key must be a scalar, found %s", built.Describe())
		return "", false, false
	}
	return built.Text, built.Plain && built.Tag == "", true
}

// Describe names what stands there, for messages: "a list", "the number 5".
func (n *Node) Describe() string {
	switch n.Kind {
	case List:
		return "a list"
	case Mapping:
		return "a mapping"
	}
	const longest = 40
	text := n.Text
	if utf8.RuneCountInString(text) > longest {
		text = string([]rune(text)[:longest]) + "..."
	}
	switch v := n.resolve(false).(type) {
	case nil:
		return "nothing"
	case bool:
		return strconv.FormatBool(v)
	case int64, uint64, float64:
		return "the number " + text
	}
	return "the text " + strconv.Quote(text)
}
