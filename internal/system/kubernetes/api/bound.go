package api

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxBody bounds an answer's body. The largest in practice lists 5,000 nodes with the names of 50 images
// each: 80 MB.
const maxBody = 128 << 20

// LargeError says that an answer is too large to read. A repeated request would get the same.
type LargeError struct {
	Path string // of the request
	What string // what is too large, after "the answer to PATH"
}

func (e *LargeError) Error() string {
	return fmt.Sprintf("the answer to %s %s: no more of it is read", e.Path, e.What)
}

// maxValues bounds the values of an answer that is decoded whole: an object of three bytes takes a
// thousand in memory.
const maxValues = 4_000_000

// crowded reports whether an answer has more than maxValues values: all of JSON, or a twentieth as many
// items of a list.
func crowded(contentType string, body []byte) bool {
	if !strings.Contains(contentType, "protobuf") {
		return bytes.Count(body, []byte(",")) > maxValues
	}
	raw, err := OpenEnvelope(body)
	items := 0
	for f := range fields(raw, &err) {
		if f.num == 2 {
			items++
		}
	}
	return items > maxValues/20
}

// bounded limits the body of an answer, unless it is endless: a watch, a followed log, or an upgraded
// connection. Their readers bound each message.
func bounded(request *http.Request, response *http.Response) *http.Response {
	query := request.URL.Query()
	if response.StatusCode == http.StatusSwitchingProtocols || query.Has("watch") || query.Has("follow") {
		return response
	}
	response.Body = &boundedBody{response.Body, maxBody, request.URL.Path, response.ContentLength > maxBody}
	return response
}

type boundedBody struct {
	io.ReadCloser
	left int64 // bytes that may still be read
	path string
	over bool // the answer is longer
}

func (b *boundedBody) Read(p []byte) (n int, err error) {
	if !b.over {
		n, err = b.ReadCloser.Read(p)
		b.left -= int64(n)
		b.over = b.left < 0
	}
	if b.over {
		return 0, &LargeError{b.path, fmt.Sprintf("is larger than %d MiB", maxBody>>20)}
	}
	return n, err
}
