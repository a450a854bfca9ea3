package strictyaml

import (
	"fmt"
	"strings"
	"testing"
)

// Documents hands out what stands in a file, each part with its place.
func TestDocuments(t *testing.T) {
	text := strings.Join([]string{
		"# a comment",       // 1
		"a: bcd  ",          // 2: spaces behind it
		"b: [x , \"y\" ]",   // 3
		"c:",                // 4
		"- {d: 'e'}",        // 5
		"f: |-",             // 6
		"  one",             // 7
		"  two",             // 8
		"g: &g",             // 9
		"  h: 5",            // 10
		"i: *g",             // 11
		"a: again",          // 12
		"é: ü  # behind it", // 13
		"---",               // 14
		"j: [",              // 15
		"---",               // 16
		"k: true",           // 17
	}, "\n")
	docs, problems := Documents("f.yaml", []byte(text))
	if len(problems) > 0 || len(docs) != 3 {
		t.Fatalf("%d documents, %v", len(docs), problems)
	}
	if docs[1].Root != nil || len(docs[1].Problems) != 1 || docs[1].Problems[0].Line < 15 {
		t.Errorf("the document that cannot be read: %+v", docs[1])
	}
	if got := docs[2].Root.Get("k"); got.Value() != true || got.Line != 17 {
		t.Errorf("the document after it: %v on line %d", got.Value(), got.Line)
	}
	root := docs[0].Root
	for _, c := range []struct {
		why  string
		node *Node
		want string
	}{
		{"spaces behind a scalar do not move it", root.Get("a"), "2:4 bcd"},
		{"an item of a list in brackets", root.Get("b").Items[0], "3:5 x"},
		{"one in quotes", root.Get("b").Items[1], "3:9 y"},
		{"a value in braces", root.Get("c").Items[0].Get("d"), "5:7 e"},
		{"a block of lines", root.Get("f"), "6:4 one\ntwo"},
		{"a number", root.Get("g").Get("h"), "10:6 5"},
		{"the inside of what an alias stands for", root.Get("i").Get("h"), "10:6 5"},
		{"columns are characters", root.Get("é"), "13:4 ü"},
	} {
		if got := fmt.Sprintf("%d:%d %s", c.node.Line, c.node.Column, c.node.Text); got != c.want {
			t.Errorf("%s: %q, want %q", c.why, got, c.want)
		}
	}
	if d := root.Duplicates; len(d) != 1 || d[0].Key != "a" || d[0].Line != 12 {
		t.Errorf("keys that stand twice: %+v", d)
	}
	if !root.Get("i").Aliased || root.Get("g").Aliased {
		t.Error("what is an alias is not told")
	}
	if !root.Get("b").Flow || root.Get("c").Flow || !root.Get("c").Items[0].Flow {
		t.Error("what stands in brackets is not told")
	}
	if !root.Get("f").Literal || root.Get("a").Literal {
		t.Error("what is a block of lines is not told")
	}
	if root.Get("nothing").Get("more") != nil {
		t.Error("a key of nothing is something")
	}
}
