package strictyaml

import "fmt"

// NodeKind tells what a Node is.
type NodeKind int

// The kinds of nodes.
const (
	Scalar NodeKind = iota
	List
	Mapping
)

// Document is one document of a stream.
type Document struct {
	Root *Node
	// Problems are why there is no Root.
	Problems []Problem
	// Text is what was read, with \n as the end of every line; Line is its
	// first line in the file.
	Text []byte
	Line int
}

// Bounds of what Documents reads: what a cluster answers when it is asked for
// thousands of objects. A document costs some 150 times its size.
const (
	maxStream   = 64 << 20
	maxDocument = 8 << 20
)

// Documents answers: what stands in this file, and where? It is for those who
// look at a file without a type that it must fit. A document that cannot be
// read does not keep the others from being read; documents without content are
// left out. Of a key that stands in a mapping twice the first counts, and the
// others are the mapping's Duplicates. The problems are those of the file as a
// whole. file is used in messages only.
func Documents(file string, data []byte) ([]Document, []Problem) {
	data, problems := normalise(file, data, maxStream)
	if len(problems) > 0 {
		return nil, problems
	}
	var docs []Document
	for _, part := range splitDocuments(data) {
		if len(part.text) > maxDocument {
			docs = append(docs, Document{Problems: []Problem{{
				File: file, Line: part.before + 1, Hint: "write its objects as documents of their own, with --- between them",
				Message: fmt.Sprintf("the document has %d bytes, at most %d are read", len(part.text), maxDocument),
			}}, Line: part.before + 1})
			continue
		}
		root, problems := parsePart(file, part, true)
		if root != nil || len(problems) > 0 {
			docs = append(docs, Document{root, problems, part.text, part.before + 1})
		}
	}
	return docs, nil
}

// Kind is what the value is: null and the empty text are scalars.
func (n *Node) Kind() NodeKind { return n.kind }

// Line is the line of the value, from 1. A mapping begins at its first key.
func (n *Node) Line() int { return n.line }

// Column is where in its line the value begins, from 1, in characters; 0 is
// unknown.
func (n *Node) Column() int { return n.column }

// Text is a scalar as written, without its quotes.
func (n *Node) Text() string { return n.text }

// Plain reports whether a scalar has no quotes, so that it may be a null, a
// boolean or a number.
func (n *Node) Plain() bool { return n.plain }

// Literal reports whether a scalar is written as a block of lines (|).
func (n *Node) Literal() bool { return n.literal }

// Flow reports whether a list stands in brackets or a mapping in braces.
func (n *Node) Flow() bool { return n.flow }

// Aliased reports whether the value stands elsewhere, and here is an alias of
// it.
func (n *Node) Aliased() bool { return n.aliased }

// Tagged reports whether a scalar has a tag, such as !!str.
func (n *Node) Tagged() bool { return n.tag != "" }

// Items are the values of a list.
func (n *Node) Items() []*Node { return n.items }

// Entries are the keys of a mapping, in their order, those of merge keys last.
func (n *Node) Entries() []Entry { return n.entries }

// Duplicates are the keys that stand in a mapping a second time.
func (n *Node) Duplicates() []Entry { return n.duplicates }

// Merged reports whether the key comes from a merge key.
func (e Entry) Merged() bool { return e.merged }

// Get is the value of a mapping's key, or nil.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for _, e := range n.entries {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

// Value is what a scalar means to Kubernetes: nil, bool, int64, uint64 (above
// the range of int64), float64 or string; nil for a list and a mapping.
func (n *Node) Value() any {
	if n.kind != Scalar {
		return nil
	}
	return n.resolve(true)
}
