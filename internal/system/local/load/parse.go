package load

import (
	"bytes"
	"errors"
	"strconv"
)

// Answer reads an HTTP/1.1 answer in pieces of any size, without allocations, from zero or Reset on.
type Answer struct {
	Status int   // status code, 0 before it is read
	Close  bool  // says that the connection cannot be used again
	Body   int64 // counts the bytes of the body so far. Wrong says that it does not begin as it should
	Wrong  bool

	state   state
	started bool
	length  int64 // rest of the body or chunk; -1 is until the connection's end
	sized   bool  // has a length
	chunked bool
	minor   byte
	want    []byte
	head    bool // answers HEAD, so without a body
	total   int  // bytes of the head so far
	carry   int  // bytes in line of an incomplete line
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
	lineBytes = 128     // kept of a line that arrives in pieces: its first bytes are enough
	headBytes = 1 << 20 // bound on an answer's head
)

var errAnswer = errors.New("not an answer of HTTP/1.1")

// Reset waits for another answer, whose body begins with want; head says that it has none.
func (a *Answer) Reset(want []byte, head bool) {
	line := &a.line
	*a = Answer{want: want, head: head, line: *line}
}

// Started reports whether any byte of the answer has arrived.
func (a *Answer) Started() bool { return a.started }

// Done reports whether the answer is complete.
func (a *Answer) Done() bool { return a.state == complete }

// Left returns the number of bytes still to come, 0 where the answer has no length.
func (a *Answer) Left() int64 {
	if a.state != inBody {
		return 0
	}
	return max(a.length, 0)
}

// End notes the connection's end: it completes a body without a length, and else is an error.
func (a *Answer) End() error {
	if a.state == inBody && a.length < 0 {
		a.state, a.Close = complete, true
	}
	if a.state != complete {
		return errAnswer
	}
	return nil
}

// Feed reads bytes and returns how many belong to this answer.
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
			whole := n > 0
			if !whole {
				n = len(rest)
			}
			read += n
			if a.total += n; a.total > headBytes {
				return read, errAnswer
			}
			if !whole {
				a.keep(rest)
				continue
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

// keep keeps the beginning of a line.
func (a *Answer) keep(part []byte) { a.carry += copy(a.line[a.carry:], part) }

// body compares bytes of the body.
func (a *Answer) body(part []byte) {
	if at := a.Body; at < int64(len(a.want)) {
		n := min(len(part), len(a.want)-int(at))
		a.Wrong = a.Wrong || !bytes.Equal(part[:n], a.want[at:int(at)+n])
	}
	a.Body += int64(len(part))
}

// read reads a line of the head, or of a chunked body.
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
		digits, _, _ := bytes.Cut(line, []byte(";")) // extensions may follow
		size, err := strconv.ParseUint(string(bytes.TrimRight(digits, " \t")), 16, lengthBits)
		if err != nil {
			return errAnswer
		}
		if a.length, a.state = int64(size), inChunk; size == 0 {
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

func (a *Answer) status(line []byte) error {
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[7] != '0' && line[7] != '1' || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return errAnswer
	}
	code, err := strconv.Atoi(string(line[9:12]))
	if err != nil || code < 100 {
		return errAnswer
	}
	a.Status, a.minor, a.state = code, line[7], inHeader
	a.Close = a.minor == '0'
	a.sized, a.chunked, a.length = false, false, -1
	return nil
}

// header reads a header field that matters for the body.
func (a *Answer) header(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	switch {
	case bytes.EqualFold(name, []byte("connection")):
		a.Close = bytes.EqualFold(value, []byte("close")) || a.Close && !bytes.EqualFold(value, []byte("keep-alive"))
	case bytes.EqualFold(name, []byte("content-length")):
		if n, err := strconv.ParseUint(string(value), 10, lengthBits); err == nil {
			a.length, a.sized = int64(n), true
		}
	case bytes.EqualFold(name, []byte("transfer-encoding")) && bytes.EqualFold(value, []byte("chunked")):
		a.chunked = true
	}
}

// endHead decides how the body ends.
func (a *Answer) endHead() {
	switch {
	case a.Status < 200 && a.Status != 101:
		a.state, a.Status = inStatus, 0 // the final answer follows
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

const lengthBits = 50 // bounds lengths in answers: below 2^50
