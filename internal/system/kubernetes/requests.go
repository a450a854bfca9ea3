package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

// requestFamily is the API server's histogram of answered requests.
const requestFamily = "apiserver_request_duration_seconds"

// requests returns the API server's histograms of all requests since its start, by verb and resource,
// from any client.
func requests(ctx context.Context, c *api.Client) ([]*record.ComponentHistogram, error) {
	metrics, err := c.Typed.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	return requestsIn(metrics)
}

// requestsIn reads the histograms from metrics text. It leaves out watches, which last, and leases, which
// are not load.
func requestsIn(metrics []byte) ([]*record.ComponentHistogram, error) {
	var own []byte // the few lines of interest among megabytes
	for line := range bytes.Lines(metrics) {
		if bytes.HasPrefix(bytes.TrimPrefix(line, []byte("# TYPE ")), []byte(requestFamily)) {
			own = append(own, line...)
		}
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(own))
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	byName := make(map[string]*record.ComponentHistogram)
	var list []*record.ComponentHistogram
	for _, m := range families[requestFamily].GetMetric() {
		of := make(map[string]string)
		for _, l := range m.GetLabel() {
			of[l.GetName()] = l.GetValue()
		}
		verb, resource := of["verb"], of["resource"]
		if resource == "" || resource == "leases" || slices.Contains([]string{"WATCH", "WATCHLIST", "CONNECT"}, verb) {
			continue
		}
		if of["subresource"] != "" {
			resource += "/" + of["subresource"]
		}
		name := verb + " " + resource
		h := byName[name]
		if h == nil {
			h = &record.ComponentHistogram{Source: record.SourceRequests, Name: name}
			byName[name], list = h, append(list, h)
		}
		addTo(h, m.GetHistogram())
	}
	return list, nil
}

// addTo adds a published histogram to one with the same buckets.
func addTo(h *record.ComponentHistogram, more *dto.Histogram) {
	h.Count, h.Sum = h.Count+more.GetSampleCount(), h.Sum+more.GetSampleSum()
	at := 0
	for _, b := range more.GetBucket() {
		if b.GetUpperBound() > 1e300 {
			continue
		}
		if at == len(h.Bounds) {
			h.Bounds, h.Counts = append(h.Bounds, b.GetUpperBound()), append(h.Counts, 0)
		}
		h.Counts[at] += b.GetCumulativeCount()
		at++
	}
}
