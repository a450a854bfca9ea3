package metrics

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Endpoint is the place where a program publishes metrics.
type Endpoint struct {
	// Job is the program, and Instance one of its processes: both are labels of its series. Labels are
	// further ones, by turns names and values. No two endpoints have all of them in common.
	Job, Instance string
	Labels        []string
	URL           string
	Transport     http.RoundTripper // adds the credentials
	Far           bool              // on another machine: compression then costs less time than sending
}

func (e *Endpoint) name() string {
	if e.Instance == "" || e.Instance == e.Job {
		return e.Job
	}
	return e.Job + " of " + e.Instance
}

// refusedError says that the user may not read an endpoint.
type refusedError struct{ status string }

func (e *refusedError) Error() string { return "answered " + e.status }

// The bounds of an answer.
const (
	mostBody     = 256 << 20 // as it is sent, or once it is decompressed
	mostOfAnswer = 200       // bytes of another answer, in a message
)

// accepted lists the formats. Protobuf costs the publisher half of what text costs.
const accepted = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.9," +
	"text/plain;version=0.0.4;q=0.5,application/openmetrics-text;version=1.0.0;q=0.3"

func (e *Endpoint) read(ctx context.Context, buf *bytes.Buffer, most int64) (contentType string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL, nil)
	if err != nil {
		return "", errors.New("its address is not valid")
	}
	request.Header.Set("Accept", accepted)
	request.Header.Set("User-Agent", "plimsoll")
	request.Header.Set("Accept-Encoding", "identity") // else Go decompresses without a bound
	if e.Far {
		request.Header.Set("Accept-Encoding", "gzip")
	}
	client := http.Client{Transport: e.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		if of, ok := errors.AsType[*url.Error](err); ok {
			err = of.Err // without the address, which may contain a token
		}
		return "", err
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden:
		return "", &refusedError{answer.Status}
	case answer.StatusCode != http.StatusOK:
		return "", errors.New("answered " + answer.Status)
	}
	var body io.Reader = answer.Body
	switch encoding := answer.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		zip, err := gzip.NewReader(io.LimitReader(body, most))
		if err != nil {
			return "", fmt.Errorf("decompress what it answered: %w", err)
		}
		body = zip
	default:
		return "", fmt.Errorf("answered in the encoding %q, which was not asked for", encoding)
	}
	buf.Reset()
	n, err := buf.ReadFrom(io.LimitReader(body, most+1))
	switch {
	case n > most:
		return "", fmt.Errorf("answered more than %d MiB", most>>20)
	case err != nil:
		return "", fmt.Errorf("read what it answered: %w", err)
	}
	contentType = answer.Header.Get("Content-Type")
	media, _, _ := strings.Cut(contentType, ";")
	switch strings.TrimSpace(media) {
	case "application/vnd.google.protobuf", "text/plain", "application/openmetrics-text":
		return contentType, nil
	}
	return "", fmt.Errorf("answered %q, which is not a format of metrics: %q", contentType, buf.Bytes()[:min(buf.Len(), mostOfAnswer)])
}
