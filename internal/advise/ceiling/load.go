package ceiling

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Load is what a workload asks for as it is raised, iteration by iteration.
type Load struct {
	Workload string
	// PerNamespace is how many iterations share a namespace; 0 is all.
	PerNamespace int64
	Entries      []Entry
}

// Entry is what one document of one of the workload's templates asks for.
type Entry struct {
	// Resource is what it is, as quotas name it: pods, services,
	// deployments.apps.
	Resource string
	// Copies is how many are made at a time; Every in which iterations: those
	// that it divides, and for 0 once, with the first.
	Copies int64
	Every  int64
	// Namespace is one that the document names, "" for that of its iteration.
	Namespace string
	// Pods is how many pods one of them asks for, and Pod what each is like.
	Pods int64
	Pod  Pod
	// ClusterIP says that it is a service with an address.
	ClusterIP bool
	// LinkBytes is what a service adds to the environment of each container
	// that has service links.
	LinkBytes int64
}

// Pod is what a pod asks for.
type Pod struct {
	Requests    Amounts
	Limits      Amounts
	Containers  int64
	HostNetwork bool
	// ServiceLinks says that its containers have environment variables for each
	// service of their namespace.
	ServiceLinks bool
}

// barePods is what is looked at where no workload is given.
func barePods() Load {
	return Load{Entries: []Entry{{Resource: Pods, Copies: 1, Every: 1, Pods: 1, Pod: Pod{Containers: 1}}}}
}

// times is how often the entry's object is made in so many iterations.
func (e Entry) times(iterations int64) int64 {
	if e.Every <= 0 {
		return e.Copies
	}
	return (iterations + e.Every - 1) / e.Every * e.Copies
}

// sum adds up over all entries what each of an entry's objects counts for.
func (l Load) sum(iterations int64, each func(Entry) int64) (n int64) {
	for _, e := range l.Entries {
		if one := each(e); one != 0 {
			n += e.times(iterations) * one
		}
	}
	return n
}

// pods is how many pods so many iterations ask for.
func (l Load) pods(iterations int64) int64 {
	return l.sum(iterations, func(e Entry) int64 { return e.Pods })
}

// namespaces are those that the workload puts anything in: "" for those of the
// iterations.
func (l Load) namespaces() []string {
	set := make(map[string]bool)
	for _, e := range l.Entries {
		set[e.Namespace] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// within is what each of an entry's objects counts for, summed up over one
// namespace: the first of those that iterations have, which gets everything
// that is made once, or one that documents name.
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

// spaces is how many namespaces so many iterations take.
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

// requests are the resources that the workload's pods ask for, by name.
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

// shapes are the different sizes that the workload's pods have.
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

// sizeOf is the same for pods that take up the same.
func sizeOf(p Pod) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.Requests)) {
		if p.Requests[name] > 0 {
			fmt.Fprintf(&b, "%s=%d,", name, p.Requests[name])
		}
	}
	return b.String()
}
