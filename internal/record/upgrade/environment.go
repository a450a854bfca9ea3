// Package upgrade reads what earlier versions have put on record as it would be
// put there now.
package upgrade

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

// environment is environment.json before it had facts: a record of a cluster, of
// this machine, and notes.
type environment struct {
	record.Environment
	Host *struct {
		Kernel        string            `json:"kernel"`
		CPUs          int               `json:"cpus"`
		MemoryBytes   int64             `json:"memoryBytes"`
		CgroupVersion string            `json:"cgroupVersion"`
		Runtimes      map[string]string `json:"runtimes"`
	} `json:"host"`
	Cluster *struct {
		Server  string `json:"server"`
		Skipped int    `json:"nodesSkipped"`
		Nodes   []node `json:"nodes"`
	} `json:"cluster"`
	ClockOffset *float64 `json:"clockOffset"`
	Isolation   struct {
		Split string   `json:"split"`
		Notes []string `json:"notes"`
	} `json:"isolation"`
}

type node struct {
	Name        string          `json:"name"`
	Pods        int64           `json:"pods"`
	CPUMillis   int64           `json:"cpuMillis"`
	MemoryBytes int64           `json:"memoryBytes"`
	Kernel      string          `json:"kernel"`
	OSImage     string          `json:"osImage"`
	Kubelet     string          `json:"kubelet"`
	Runtime     string          `json:"runtime"`
	Fidelity    record.Realness `json:"fidelity"`
}

// Environment reads environment.json of a run directory. What a target was asked
// to be stood in the plan alone: it is taken from there.
func Environment(dir record.Dir) (*record.Environment, error) {
	data, err := dir.ReadFile(record.EnvironmentFile)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", record.EnvironmentFile, err)
	}
	var e environment
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, fmt.Errorf("read %s: %w", dir.Path(record.EnvironmentFile), err)
	}
	if err := e.Places.Check(); err != nil {
		return nil, fmt.Errorf("read %s: %w", dir.Path(record.EnvironmentFile), err)
	}
	if e.Host == nil {
		return &e.Environment, nil
	}
	e.Upgraded, e.Elsewhere = true, e.Target.Kind == "cluster"
	host := record.Host{CPUs: e.Host.CPUs, MemoryBytes: e.Host.MemoryBytes, Kernel: e.Host.Kernel, Cgroup: e.Host.CgroupVersion, Sharing: e.Isolation.Split}
	notes := e.Isolation.Notes
	if len(notes) > 0 && strings.HasPrefix(notes[0], "the load generator and observer run at ") {
		host.Priority, notes = notes[0], notes[1:]
	}
	host.Placement = strings.Join(notes, "; ")
	e.Facts = slices.Concat(host.Facts(e.Elsewhere), record.Versions(e.Host.Runtimes), e.cluster())
	if lab := labOf(dir); lab != nil {
		e.Facts = append(e.Facts, lab.Facts()...)
	}
	e.Facts = record.OnRecord(e.Facts)
	return &e.Environment, nil
}

