package cli

import (
	"fmt"
	"io"
	"time"
)

// Console is where a command says what it does, on standard error.
type Console struct {
	Stderr io.Writer
	// StdoutTerminal reports whether results follow on the same terminal.
	StdoutTerminal bool
	// Width and Height are the terminal's in columns and lines; 0 when there is
	// none.
	Width, Height func() int
	Now           func() time.Time // the wall clock

	screen *screen // nil where nothing is animated
}

// Draw lets standard error be drawn on, which is a terminal.
func (c *Console) Draw(colors bool) {
	c.screen = &screen{w: c.Stderr, width: c.Width, colors: colors}
	c.Stderr = c.screen
}

// logf writes to standard error.
func (c *Console) logf(format string, args ...any) { fmt.Fprintf(c.Stderr, format, args...) }

// waiting says what is waited for.
func (c *Console) waiting() *progressLine { return &progressLine{console: c} }

// waitFor says what is waited for until the returned function is called.
func (c *Console) waitFor(what string) (end func()) {
	l := c.waiting()
	l.show(what)
	return l.end
}
