package realnode

import (
	"strings"
	"testing"
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
