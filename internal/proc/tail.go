package proc

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// A Tail keeps mostLines lines of at most mostBytes bytes.
const (
	mostLines = 20
	mostBytes = 16 << 10
)

// Tail keeps the last lines that are written to it.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *Tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-mostBytes):]
	return len(text), nil
}

// Lines returns the lines with text, the last one last.
func (t *Tail) Lines() (lines []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range strings.Lines(string(t.text)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-mostLines):]
}

// LogTail returns the end of a program's log for an error message, or why it cannot be read;
// "" without a log.
func LogTail(file string, lines int) string {
	const most = 64 << 10
	f, err := os.Open(file)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		return err.Error()
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	data := make([]byte, min(info.Size(), most))
	n, err := f.ReadAt(data, info.Size()-int64(len(data)))
	if n < len(data) && err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
