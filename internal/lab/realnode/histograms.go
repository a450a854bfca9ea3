package realnode

import (
	"fmt"
	"io"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Histogram is a histogram of how long something took that a program of the
// node publishes, since that program was started.
type Histogram struct {
	// Name says what: as the program's own label, or in words where it has none.
	Name  string
	Count uint64
	Sum   float64 // seconds
	// Counts are how many took at most so many seconds, by Bounds, which rise.
	// Those that took longer than the last are in Count alone.
	Bounds []float64
	Counts []uint64
}

// histograms are the kubelet's that tell of a pod's start and end: how each is
// called here, the label that tells them apart, and which of its values are of
// use, all if none is named.
type histogram struct {
	metric, name, label string
	values              []string
}

func kubeletHistograms() []histogram {
	return []histogram{
		{"kubelet_pod_start_duration_seconds", "pod start, from when it was first seen", "", nil},
		{"kubelet_pod_start_sli_duration_seconds", "pod start since its creation, without pulling images", "", nil},
		{"kubelet_pod_worker_start_duration_seconds", "wait for a worker", "", nil},
		{"kubelet_pod_worker_duration_seconds", "worker: ", "operation_type", []string{"create"}},
		{"kubelet_run_podsandbox_duration_seconds", "sandbox of runtime ", "runtime_handler", nil},
		{"kubelet_runtime_operations_duration_seconds", "", "operation_type", []string{
			"run_podsandbox", "pull_image", "create_container", "start_container", "stop_container", "stop_podsandbox", "remove_container", "remove_podsandbox"}},
		{"kubelet_pleg_relist_duration_seconds", "relist of all pods", "", nil},
	}
}

// KubeletHistograms reads from a kubelet's metrics, in Prometheus' text format,
// how long its work and the runtime's took.
func KubeletHistograms(metrics io.Reader) ([]Histogram, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(metrics)
	if err != nil {
		return nil, fmt.Errorf("read the kubelet's metrics: %w", err)
	}
	var list []Histogram
	for _, h := range kubeletHistograms() {
		for _, m := range families[h.metric].GetMetric() {
			value := labelValue(m, h.label)
			if m.GetHistogram() == nil || len(h.values) > 0 && !slices.Contains(h.values, value) {
				continue
			}
			if h.label == "runtime_handler" && value == "" {
				value = "(default)"
			}
			d := Histogram{Name: h.name + value, Count: m.Histogram.GetSampleCount(), Sum: m.Histogram.GetSampleSum()}
			for _, b := range m.Histogram.GetBucket() {
				if bound := b.GetUpperBound(); bound < 1e300 {
					d.Bounds, d.Counts = append(d.Bounds, bound), append(d.Counts, b.GetCumulativeCount())
				}
			}
			list = append(list, d)
		}
	}
	return list, nil
}

func labelValue(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
