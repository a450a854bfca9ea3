// Package terminal is a terminal for tests: what is on it after what was written?
package terminal

import (
	"fmt"
	"strings"
)

// Emulator is as much of a terminal as the display needs: what is on it after
// what was written.
type Emulator struct {
	lines    []string
	row      int
	Escapes  int  // that were written
	HasColor bool // something was coloured
}

// Write implements io.Writer.
func (e *Emulator) Write(text []byte) (int, error) {
	if e.lines == nil {
		e.lines = []string{""}
	}
	rest := string(text)
	for rest != "" {
		var n int
		switch {
		case strings.HasPrefix(rest, "\x1b["):
			end := strings.IndexAny(rest, "ABCDHJKhlm")
			e.Escapes++
			switch code := rest[2:end]; rest[end] {
			case 'A':
				fmt.Sscan(code, &n)
				if e.row -= n; e.row < 0 {
					return 0, fmt.Errorf("moved above the first line")
				}
			case 'J':
				e.lines = e.lines[:e.row+1]
				e.lines[e.row] = ""
			case 'm':
				e.HasColor = true
			default:
				return 0, fmt.Errorf("unknown escape %q", rest[:end+1])
			}
			rest = rest[end+1:]
		case rest[0] == '\r':
			rest = rest[1:]
		case rest[0] == '\n':
			if e.row++; e.row == len(e.lines) {
				e.lines = append(e.lines, "")
			}
			rest = rest[1:]
		default:
			end := strings.IndexAny(rest, "\x1b\r\n")
			if end < 0 {
				end = len(rest)
			}
			e.lines[e.row] += rest[:end]
			rest = rest[end:]
		}
	}
	return len(text), nil
}

// String returns the text on the terminal.
func (e *Emulator) String() string { return strings.Join(e.lines, "\n") }
