package answer

import (
	"strings"
	"testing"
)

// What was read from a cluster must not move the cursor.
func TestTheTablePrintsNoControlCharacters(t *testing.T) {
	a := NewBuilder("x")
	a.Title = "title\x1b[2J"
	a.Find(Finding{Grade: OK, What: "node \x1b[31mred\r\n"})
	a.Command("echo \x07", "")
	text, err := Render(&a.Answer, "table", 40)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(string(text), "\x1b\r\x07") {
		t.Errorf("%q", text)
	}
}
