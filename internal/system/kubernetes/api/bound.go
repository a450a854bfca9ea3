package api

import (
	"fmt"
	"io"
	"net/http"
)

// maxBody bounds the body of an answer. The largest that a cluster has is a list of
// 5,000 nodes, each with the names of 50 images: 80 MB.
const maxBody = 128 << 20

// LargeError says that a server's answer has more bytes than are read of one. The next
// would be as large.
type LargeError struct {
	Path string // of the request
}

func (e *LargeError) Error() string {
	return fmt.Sprintf("the answer to %s is larger than %d MiB: no more of it is read", e.Path, maxBody>>20)
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
		return 0, &LargeError{b.path}
	}
	return n, err
}
