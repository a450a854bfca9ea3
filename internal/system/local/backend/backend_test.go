package backend

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

func serve(t *testing.T, spec Spec) string {
	t.Helper()
	s, err := New(spec)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() { _ = s.Serve(l) }()
	return l.Addr().String()
}

func TestPages(t *testing.T) {
	for _, size := range []int{1, 5, len(Mark), len(Mark) + 1, 5000} {
		address := serve(t, Spec{PageSize: size, Header: 7})
		r, err := http.Get("http://" + address)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || len(body) != size || !strings.HasPrefix(string(body), string(Begin(size))) || r.Header.Get("X-Load") != "hhhhhhh" {
			t.Errorf("a page of %d: %d bytes, %q, %v", size, len(body), r.Header, err)
		}
	}
}

// Requests that come in one piece, in pieces or with bodies are each answered
// once, in order.
func TestRequestsInPieces(t *testing.T) {
	conn, err := net.Dial("tcp4", serve(t, Spec{PageSize: 10}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := strings.Repeat("x", 9000)
	post := "POST / HTTP/1.1\r\nHost: a\r\ncontent-length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	get := "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("y", 6000) + "\r\n\r\n"
	all := get + post + get + "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"
	go func() {
		for len(all) > 0 {
			n := min(len(all), 1777)
			_, _ = io.WriteString(conn, all[:n])
			all = all[n:]
		}
	}()
	answers := bufio.NewReader(conn)
	for i := range 4 {
		r, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		page, err := io.ReadAll(r.Body)
		if err != nil || len(page) != 10 || r.Close != (i == 3) {
			t.Errorf("answer %d: %d bytes, the last one %v, %v", i, len(page), r.Close, err)
		}
	}
	if _, err := answers.ReadByte(); err != io.EOF {
		t.Errorf("after the last answer: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("GET / HTTP/1.1\r\nContent-Length: 3")
	f.Fuzz(func(t *testing.T, head string) {
		if body, _, ok := parse([]byte(head)); ok && body < 0 {
			t.Errorf("%q: a body of %d bytes", head, body)
		}
	})
}
