package screen

import (
	"fmt"
	"testing"

	"plimsoll.dev/plimsoll/internal/test/terminal"
)

// Text goes above the picture, which is drawn in place, and nothing of it is
// left once it is taken away.
func TestTheScreenIsDrawnInPlace(t *testing.T) {
	out := &terminal.Emulator{}
	s := &screen{w: out, width: func() int { return 12 }}
	is := func(want string) {
		t.Helper()
		if out.String() != want {
			t.Fatalf("on the terminal is\n%s\nwant\n%s", out, want)
		}
	}
	s.draw([]line{{{"one", red}}, {{"a line too long", plain}}})
	is("one\na line too…\n")
	fmt.Fprintf(s, "above\n")
	is("above\none\na line too…\n")
	s.wait("emptying")
	is("above\none\na line too…\nemptying\n")
	s.draw([]line{{{"two", plain}}})
	is("above\ntwo\nemptying\n")
	s.wait("")
	s.draw(nil)
	is("above\n")
	fmt.Fprintf(s, "continue? [y/N] ")
	is("above\ncontinue? [y/N] ")
	if out.HasColor {
		t.Error("a colour was shown that was not allowed")
	}
}
