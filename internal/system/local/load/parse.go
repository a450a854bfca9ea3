package load

import (
	"bytes"
	"errors"
)

// Answer reads one answer of HTTP/1.1 as its bytes arrive, in pieces of any
// size, and allocates nothing. Its zero value, or one after Reset, waits for the
// first byte.
type Answer struct {
	// Status is the status code, 0 until the status line is read.
	Status int
	// Close says that the connection is of no more use after it.
	Close bool
	// Body is how many bytes of body were read so far. Wrong says that its
	// first bytes are not those that were wanted.
	Body  int64
	Wrong bool

	state   state
	started bool
	length  int64 // of the body that is left, or of the chunk; -1 is until the connection's end
	sized   bool  // a length was given
	chunked bool
	minor   byte // of the version
	want    []byte
	head    bool // there is never a body
	total   int  // bytes of the head so far
	carry   int  // bytes of line that hold the begin of a line
	line    [lineBytes]byte
}

type state uint8

const (
	inStatus state = iota
	inHeader
	inBody
	inChunkSize
	inChunk
	inChunkEnd
	inTrailer
	complete
)

const (
	// lineBytes is how much is kept of a line that arrives in pieces: what
	// matters of one stands in its first bytes.
	lineBytes = 128
	// headBytes bounds an answer's head.
	headBytes = 1 << 20
)

// errAnswer is what is no answer of HTTP/1.1.
var errAnswer = errors.New("not an answer of HTTP/1.1")

// Reset waits for another answer, whose body begins with want. Head says that
// it has no body, whatever length it tells.
func (a *Answer) Reset(want []byte, head bool) {
	line := &a.line
	*a = Answer{want: want, head: head, line: *line}
}

// Started reports whether any byte of the answer has arrived.
func (a *Answer) Started() bool { return a.started }

// Done reports whether all of it has.
func (a *Answer) Done() bool { return a.state == complete }

// Left is how many bytes of the answer are still to come, of a length that it has told; 0
// where it has told none.
func (a *Answer) Left() int64 {
	if a.state != inBody {
		return 0
	}
	return max(a.length, 0)
}

// End takes in the end of the connection: it completes a body whose length
// nobody gave, and is an error in any other.
func (a *Answer) End() error {
	if a.state == inBody && a.length < 0 {
		a.state, a.Close = complete, true
	}
	if a.state != complete {
		return errAnswer
	}
	return nil
}

// Feed takes in bytes and returns how many belong to this answer.
func (a *Answer) Feed(data []byte) (int, error) {
	read := 0
	for read < len(data) && a.state != complete {
		a.started = true
		rest := data[read:]
		switch a.state {
		case inBody, inChunk:
			n := len(rest)
			if a.length >= 0 {
				n = int(min(int64(n), a.length))
				a.length -= int64(n)
			}
			a.body(rest[:n])
			read += n
			if a.length == 0 {
				if a.state == inChunk {
					a.state = inChunkEnd
				} else {
					a.state = complete
				}
			}
		default:
			n := bytes.IndexByte(rest, '\n') + 1
			if n == 0 {
				a.keep(rest)
				read = len(data)
				if a.total += len(rest); a.total > headBytes {
					return read, errAnswer
				}
				continue
			}
			read += n
			if a.total += n; a.total > headBytes {
				return read, errAnswer
			}
			line := rest[:n-1]
			if a.carry > 0 {
				a.keep(line)
				line, a.carry = a.line[:a.carry], 0
			}
			if len(line) > 0 && line[len(line)-1] == '\r' {
				line = line[:len(line)-1]
			}
			if err := a.read(line); err != nil {
				return read, err
			}
		}
	}
	return read, nil
}

// keep keeps the begin of a line.
func (a *Answer) keep(part []byte) {
	a.carry += copy(a.line[a.carry:], part)
}

// body looks at bytes of the body.
func (a *Answer) body(part []byte) {
	if at := a.Body; at < int64(len(a.want)) {
		n := min(len(part), len(a.want)-int(at))
		a.Wrong = a.Wrong || !bytes.Equal(part[:n], a.want[at:int(at)+n])
	}
	a.Body += int64(len(part))
}

// read takes in a line of the head, or of a chunked body.
func (a *Answer) read(line []byte) error {
	switch a.state {
	case inStatus:
		return a.status(line)
	case inHeader:
		if len(line) == 0 {
			a.endHead()
			return nil
		}
		a.header(line)
	case inChunkSize:
		size, ok := hexadecimal(line)
		if !ok {
			return errAnswer
		}
		if a.length, a.state = size, inChunk; size == 0 {
			a.state = inTrailer
		}
	case inChunkEnd:
		if len(line) > 0 {
			return errAnswer
		}
		a.state = inChunkSize
	case inTrailer:
		if len(line) == 0 {
			a.state = complete
		}
	}
	return nil
}

// status reads a status line: HTTP/1.1 200 OK.
func (a *Answer) status(line []byte) error {
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[7] != '0' && line[7] != '1' || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return errAnswer
	}
	code := 0
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return errAnswer
		}
		code = 10*code + int(c-'0')
	}
	if code < 100 {
		return errAnswer
	}
	a.Status, a.minor, a.state = code, line[7], inHeader
	a.Close = a.minor == '0'
	a.sized, a.chunked, a.length = false, false, -1
	return nil
}

// header reads a header of which something follows.
func (a *Answer) header(line []byte) {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		return
	}
	name, value := line[:colon], bytes.TrimSpace(line[colon+1:])
	switch len(name) {
	case len("connection"):
		if equalFold(name, "connection") {
			if equalFold(value, "close") {
				a.Close = true
			} else if equalFold(value, "keep-alive") {
				a.Close = false
			}
		}
	case len("content-length"):
		if equalFold(name, "content-length") {
			if n, ok := decimal(value); ok {
				a.length, a.sized = n, true
			}
		}
	case len("transfer-encoding"):
		if equalFold(name, "transfer-encoding") && equalFold(value, "chunked") {
			a.chunked = true
		}
	}
}

// endHead decides how the body ends.
func (a *Answer) endHead() {
	switch {
	case a.Status < 200 && a.Status != 101:
		a.state, a.Status = inStatus, 0 // the answer itself follows
	case a.head || a.Status == 204 || a.Status == 304 || a.Status == 101:
		a.state = complete
	case a.chunked:
		a.state = inChunkSize
	case a.sized && a.length == 0:
		a.state = complete
	default:
		a.state = inBody
		a.Close = a.Close || !a.sized
	}
}

// equalFold compares with a text in lower case.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// most bounds the lengths that are read.
const most = 1 << 50

func decimal(b []byte) (int64, bool) {
	n := int64(0)
	for _, c := range b {
		if c < '0' || c > '9' || n > most {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, len(b) > 0
}

// hexadecimal reads a chunk's size, which extensions may follow.
func hexadecimal(b []byte) (int64, bool) {
	if i := bytes.IndexByte(b, ';'); i >= 0 {
		b = b[:i]
	}
	b = bytes.TrimRight(b, " \t")
	n := int64(0)
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		if n = 16*n + int64(c); n > most {
			return 0, false
		}
	}
	return n, len(b) > 0
}
