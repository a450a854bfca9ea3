package kubeburner

import (
	"fmt"
	"testing"
)

// A configuration of kube-burner-ocp has its values, and any other name none.
func TestOCP(t *testing.T) {
	for _, tt := range []struct {
		file, name string
		value, ask string
	}{
		{"cluster-density-v2.yml", "QPS", "20", ""},
		{"config/cluster-density-v2/cluster-density-v2.yml", "POD_READY_THRESHOLD", "2m0s", ""},
		{"cluster-density-v2.yml", "JOB_ITERATIONS", "<nil>", "it is --iterations there"},
		{"node-density.yml", "CHURN_MODE", "objects", ""}, // its own
		{"node-density-cni.yml", "POD_READY_THRESHOLD", "1m0s", ""},
		{"node-density-cni.yml", "ITERATIONS_PER_NAMESPACE", "1000", ""}, // as node-density has it
		{"network-policy.yml", "JOB_ITERATIONS", "10", ""},
		{"kubelet-density.yml", "QPS", "<nil>", ""},
	} {
		values, asks := OCP(tt.file)
		if got := fmt.Sprint(values[tt.name]); got != tt.value || asks[tt.name] != tt.ask {
			t.Errorf("%s: %s is %s (%s), want %s (%s)", tt.file, tt.name, got, asks[tt.name], tt.value, tt.ask)
		}
	}
	if values, _ := OCP("pvc-density.yml"); values["QPS"] != "20" || values["CHURN_PERCENT"] != int64(10) || values["PPROF"] != false {
		t.Errorf("the values have other types: %v", values)
	}
}
