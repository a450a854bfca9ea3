package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"plimsoll.dev/plimsoll/internal/text/redact"
)

// masking masks secrets in the server's errors, which are printed and recorded. It bounds all answers.
type masking struct{ wrapped }

// maxError bounds the text of an error that is read.
const maxError = 1 << 20

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
