package kubeburner

import (
	"fmt"
	"testing"
	"time"
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
		{"virt-migration.yml", "dataVolumeCounters", "[1]", ""}, // a list
		{"ztwim-svid-issuance.yml", "WORKLOAD_RUNTIME", "3600s", ""},
		{"virt-clone.yml", "storageClassName", "<nil>", "it is --storage-class there, or the default one that oc get storageclass prints"},
	} {
		values, asks := OCP(tt.file)
		if got := fmt.Sprint(values[tt.name]); got != tt.value || asks[tt.name] != tt.ask {
			t.Errorf("%s: %s is %s (%s), want %s (%s)", tt.file, tt.name, got, asks[tt.name], tt.value, tt.ask)
		}
	}
	// As it is there: durations are compared with 0, and printed.
	text := "jobs:\n{{ if ne .CHURN_DELAY 0 }}- {name: a, jobPause: {{ .CHURN_DELAY }}}\n{{ end }}{{ if ne .CHURN_DURATION 0 }}- {name: b}\n{{ end }}{{ if .LOCAL_INDEXING }}- {name: c}\n{{ end }}"
	values, _ := OCP("pvc-density.yml")
	if c, err := Parse("pvc-density.yml", []byte(text), Input{UserData: values}); err != nil || len(c.Jobs) != 1 || c.Jobs[0].JobPause != 2*time.Minute {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := Parse("mine.yml", []byte(text), Input{UserData: values}); err == nil {
		t.Error("a text is compared with a number")
	}
	// A text that reads as a duration is printed as it stands.
	runtime := "jobs:\n- {name: 'sleep-{{ .WORKLOAD_RUNTIME }}'}\n"
	values, _ = OCP("ztwim-svid-issuance.yml")
	if c, err := Parse("ztwim-svid-issuance.yml", []byte(runtime), Input{UserData: values}); err != nil || c.Jobs[0].Name != "sleep-3600s" {
		t.Errorf("%+v, %v", c, err)
	}
	values, _ = OCP("pvc-density.yml")
	if values["QPS"] != int64(20) || values["CHURN_PERCENT"] != int64(10) || values["PPROF"] != false {
		t.Errorf("the values have other types: %v", values)
	}
}
