package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"plimsoll.dev/plimsoll/internal/text/redact"
)

// masking masks secrets in the server's errors, which are printed and recorded. It bounds all answers.
type masking struct{ wrapped }

const maxError = 1 << 20 // bounds the text of an error that is read

// RoundTrip implements http.RoundTripper.
func (m masking) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := m.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusBadRequest {
		return bounded(r, response), nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxError))
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	if masked, contentType := maskError(body); contentType != "" {
		body = masked
		response.Header.Set("Content-Type", contentType)
		response.Header.Set("Content-Length", strconv.Itoa(len(body)))
		response.ContentLength = int64(len(body))
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// maskError masks an error's body. The content type is "" where it needs no masking.
func maskError(body []byte) (masked []byte, contentType string) {
	text := redact.Message(string(body))
	if text == string(body) {
		return body, ""
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	status, is := object.(*metav1.Status)
	if err != nil || !is {
		return []byte(text), "text/plain"
	}
	status.Message = redact.Message(status.Message)
	if status.Details != nil {
		for i := range status.Details.Causes {
			status.Details.Causes[i].Message = redact.Message(status.Details.Causes[i].Message)
		}
	}
	if masked, err = json.Marshal(status); err != nil {
		return []byte(text), "text/plain"
	}
	return masked, "application/json"
}

// wrapped holds the transport below another, with the methods that all wrappers need.
type wrapped struct{ next http.RoundTripper }

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (w wrapped) WrappedRoundTripper() http.RoundTripper { return w.next }

// CloseIdleConnections closes the idle connections of the transport below; http.Client calls it.
func (w wrapped) CloseIdleConnections() {
	if below, ok := w.next.(interface{ CloseIdleConnections() }); ok {
		below.CloseIdleConnections()
	}
}

// maxBody bounds an answer's body: 5,000 nodes with the names of 50 images each are 80 MB.
const maxBody = 128 << 20

// LargeError says that an answer is too large to read. A repeated request would get the same.
type LargeError struct {
	Path string // of the request
	What string // what is too large, after "the answer to PATH"
}

func (e *LargeError) Error() string {
	return fmt.Sprintf("the answer to %s %s: no more of it is read", e.Path, e.What)
}

// maxValues bounds the values of a decoded answer: an object of three bytes takes a thousand.
const maxValues = 4_000_000

// crowded reports whether an answer has too many values: all of JSON, or a twentieth as many items.
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

// bounded limits an answer's body, unless it is endless, as a watch is, whose reader bounds messages.
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
