package realnode

import (
	"reflect"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

func TestKubeletDurations(t *testing.T) {
	const metrics = `# TYPE kubelet_runtime_operations_duration_seconds histogram
kubelet_runtime_operations_duration_seconds_bucket{operation_type="run_podsandbox",le="0.1"} 1
kubelet_runtime_operations_duration_seconds_bucket{operation_type="run_podsandbox",le="0.5"} 3
kubelet_runtime_operations_duration_seconds_bucket{operation_type="run_podsandbox",le="+Inf"} 4
kubelet_runtime_operations_duration_seconds_sum{operation_type="run_podsandbox"} 2.5
kubelet_runtime_operations_duration_seconds_count{operation_type="run_podsandbox"} 4
kubelet_runtime_operations_duration_seconds_bucket{operation_type="version",le="+Inf"} 9
kubelet_runtime_operations_duration_seconds_sum{operation_type="version"} 1
kubelet_runtime_operations_duration_seconds_count{operation_type="version"} 9
# TYPE kubelet_run_podsandbox_duration_seconds histogram
kubelet_run_podsandbox_duration_seconds_bucket{runtime_handler="",le="+Inf"} 1
kubelet_run_podsandbox_duration_seconds_sum{runtime_handler=""} 1
kubelet_run_podsandbox_duration_seconds_count{runtime_handler=""} 1
# TYPE kubelet_pleg_relist_duration_seconds counter
kubelet_pleg_relist_duration_seconds 5
# TYPE kubelet_pod_start_duration_seconds histogram
kubelet_pod_start_duration_seconds_bucket{le="+Inf"} 80
kubelet_pod_start_duration_seconds_sum 20
kubelet_pod_start_duration_seconds_count 80
# TYPE process_open_fds gauge
process_open_fds 7
`
	list, err := KubeletHistograms(strings.NewReader(metrics))
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if d := list[0]; d.Name != "sandbox of runtime (default)" || d.Count != 1 || len(d.Bounds) != 0 {
		t.Errorf("a runtime without a name: %+v", d)
	}
	if d := list[1]; d.Name != "run_podsandbox" || d.Count != 4 || d.Sum != 2.5 || len(d.Bounds) != 2 || d.Bounds[1] != 0.5 || d.Counts[0] != 1 || d.Counts[1] != 3 {
		t.Errorf("an operation: %+v", d)
	}
	if _, err := KubeletHistograms(strings.NewReader("no metrics {")); err == nil || !strings.Contains(err.Error(), "the kubelet's metrics") {
		t.Errorf("what is no metrics: %v", err)
	}
	if list, err := KubeletHistograms(strings.NewReader("")); err != nil || len(list) != 0 {
		t.Errorf("no metrics: %v, %v", list, err)
	}
}

func TestCollections(t *testing.T) {
	const metrics = `# HELP apiserver_request_total Many others.
# TYPE apiserver_request_total counter
apiserver_request_total{code="200"} 9
# TYPE go_cpu_classes_gc_mark_idle_cpu_seconds_total counter
go_cpu_classes_gc_mark_idle_cpu_seconds_total 0.5
# TYPE go_cpu_classes_gc_total_cpu_seconds_total counter
go_cpu_classes_gc_total_cpu_seconds_total 2.25
# TYPE go_gc_cycles_total_gc_cycles_total counter
go_gc_cycles_total_gc_cycles_total 7
# TYPE go_gc_duration_seconds summary
go_gc_duration_seconds{quantile="1"} 0.0775
go_gc_duration_seconds_sum 0.11
go_gc_duration_seconds_count 7
# TYPE go_gc_pauses_seconds histogram
go_gc_pauses_seconds_bucket{le="0.0104"} 12
go_gc_pauses_seconds_bucket{le="+Inf"} 14
go_gc_pauses_seconds_sum 0.025
go_gc_pauses_seconds_count 14
`
	want := []Histogram{{Name: record.CollectionPauses, Count: 14, Sum: 0.025, Bounds: []float64{0.0104}, Counts: []uint64{12}}, {Name: record.CollectionCPU, Count: 7, Sum: 1.75}}
	if list, err := Collections([]byte(metrics)); err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := Collections([]byte("no metrics {")); err != nil || len(list) != 0 {
		t.Errorf("a program of another language: %+v, %v", list, err)
	}
}
