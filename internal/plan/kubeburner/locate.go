package kubeburner

import (
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Problem describes a fault in the n-th document, from 0, of v at a path such as "spec.ports[0].port", with
// the template's line. For a missing path it locates the innermost existing part.
func (t *Template) Problem(v Vars, n int, path, message string) strictyaml.Problem {
	p := strictyaml.Problem{File: t.name, Path: path, Message: message}
	text, origin, err := executeWithLines(t.compiled, t.text, v.data(), t.funcs)
	if err != nil {
		return p
	}
	docs, _ := strictyaml.Documents(t.name, text)
	if n >= len(docs) || docs[n].Root == nil {
		return p
	}
	from := origin(lineOf(docs[n].Root, path))
	p.Line, p.Text = from.Line, from.Text
	return p
}

// lineOf returns the line of the value at a path below a node.
func lineOf(n *strictyaml.Node, path string) int {
	line := n.Line
	for path != "" && n != nil {
		if strings.HasPrefix(path, "[") {
			index, rest, _ := strings.Cut(path[1:], "]")
			path = strings.TrimPrefix(rest, ".")
			if i, err := strconv.Atoi(index); err == nil {
				if i < 0 || i >= len(n.Items) {
					return line
				}
				n = n.Items[i]
				line = n.Line
				continue
			}
			path = index + strings.TrimSuffix("."+path, ".") // a key with dots
		}
		// A key may have dots: take the longest with which the path begins.
		var best strictyaml.Entry
		found := false
		for _, e := range n.Entries {
			rest, ok := strings.CutPrefix(path, e.Key)
			if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') && (!found || len(e.Key) > len(best.Key)) {
				best, found = e, true
			}
		}
		if !found {
			return line
		}
		n, line, path = best.Value, best.Line, strings.TrimPrefix(path[len(best.Key):], ".")
	}
	return line
}
