// Package screen shows on standard error how a command proceeds: in lines, or in a
// picture that is drawn over on a terminal.
package screen

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"plimsoll.dev/plimsoll/internal/text/redact"
)

// screen is a terminal with a picture at its end, which is drawn over and over.
// Text that is written goes above the picture. The cursor stays visible, below
// the picture and at the start of a line: however the program ends, the
// terminal is as a shell wants it.
type screen struct {
	mu      sync.Mutex
	w       io.Writer
	width   func() int
	colors  bool
	picture []line
	waiting string // a line below the picture, "" for none
	drawn   int    // lines that are to be drawn over
}

// style is the look of a piece of a line. No information depends on it.
type style string

// The styles, as a terminal's codes.
const (
	plain  style = ""
	bold   style = "1"
	faint  style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// span is a piece of a line.
type span struct {
	text  string
	style style
}

type line []span

// Write writes lines of text above the picture.
func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.erase(&b)
	b.Write(text)
	s.drawn = 0
	if len(text) > 0 && text[len(text)-1] == '\n' {
		s.paint(&b)
	}
	if _, err := io.WriteString(s.w, b.String()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// draw replaces the picture; nil takes it away.
func (s *screen) draw(picture []line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.picture = picture
	s.redraw()
}

// wait replaces what is said to be waited for.
func (s *screen) wait(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = what
	s.redraw()
}

func (s *screen) redraw() {
	var b strings.Builder
	s.erase(&b)
	s.paint(&b)
	io.WriteString(s.w, b.String())
}

// erase goes back to the start of the picture and clears what follows.
func (s *screen) erase(b *strings.Builder) {
	if s.drawn > 0 {
		fmt.Fprintf(b, "\r\x1b[%dA\x1b[J", s.drawn)
	}
}

// paint draws the picture where the cursor is.
func (s *screen) paint(b *strings.Builder) {
	lines := s.picture
	if s.waiting != "" {
		lines = append(append([]line{}, lines...), line{{s.waiting, plain}})
	}
	// A line that filled the last column would make some terminals go on to the
	// next by themselves.
	width := s.width() - 1
	for _, l := range lines {
		b.WriteString(l.fit(width).render(s.colors))
		b.WriteByte('\n')
	}
	s.drawn = len(lines)
}

// render returns the line as a terminal takes it.
func (l line) render(colors bool) string {
	var b strings.Builder
	for _, s := range l {
		if colors && s.style != plain {
			fmt.Fprintf(&b, "\x1b[%sm%s\x1b[0m", s.style, s.text)
		} else {
			b.WriteString(s.text)
		}
	}
	return b.String()
}

// fit returns the line cut to so many columns, 0 or less for no bound, without what
// would steer a terminal.
func (l line) fit(width int) line {
	total := 0
	l = slices.Clone(l)
	for i, s := range l {
		l[i].text = redact.Visible(s.text)
		total += columns(l[i].text)
	}
	cut := width > 0 && total > width
	if cut {
		width-- // for the sign that it was cut
	}
	var fitted line
	used := 0
	for _, s := range l {
		var b strings.Builder
		for _, r := range s.text {
			if !unicode.IsPrint(r) {
				r = ' '
			}
			if used += columns(string(r)); cut && used > width {
				return append(fitted, span{b.String() + "…", s.style})
			}
			b.WriteRune(r)
		}
		fitted = append(fitted, span{b.String(), s.style})
	}
	return fitted
}

// columns returns how wide a text is, with two columns for a character that may take
// so many.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n++
		if r >= 0x2e80 {
			n++
		}
	}
	return n
}

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

// Waiting says what is waited for: on a terminal at once and below any
// picture, elsewhere in a line once it has lasted for waitingSilence. What
// changes all the time, such as a count, is said then too, and every
// plainInterval from there on.
type Waiting struct {
	console *Console

	mu    sync.Mutex
	what  string
	since time.Time // of what
	said  string    // the last what that was said where there is no terminal
	next  time.Time // when something is said there, however new it is
	stop  chan struct{}
}

// waitingSilence is the longest wait without a message about its cause.
const waitingSilence = 2 * time.Second

// Show says what is waited for from now on.
func (l *Waiting) Show(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.what, l.since = what, l.console.Now()
	if l.stop == nil {
		l.next = l.since.Add(waitingSilence)
		l.stop = make(chan struct{})
		go l.keep(l.stop)
	}
	if l.console.screen != nil {
		l.console.screen.wait(what + " ...")
	}
}

// keep says what lasts.
func (l *Waiting) keep(stop chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.last(stop)
		case <-stop:
			return
		}
	}
}

func (l *Waiting) last(stop chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.console.Now()
	took := now.Sub(l.since)
	switch {
	case l.stop != stop:
	case l.console.screen != nil:
		if took >= waitingSilence {
			l.console.screen.wait(fmt.Sprintf("%s ... %s", l.what, took.Round(time.Second)))
		}
	case l.said != l.what && (took >= waitingSilence || !now.Before(l.next)):
		l.said, l.next = l.what, now.Add(plainInterval)
		l.console.Logf("%s ...\n", l.what)
	}
}

// End takes the line away: nothing is waited for.
func (l *Waiting) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop == nil {
		return
	}
	close(l.stop)
	l.stop = nil
	if l.console.screen != nil {
		l.console.screen.wait("")
	}
}
