package prepared

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"plimsoll.dev/plimsoll/internal/plan/workload"
)

// The parameters by which a workload's containers, and the canary's, request
// resources and are limited to them. Each has a value that a small container does
// with, which is told where a cluster wants one.
const (
	paramCPURequest    = "cpuRequest"
	paramCPULimit      = "cpuLimit"
	paramMemoryRequest = "memoryRequest"
	paramMemoryLimit   = "memoryLimit"
	// paramDatabase is what a workload has whose containers need more.
	paramDatabase = "databaseImage"
)

// Resources are what each container requests and is limited to by the parameters of
// a workload; empty where these say nothing.
func (v Variant) Resources() (r corev1.ResourceRequirements) {
	set := func(list *corev1.ResourceList, name corev1.ResourceName, param string) {
		q, err := resource.ParseQuantity(v.Params.Get(param))
		if err != nil {
			return // there is none: what is written there was checked
		}
		if *list == nil {
			*list = make(corev1.ResourceList)
		}
		(*list)[name] = q
	}
	set(&r.Requests, corev1.ResourceCPU, paramCPURequest)
	set(&r.Requests, corev1.ResourceMemory, paramMemoryRequest)
	set(&r.Limits, corev1.ResourceCPU, paramCPULimit)
	set(&r.Limits, corev1.ResourceMemory, paramMemoryLimit)
	return r
}

// quotaWants is how a quota names what it wants to be told of.
var quotaWants = regexp.MustCompile(`(limits|requests)\.(cpu|memory)`)

// Helps is what a user can do about a policy's refusal of a container, by the
// parameters of the workload; "" where nothing is known.
func Helps(says string, params workload.Params) string {
	says = strings.ToLower(says)
	if strings.Contains(says, "exceeded quota") || strings.Contains(says, "violates podsecurity") {
		return ""
	}
	var wanted []string
	add := func(param string) {
		if !slices.Contains(wanted, param) {
			wanted = append(wanted, param)
		}
	}
	for _, m := range quotaWants.FindAllStringSubmatch(says, -1) {
		add(m[2] + strings.TrimSuffix(strings.ToUpper(m[1][:1])+m[1][1:], "s"))
	}
	if len(wanted) == 0 {
		cpu, memory := strings.Contains(says, "cpu"), strings.Contains(says, "memory")
		for _, kind := range []string{"limit", "request"} {
			if !strings.Contains(says, kind+"s") && !strings.Contains(says, kind+" ") && !strings.HasSuffix(says, kind) {
				continue
			}
			if kind == "request" && strings.Contains(says, "denied request") && strings.Count(says, kind) == 1 {
				continue // the API server's own word for what it was asked
			}
			kind = strings.ToUpper(kind[:1]) + kind[1:]
			if cpu || !memory {
				add("cpu" + kind)
			}
			if memory || !cpu {
				add("memory" + kind)
			}
		}
	}
	given, lacking, set := []string{}, []string{}, []string{}
	for _, param := range wanted {
		value, has := params.All()[param]
		switch {
		case !has:
			lacking = append(lacking, param)
		case value != "":
			set = append(set, fmt.Sprintf("--set %s= (now %s)", param, value))
		default:
			given = append(given, "--set "+param+"="+modest(param, params))
		}
	}
	switch {
	case len(given) > 0:
		return strings.Join(given, " ")
	case len(set) > 0:
		return "change " + strings.Join(set, ", ")
	case len(lacking) > 0:
		return "give the workload the parameters " + strings.Join(lacking, ", ") + ", as node-density has them: its containers and the canary follow them"
	}
	return ""
}

// modest is a value that the containers of a workload do with: those of a database
// want more than one that waits.
func modest(param string, params workload.Params) string {
	small := map[string]string{paramCPURequest: "10m", paramCPULimit: "100m", paramMemoryRequest: "16Mi", paramMemoryLimit: "64Mi"}
	if params.Get(paramDatabase) != "" {
		small = map[string]string{paramCPURequest: "20m", paramCPULimit: "500m", paramMemoryRequest: "64Mi", paramMemoryLimit: "256Mi"}
	}
	return small[param]
}