// cluster are the facts of a cluster, and its nodes are the places.
func (e *environment) cluster() []record.Fact {
	c := e.Cluster
	if c == nil {
		return nil
	}
	e.Places = &record.Places{Place: record.Noun{One: "node", Many: "nodes"}, Facts: NodeFacts(!e.Elsewhere)}
	slices.SortStableFunc(c.Nodes, func(a, b node) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range c.Nodes {
		values := []string{
			strconv.FormatInt(n.Pods, 10), strconv.FormatFloat(float64(n.CPUMillis)/1000, 'g', -1, 64), strconv.FormatInt(n.MemoryBytes, 10),
			n.Kubelet, n.Runtime, n.OSImage, n.Kernel,
		}
		e.Places.Add(n.Name, n.Fidelity, values[:len(e.Places.Facts)]...)
	}
	return ClusterFacts(c.Server, len(c.Nodes), c.Skipped, e.ClockOffset)
}

// ClusterFacts are what is known of a cluster as a whole.
func ClusterFacts(server string, nodes, skipped int, clockOffset *float64) []record.Fact {
	clock := ""
	if clockOffset != nil {
		clock = fmt.Sprintf("%+.1f", *clockOffset)
	}
	return []record.Fact{
		{Name: "kubernetes", What: "version of the API server", Value: server, Bearing: record.Refuses},
		{Name: "nodes", What: "nodes that take the workload", Value: strconv.Itoa(nodes), Bearing: record.Refuses},
		{Name: "nodes-skipped", What: "nodes that do not take the workload", Value: strconv.Itoa(skipped), Bearing: record.Noted},
		// Latencies are of one clock, whatever the other says.
		{Name: "clock", What: "server's clock less plimsoll's, to within 1 s", Value: clock, Unit: "s", Within: "1", Bearing: record.Noted},
	}
}

// NodeFacts are what is known of each node. In a lab its kernel is that of this
// machine.
func NodeFacts(inLab bool) []record.Fact {
	list := []record.Fact{
		{Name: "node-shape:pods", What: "allocatable pods", Unit: "pods", Bearing: record.Refuses},
		{Name: "node-shape:cpus", What: "allocatable processors", Unit: "CPUs", Bearing: record.Refuses},
		// What firmware and kernel keep of it varies.
		{Name: "node-shape:memory", What: "allocatable memory", Unit: "B", Within: "2%", Bearing: record.Refuses},
		{Name: "kubelet", What: "version of the kubelet", Bearing: record.Refuses},
		{Name: "runtime", What: "container runtime", Bearing: record.Refuses},
		{Name: "os", What: "operating system", Bearing: record.Refuses},
	}
	if !inLab {
		list = append(list, record.Fact{Name: "kernel", What: "kernel of the node", Bearing: record.Refuses})
	}
	return list
}

// Lab is what a plan says of a private lab.
type Lab struct {
	StartLatency  string            `yaml:"startLatency"`
	Virt          map[string]string `yaml:"virt"`
	TimeScale     float64           `yaml:"timeScale"`
	RealGuests    int               `yaml:"realGuests"`
	RealNode      bool              `yaml:"realNode"`
	PodCIDRPrefix int               `yaml:"podCIDRPrefix"`
}

// labOf reads it from the plan as it was run, nil where there is none.
func labOf(dir record.Dir) *Lab {
	var plan struct {
		Target struct {
			Lab *Lab `yaml:"lab"`
		} `yaml:"target"`
	}
	text, err := dir.ReadFile(record.ExperimentFile)
	if err != nil || yaml.Unmarshal(text, &plan) != nil {
		return nil // that it cannot be read is said where it is needed
	}
	return plan.Target.Lab
}

// Facts are what a lab was made with that its cluster does not show.
func (l *Lab) Facts() []record.Fact {
	latency, _ := dist.Parse(l.StartLatency) // a plan that was run is well-formed
	list := []record.Fact{{Name: "lab-start-latency", What: "start latency of the lab's pods", Value: cmp.Or(latency.String(), "none"), Bearing: record.Refuses}}
	if l.TimeScale != 0 {
		said := fmt.Sprintf("scale %g", l.TimeScale)
		var planted []string
		for _, key := range slices.Sorted(maps.Keys(l.Virt)) {
			planted = append(planted, key+"="+l.Virt[key])
		}
		if len(planted) > 0 {
			said += ", " + strings.Join(planted, ",")
		}
		if l.RealGuests > 0 {
			said += fmt.Sprintf(", %d real guests", l.RealGuests)
		}
		list = append(list, record.Fact{Name: "lab-virt", What: "what is planted in the lab's virtual machines, and their scale of time", Value: said, Bearing: record.Refuses})
	}
	if l.RealNode {
		value := "default"
		if l.PodCIDRPrefix != 0 {
			value = fmt.Sprintf("/%d", l.PodCIDRPrefix)
		}
		list = append(list, record.Fact{Name: "pod-range", What: "prefix length of the pod addresses of the lab's real node", Value: value, Bearing: record.Refuses})
	}
	return list
}
