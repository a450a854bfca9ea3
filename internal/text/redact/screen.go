package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Visible writes what would steer a terminal, or turn the order in which text is
// read, as Go and JSON write it: \u001b for Escape. Lines and tabs stay.
func Visible(text string) string {
	if strings.IndexFunc(text, steers) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i, size := 0, 0; i < len(text); i += size {
		var r rune
		switch r, size = utf8.DecodeRuneInString(text[i:]); {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i]) // some terminals take single bytes
		case r == '\r' && strings.HasPrefix(text[i:], "\r\n"), !steers(r):
			b.WriteString(text[i : i+size])
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// VisibleJSON makes the texts of an encoded document visible.
func VisibleJSON(data []byte) []byte {
	return texts(data, func(_ []byte, text string) string { return Visible(text) })
}

// steers reports whether a character does not stand for itself.
func steers(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// Screen is a writer to a terminal or its like: what is written is masked as
// messages are, and steers nothing. A document in JSON stays one.
type Screen struct {
	W       io.Writer
	Secrets *Secrets

	mu   sync.Mutex
	rest []byte // of a line whose end has not been written yet
}

// block is from how much text on without the end of its last line more is to
// come: who writes less, such as a question, wants it shown.
const block = 4096

// Write implements io.Writer.
func (s *Screen) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := data
	if len(s.rest) > 0 {
		text = append(s.rest, data...)
		s.rest = nil
	}
	if end := bytes.LastIndexByte(text, '\n') + 1; len(data) >= block && len(text)-end < 1<<20 {
		s.rest = bytes.Clone(text[end:])
		text = text[:end]
	}
	return len(data), s.show(text)
}

// Flush writes what is held back.
func (s *Screen) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.rest
	s.rest = nil
	return s.show(rest)
}

func (s *Screen) show(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	_, err := io.WriteString(s.W, Visible(s.masked(text)))
	return err
}

func (s *Screen) masked(text []byte) string {
	if json.Valid(text) {
		return string(s.Secrets.JSON(text))
	}
	if bytes.Contains(text, []byte("{")) && bytes.Count(text, []byte("\n")) > 1 {
		// Perhaps a document on each line.
		var b strings.Builder
		for line := range bytes.Lines(text) {
			b.WriteString(s.masked(line))
		}
		return b.String()
	}
	return s.Secrets.Message(string(text))
}
