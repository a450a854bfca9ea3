package load

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http2"
)

// exchange makes the request under way by HTTP/2, and tells of the answer as if it
// had been read.
func (c *conn) exchange() error {
	request := &http.Request{
		Method: c.plan.Method, Host: c.plan.Hosts[c.host].Name, Proto: "HTTP/2.0", ProtoMajor: 2,
		URL:    &url.URL{Scheme: "https", Host: c.plan.Hosts[c.host].Name, Path: c.plan.Path},
		Header: http.Header{"User-Agent": {"plimsoll"}, "Accept": {"*/*"}},
	}
	if c.plan.Header > 0 {
		request.Header.Set("X-Load", strings.Repeat("h", c.plan.Header))
	}
	if c.plan.Body > 0 {
		request.Body = io.NopCloser(io.LimitReader(letters{}, int64(c.plan.Body)))
		request.ContentLength = int64(c.plan.Body)
	}
	response, err := c.framed.RoundTrip(request)
	if err != nil {
		return ended(err)
	}
	defer response.Body.Close()
	a := &c.answer
	a.started, a.Status = true, response.StatusCode
	for {
		n, err := response.Body.Read(c.buf)
		a.body(c.buf[:n])
		if errors.Is(err, io.EOF) {
			a.state = complete
			// It said that it takes no more.
			a.Close = !c.framed.CanTakeNewRequest()
			return nil
		}
		if err != nil {
			return ended(err)
		}
	}
}

// ended is an error of a connection that was ended in order as what it would be by
// HTTP/1.1.
func ended(err error) error {
	var away http2.GoAwayError
	if errors.As(err, &away) || strings.Contains(err.Error(), "client connection") {
		return errors.Join(io.EOF, err)
	}
	return err
}

// letters is a body without an end.
type letters struct{}

// Read implements io.Reader.
func (letters) Read(p []byte) (int, error) {
	return copy(p, bytes.Repeat([]byte{'b'}, len(p))), nil
}
