package prepared

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/plan/workload"
)

// A refusal names the parameter that ends it, whoever refuses in which words.
func TestARefusalNamesItsParameter(t *testing.T) {
	load := func(given map[string]string, names ...string) workload.Params {
		w := &workload.Workload{}
		for _, name := range names {
			w.Params = append(w.Params, workload.Param{Name: name, Type: workload.Quantity})
		}
		params, err := w.Resolve(given)
		if err != nil {
			t.Fatal(err)
		}
		return params
	}
	all := []string{"cpuRequest", "cpuLimit", "memoryRequest", "memoryLimit"}
	for _, tt := range []struct {
		why, says string
		given     map[string]string
		names     []string
		want      string
	}{
		{"a policy in its author's words", `pods "canary" is forbidden: ValidatingAdmissionPolicy 'limits' with binding 'limits' denied request: each container needs a memory limit`, nil, all, "--set memoryLimit=64Mi"},
		{"a policy that names no resource", `denied the request: containers must have resource limits`, nil, all, "--set cpuLimit=100m --set memoryLimit=64Mi"},
		{"a policy that wants requests", `denied request: CPU requests are required`, nil, all, "--set cpuRequest=10m"},
		{"a quota lists what it must be told", `pods "a" is forbidden: failed quota: q: must specify limits.cpu for: pause; requests.memory for: pause`, nil, all, "--set cpuLimit=100m --set memoryRequest=16Mi"},
		{"a quota that is used up is helped by no parameter", `exceeded quota: q, requested: limits.memory=64Mi, used: limits.memory=1Gi, limited: limits.memory=1Gi`, nil, all, ""},
		{"Pod Security asks for no resources", `violates PodSecurity "restricted:latest": unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"])`, nil, all, ""},
		{"a value that was given does not do", `maximum memory limit per container is 32Mi`, map[string]string{"memoryLimit": "64Mi"}, all, "change --set memoryLimit= (now 64Mi)"},
		{"a workload without the parameter", `each container needs a memory limit`, nil, nil, "give the workload the parameters memoryLimit, as node-density has them: its containers and the canary follow them"},
		{"something else", `image registry is not allowed`, nil, all, ""},
	} {
		if got := Helps(tt.says, load(tt.given, tt.names...)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}
