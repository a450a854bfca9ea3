package lab

import (
	"cmp"

	"plimsoll.dev/plimsoll/internal/plan/planted"
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/text/dist"
	"plimsoll.dev/plimsoll/internal/text/size"
)

// Shape holds a user's settings of a lab, which package settings turns into keys and flags.
type Shape struct {
	// Nodes is the number of simulated nodes; 0 means none.
	Nodes int `yaml:"nodes" json:"nodes" flag:"nodes" default:"10" range:"0..100000" unit:"number of simulated nodes" help:"simulated nodes of the lab"`
	// MaxPods is each node's allocatable number of pods.
	MaxPods int `yaml:"maxPods" json:"maxPods" flag:"max-pods" default:"110" range:"1..100000" unit:"number of pods that a node can hold" help:"allocatable pods of each of its nodes"`
	// StartLatency is the time from a pod's binding to Ready; 0 is none. A pod's annotation overrides it.
	StartLatency dist.Dist `yaml:"startLatency" json:"startLatency" flag:"start-latency" takes:"DIST" example:"uniform:500ms,1.5s" help:"how long pods take to start there, a DIST: constant:D | uniform:LO,HI | lognormal:P50,P99 (default none)"`
	// ControlPlaneCPUs is the processor time that the control plane shares; 0 for no limit.
	ControlPlaneCPUs float64 `yaml:"controlPlaneCPUs" json:"controlPlaneCPUs,omitempty" flag:"control-plane-cpus" range:"0.." unit:"number of processors" help:"processors of its control plane, such as 0.5 (default all; needs root)"`
	// Virt overrides the defaults of the simulated virtual machines, by the keys of planted.Virt.
	Virt map[string]string `yaml:"virt" json:"virt,omitempty" flag:"virt" takes:"KEY=VALUE,..." example:"bootTime=20s,qps=5" help:"add simulated virtual machines with KEY=VALUE,... planted, \"\" for the defaults (docs/virt-lab.md lists the keys)"`
	// TimeScale is the factor by which their time passes faster; 0 is a lab without virtual machines.
	TimeScale float64 `yaml:"timeScale" json:"timeScale,omitempty" flag:"time-scale" example:"60" range:"0..1000" unit:"scale of time" help:"add simulated virtual machines whose time passes so many times faster (default 1)"`
	// RealGuests counts the first machines, whose guests QEMU runs: each keeps a processor busy while it
	// boots.
	RealGuests int `yaml:"realGuests" json:"realGuests,omitempty" flag:"real-guests" takes:"N" example:"2" range:"0..64" unit:"number of real guests" help:"let the first N virtual machines that start have a guest that QEMU runs"`
	// RealNode adds a node of this machine that runs containers. The fields below are its own.
	RealNode bool `yaml:"realNode" json:"-" flag:"real-node" help:"add a real node; without simulated ones asked for it is the only one (needs root; see 'plimsoll lab doctor')"`
	// NodeCPUs is the processors of its pods and its own processes together; 0 is all.
	NodeCPUs float64 `yaml:"nodeCPUs" json:"-" flag:"node-cpus" range:"0.." unit:"number of processors" help:"processors of the real node, with its own processes, such as 0.5 (default all)"`
	// NodeMemory is the memory of both; 0 is all.
	NodeMemory size.Bytes `yaml:"nodeMemory" json:"-" flag:"node-memory" takes:"memory" help:"memory of the real node, such as 2Gi (default all)"`
	// PodCIDRPrefix is the prefix length of its pods' addresses; 0 makes the range large enough.
	PodCIDRPrefix int `yaml:"podCIDRPrefix" json:"-" flag:"pod-cidr-prefix" range:"16..29" unit:"prefix of a range of pod addresses" help:"prefix length of the real node's pod addresses (default large enough)"`
}

// HasVirt reports whether the lab has simulated virtual machines.
func (s Shape) HasVirt() bool { return s.TimeScale != 0 }

// Complete fills in what other fields imply.
func (s *Shape) Complete(given func(key string) bool) {
	if s.RealNode && !given("nodes") {
		s.Nodes = 0
	}
	if (s.Virt != nil || s.RealGuests != 0) && !given("timeScale") {
		s.TimeScale = cmp.Or(s.TimeScale, 1)
	}
}

// Check reports settings that contradict each other.
func (s *Shape) Check(c *settings.Check) {
	if s.Nodes == 0 && !s.RealNode {
		c.Problem("nodes", "for example "+c.Set("nodes", "10"), "a lab without nodes holds no pods")
	}
	switch {
	case !s.HasVirt() && (s.Virt != nil || s.RealGuests != 0):
		c.Problem("timeScale", "for example "+c.Set("timeScale", "60"), "virtual machines need a scale of time above 0")
	case s.HasVirt() && s.Nodes == 0:
		c.Problem("virt", "for example "+c.Set("nodes", "20"), "virtual machines need simulated nodes")
	case s.TimeScale > 0:
		if _, err := planted.Parse(s.Virt, s.TimeScale); err != nil {
			c.Problem("virt", "", "%v", err)
		}
	}
	for _, only := range []struct {
		key   string
		given bool
	}{{"nodeCPUs", s.NodeCPUs != 0}, {"nodeMemory", s.NodeMemory != 0}, {"podCIDRPrefix", s.PodCIDRPrefix != 0}} {
		if only.given && !s.RealNode {
			c.Problem(only.key, "add "+c.Set("realNode", "true"), "it belongs to a real node, and the lab has none")
		}
	}
}
