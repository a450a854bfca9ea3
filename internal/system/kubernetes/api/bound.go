package api

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxBody bounds the body of an answer. The largest that a cluster has is a list of
// 5,000 nodes, each with the names of 50 images: 80 MB.
const maxBody = 128 << 20

// LargeError says that a server's answer has more bytes than are read of one. The next
// would be as large.
type LargeError struct {
	Path string // of the request
	What string // the answer is or has
}

func (e *LargeError) Error() string {
	return fmt.Sprintf("the answer to %s %s: no more of it is read", e.Path, e.What)
}

// maxValues bounds the values of an answer that is decoded whole: an object of three bytes
// takes a thousand in memory.
const maxValues = 4_000_000

// crowded reports whether an answer has more values than that: all of one in JSON, or, at
// a twentieth, the items of a list.
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

// bounded bounds the body of an answer, unless it is one without an end: that of a watch,
// of a log that is followed, or a connection that was upgraded. Who reads those bounds
// each message.
func bounded(request *http.Request, response *http.Response) *http.Response {
	query := request.URL.Query()
	if response.StatusCode == http.StatusSwitchingProtocols || query.Has("watch") || query.Has("follow") {
		return response
	}
	response.Body = &boundedBody{response.Body, maxBody, request.URL.Path, response.ContentLength > maxBody}
	return response
}

// boundedBody is a body of which left bytes may still be read.
type boundedBody struct {
	io.ReadCloser
	left int64
	path string
	over bool // it has more
}

// Read implements io.Reader.
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
