package strictyaml

import (
	"fmt"
	"slices"
)

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
	// Problems say why Root is nil.
	Problems []Problem
	// Text is the document, with \n as the end of every line; Line is its first line in the file.
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
		if len(part.data) > maxDocument {
			docs = append(docs, Document{Problems: []Problem{{
				File: file, Line: part.before + 1, Hint: "write its objects as documents of their own, with --- between them",
				Message: fmt.Sprintf("the document has %d bytes, at most %d are read", len(part.data), maxDocument),
			}}, Line: part.before + 1})
			continue
		}
		root, problems := parsePart(file, part, kept)
		if root != nil || len(problems) > 0 {
			docs = append(docs, Document{root, problems, part.data, part.before + 1})
		}
	}
	return docs, nil
}

// Get follows keys down; it is nil where nothing stands.
func (n *Node) Get(keys ...string) *Node {
	for _, key := range keys {
		e, _ := n.Entry(key)
		n = e.Value
	}
	return n
}

// Entry returns a key of a mapping.
func (n *Node) Entry(key string) (e Entry, ok bool) {
	if n == nil {
		return e, false
	}
	i := slices.IndexFunc(n.Entries, func(e Entry) bool { return e.Key == key })
	if i < 0 {
		return e, false
	}
	return n.Entries[i], true
}

// Value returns a scalar as Kubernetes reads it: nil, bool, int64, uint64 (above int64),
// float64 or string. It returns nil for a list and a mapping.
func (n *Node) Value() any {
	if n.Kind != Scalar {
		return nil
	}
	return n.resolve(true)
}
