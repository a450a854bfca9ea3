package redact

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestWhatSteersATerminalIsVisible(t *testing.T) {
	for _, tt := range []struct{ why, text, want string }{
		{"plain text, lines and tabs", "a\tb\nc\r\né 漢 …", "a\tb\nc\r\né 漢 …"},
		{"a colour", "\x1b[31mred\x1b[0m", `\u001b[31mred\u001b[0m`},
		{"the title of a window", "\x1b]0;x\x07", `\u001b]0;x\u0007`},
		{"the same by single bytes", "\x9b31m\u009b1m", `\x9b31m\u009b1m`},
		{"a line that is written over", "gone\rseen\x08\x7f", `gone\u000dseen\u0008\u007f`},
		{"an order that is turned", "a\u202eb\u2066c\u200fd\u061c", `a\u202eb\u2066c\u200fd\u061c`},
		{"other ends of lines", "a\u2028b\u2029", `a\u2028b\u2029`},
	} {
		if got := Visible(tt.text); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}

func TestAScreenMasks(t *testing.T) {
	secrets := new(Secrets)
	if _, err := secrets.Hide("x", "mine-alone"); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	s := &Screen{W: &out, Secrets: secrets}
	show := func(text string) string {
		out.Reset()
		fmt.Fprint(s, text)
		return out.String()
	}
	if got := show("Load it with mine-alone (y/N)? "); got != "Load it with (masked) (y/N)? " {
		t.Errorf("a question: %q", got)
	}
	document, _ := json.MarshalIndent(map[string]any{"a": "password=x y", "b": "\x1b\u202e", "list": []string{"mine-alone"}, "password": "z"}, "", "  ")
	var back map[string]any
	if err := json.Unmarshal([]byte(show(string(document)+"\n")), &back); err != nil || back["a"] != "password=(masked) y" || back["b"] != "\x1b\u202e" || back["password"] != Masked {
		t.Errorf("a document: %v, %v", back, err)
	}
	if got := show("{\"a\":\"token=b\"}\n{\"a\":\"password=c\",\"d\":1}\n"); got != "{\"a\":\"token=(masked)\"}\n{\"a\":\"password=(masked)\",\"d\":1}\n" {
		t.Errorf("documents on lines: %q", got)
	}
	// Wherever it is cut into pieces.
	for at := range 200 {
		out.Reset()
		w := bufio.NewWriterSize(s, block)
		fmt.Fprintf(w, "%s mine-alone é\x1b\n", strings.Repeat("x", block-100+at))
		w.Flush()
		if err := s.Flush(); err != nil || strings.Contains(out.String(), "alone") || !strings.HasSuffix(out.String(), "x (masked) é\\u001b\n") {
			t.Fatalf("%d: %v %q", at, err, out.String()[block-110:])
		}
	}
}
