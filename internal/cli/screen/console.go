// Package screen shows on standard error how a command proceeds: in lines, or in a
// picture that is drawn over on a terminal.
package screen

import (
	"fmt"
	"io"
	"time"
)

// Console writes a command's progress to standard error.
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

// Logf writes to standard error.
func (c *Console) Logf(format string, args ...any) { fmt.Fprintf(c.Stderr, format, args...) }

// Waiting says what is waited for.
func (c *Console) Waiting() *Waiting { return &Waiting{console: c} }

// WaitFor says what is waited for until the returned function is called.
func (c *Console) WaitFor(what string) (end func()) {
	l := c.Waiting()
	l.Show(what)
	return l.End
}
