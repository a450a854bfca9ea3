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

// Resources returns the requests and limits of each container by the workload's parameters, empty without
// these.
func (v Variant) Resources() corev1.ResourceRequirements {
	list := func(kind string) (found corev1.ResourceList) {
		for name, param := range map[corev1.ResourceName]string{corev1.ResourceCPU: "cpu" + kind, corev1.ResourceMemory: "memory" + kind} {
			q, err := resource.ParseQuantity(v.Params.Get(param))
			if err != nil {
				continue // it is empty: other texts were checked
			}
			if found == nil {
				found = make(corev1.ResourceList)
			}
			found[name] = q
		}
		return found
	}
	return corev1.ResourceRequirements{Requests: list("Request"), Limits: list("Limit")}
}

// quotaWants matches the resources that a quota demands.
var quotaWants = regexp.MustCompile(`(limits|requests)\.(cpu|memory)`)

// Helps returns what a user can do about a policy's refusal of a container, by the workload's parameters;
// "" if unknown.
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
				continue // the API server's own words
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

// modest returns a value that is enough for the workload's containers: a database's need more than an
// idle one.
func modest(param string, params workload.Params) string {
	small := map[string]string{"cpuRequest": "10m", "cpuLimit": "100m", "memoryRequest": "16Mi", "memoryLimit": "64Mi"}
	if params.Get("databaseImage") != "" {
		small = map[string]string{"cpuRequest": "20m", "cpuLimit": "500m", "memoryRequest": "64Mi", "memoryLimit": "256Mi"}
	}
	return small[param]
}
