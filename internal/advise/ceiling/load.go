package ceiling

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Load says what a workload asks for, iteration by iteration.
type Load struct {
	Workload     string
	PerNamespace int64 // iterations that share a namespace; 0 is all
	Entries      []Entry
}

// Entry says what one document of one of the workload's templates asks for.
type Entry struct {
	Resource  string // as quotas name it: pods, services, deployments.apps
	Copies    int64  // made at a time
	Every     int64  // in iterations that it divides; 0 is once, with the first
	Namespace string // that the document names, "" for its iteration's
	Pods      int64  // of each object
	Pod       Pod
	ClusterIP bool  // it is a service with an address
	LinkBytes int64 // added to the environment of each container with service links, for each service
}

// Pod says what a pod asks for.
type Pod struct {
	Requests, Limits Amounts
	Containers       int64
	HostNetwork      bool
	ServiceLinks     bool // its containers have environment variables for each service of their namespace
}

// times returns how many of the entry's objects so many iterations make.
func (e Entry) times(iterations int64) int64 {
	if e.Every <= 0 {
		return e.Copies
	}
	return (iterations + e.Every - 1) / e.Every * e.Copies
}

func (l Load) sum(iterations int64, each func(Entry) int64) (n int64) {
	for _, e := range l.Entries {
		if one := each(e); one != 0 {
			n += e.times(iterations) * one
		}
	}
	return n
}

func (l Load) pods(iterations int64) int64 {
	return l.sum(iterations, func(e Entry) int64 { return e.Pods })
}

// namespaces lists the namespaces that the workload uses, "" for its iterations' own.
func (l Load) namespaces() []string {
	set := make(map[string]bool)
	for _, e := range l.Entries {
		set[e.Namespace] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// within is sum for one namespace; "" means the iterations' first, which also gets everything made once.
func (l Load) within(namespace string, each func(Entry) int64) func(iterations int64) int64 {
	return func(iterations int64) int64 {
		if namespace == "" && l.PerNamespace > 0 {
			iterations = min(iterations, l.PerNamespace)
		}
		return l.sum(iterations, func(e Entry) int64 {
			if e.Namespace != namespace {
				return 0
			}
			return each(e)
		})
	}
}

// spaces returns how many namespaces so many iterations take.
func (l Load) spaces(iterations int64) int64 {
	if l.PerNamespace <= 0 {
		return min(iterations, 1)
	}
	return (iterations + l.PerNamespace - 1) / l.PerNamespace
}

// makes reports whether the workload makes any of a kind of object.
func (l Load) makes(each func(Entry) int64) bool {
	return slices.ContainsFunc(l.Entries, func(e Entry) bool { return each(e) > 0 })
}

func (l Load) requests() []string {
	set := make(map[string]bool)
	for _, e := range l.Entries {
		for name, amount := range e.Pod.Requests {
			if e.Pods > 0 && amount > 0 {
				set[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// shapes lists the different sizes of the workload's pods.
func (l Load) shapes() []Pod {
	byText := make(map[string]Pod)
	for _, e := range l.Entries {
		if e.Pods > 0 {
			byText[sizeOf(e.Pod)] = e.Pod
		}
	}
	var list []Pod
	for _, key := range slices.Sorted(maps.Keys(byText)) {
		list = append(list, byText[key])
	}
	return list
}

// sizeOf returns the same text for pods of the same size.
func sizeOf(p Pod) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.Requests)) {
		if p.Requests[name] > 0 {
			fmt.Fprintf(&b, "%s=%d,", name, p.Requests[name])
		}
	}
	return b.String()
}
