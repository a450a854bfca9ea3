package load

import (
	"bufio"
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// feed gives an answer its bytes in pieces of at most so many.
func feed(a *Answer, text string, most int, rng *rand.Rand) (int, error) {
	read := 0
	for read < len(text) && !a.Done() {
		n := min(len(text)-read, 1+rng.IntN(most))
		took, err := a.Feed([]byte(text[read : read+n]))
		read += took
		if err != nil {
			return read, err
		}
		if took < n && !a.Done() {
			break
		}
	}
	return read, nil
}

func TestAnswers(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for _, c := range []struct {
		why, text     string
		head          bool
		status        int
		body          int64
		close, wrong  bool
		done, bad, at bool // at: it is whole at the connection's end alone
	}{
		{why: "a page", text: "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage", status: 200, body: 4, done: true},
		{why: "names in capitals, spaces about the value", text: "HTTP/1.1 200 OK\r\nCONTENT-LENGTH:   4  \r\n\r\npage", status: 200, body: 4, done: true},
		{why: "another begin of the body", text: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npagf", status: 200, body: 4, wrong: true, done: true},
		{why: "the connection ends with it", text: "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", status: 503, close: true, done: true},
		{why: "no length: the connection's end is the end", text: "HTTP/1.1 200 OK\r\n\r\npage", status: 200, body: 4, close: true, at: true},
		{why: "version 1.0", text: "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\npage", status: 200, body: 4, close: true, done: true},
		{why: "version 1.0, kept", text: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\npage", status: 200, body: 4, done: true},
		{why: "chunks, with an extension and a trailer", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\npa\r\n2\r\nge\r\n0\r\nX: y\r\n\r\n", status: 200, body: 4, done: true},
		{why: "a header that is longer than what is kept of a line", text: "HTTP/1.1 200 OK\r\nX-Load: " + long + "\r\nContent-Length: 4\r\n\r\npage", status: 200, body: 4, done: true},
		{why: "the answer to HEAD has no body", text: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", head: true, status: 200, done: true},
		{why: "nothing changed", text: "HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n", status: 304, done: true},
		{why: "another answer comes first", text: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage", status: 200, body: 4, done: true},
		{why: "cut within the body", text: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npa", status: 200, body: 2},
		{why: "cut within the head", text: "HTTP/1.1 200 OK\r\nContent-", status: 200},
		{why: "TLS where none was asked for", text: "\x15\x03\x01\x00\x02\x02\x46\n", bad: true},
		{why: "no status", text: "HTTP/1.1 abc OK\r\n\r\n", bad: true},
		{why: "a chunk of no size", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxy\r\n", status: 200, bad: true},
	} {
		for _, most := range []int{1, 7, 1 << 16} {
			var a Answer
			a.Reset([]byte("page"), c.head)
			_, err := feed(&a, c.text, most, rand.New(rand.NewPCG(1, uint64(most))))
			if (err != nil) != c.bad {
				t.Errorf("%s, in pieces of %d: %v", c.why, most, err)
				continue
			}
			if a.Done() != c.done {
				t.Errorf("%s, in pieces of %d: whole is %v", c.why, most, a.Done())
			}
			if !c.bad && !c.done && (a.End() == nil) != c.at {
				t.Errorf("%s: whole at the connection's end is %v", c.why, a.Done())
			}
			if !c.bad && (a.Status != c.status || a.Body != c.body || a.Wrong != c.wrong || a.Done() && a.Close != c.close) {
				t.Errorf("%s, in pieces of %d: status %d, body %d, close %v, wrong %v", c.why, most, a.Status, a.Body, a.Close, a.Wrong)
			}
		}
	}
}

// FuzzAnswer holds the reading in pieces against the reading as a whole, and
// what is whole against the standard library.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage", "HTTP/1.1 200 OK\r\n\r\npage",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\npa\r\n0\r\n\r\n", "HTTP/1.0 503 No\r\nConnection: keep-alive\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 200) + "\r\nContent-Length: 1\r\n\r\np",
	} {
		f.Add(text, uint64(1))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		var whole, pieces Answer
		whole.Reset([]byte("page"), false)
		pieces.Reset([]byte("page"), false)
		n, err := whole.Feed([]byte(text))
		m, piecesErr := feed(&pieces, text, 5, rand.New(rand.NewPCG(seed, 1)))
		if (err == nil) != (piecesErr == nil) {
			t.Fatalf("%q: as a whole %v, in pieces %v", text, err, piecesErr)
		}
		if err != nil {
			return
		}
		if n != m || whole.Done() != pieces.Done() || whole.Status != pieces.Status || whole.Body != pieces.Body || whole.Wrong != pieces.Wrong {
			t.Fatalf("%q: as a whole %d bytes, status %d, body %d, in pieces %d bytes, status %d, body %d", text, n, whole.Status, whole.Body, m, pieces.Status, pieces.Body)
		}
		if !whole.Done() || whole.Status < 200 {
			return
		}
		// Where the library finds an answer with a body that is whole, it is the
		// same one. It refuses more than we do.
		response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader([]byte(text))), nil)
		if err != nil {
			return
		}
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode < 200 {
			return
		}
		if strings.Count(strings.ToLower(text), "content-length") > 1 || strings.Contains(strings.ToLower(text), "transfer-encoding") {
			return // which of several counts differs
		}
		if response.StatusCode != whole.Status || int64(len(body)) != whole.Body {
			t.Fatalf("%q: status %d and %d bytes, the library has %d and %d", text, whole.Status, whole.Body, response.StatusCode, len(body))
		}
	})
}

func TestHostsAreDrawnByWeight(t *testing.T) {
	hosts := []Host{{Name: "a.x", Weight: 1}, {Name: "b.x", Weight: 5}, {Name: "c.x", Weight: 0.5}, {Name: "d.x", Weight: 3.5}}
	c, rng := newChooser(weightsOf(hosts, func(h Host) float64 { return h.Weight })), rand.New(rand.NewPCG(1, 2))
	const n = 200_000
	counts := make([]float64, len(hosts))
	for range n {
		counts[c.draw(rng)]++
	}
	for i, h := range hosts {
		if got, want := counts[i]/n, h.Weight/10; got < want*0.97 || got > want*1.03 {
			t.Errorf("%s was drawn in %.4f of all cases, its share is %.4f", h.Name, got, want)
		}
	}
}
