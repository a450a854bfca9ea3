package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/lab/room"
	"plimsoll.dev/plimsoll/internal/plan/planted"
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/text/dist"
	"plimsoll.dev/plimsoll/internal/text/size"
)

// ComponentNames lists the components in the order in which they are started.
func ComponentNames() []string {
	return []string{protocol.Etcd, protocol.APIServer, protocol.ControllerManager, protocol.Scheduler, protocol.SimulatedNodes}
}

// RealNodeComponentNames lists the components that a real node adds.
func RealNodeComponentNames() []string {
	return []string{protocol.RealNode, protocol.Containerd, protocol.Kubelet, protocol.KubeProxy}
}

// Spec says which lab to make. A zero field other than Nodes means the default.
type Spec struct {
	Name string // a DNS label, unique in the Store. A private lab without one gets one.
	Shape
	Pods     int  // the most pods in the lab at once; 0 is unknown
	Machines int  // the most virtual machines in the lab at once; 0 is unknown
	Private  bool // ties the lab to the life of this process
}

func (s Spec) withDefaults() Spec {
	s.MaxPods = cmp.Or(s.MaxPods, protocol.DefaultMaxPods)
	if s.Virt != nil || s.RealGuests != 0 {
		s.TimeScale = cmp.Or(s.TimeScale, 1)
	}
	return s
}

// leastControlPlane is the smallest share of a processor on which a control plane starts reasonably fast.
const leastControlPlane = 0.1

func (s Spec) validate() error {
	if err := ValidateName(s.Name); err != nil {
		return err
	}
	for _, p := range settings.Ranges(&s.Shape) {
		return &SpecError{p.Path, p.Message}
	}
	switch {
	case s.ControlPlaneCPUs != 0 && s.ControlPlaneCPUs < leastControlPlane:
		return &SpecError{"processors of the control plane", fmt.Sprintf("%g is less than it needs to start (%g)", s.ControlPlaneCPUs, leastControlPlane)}
	case s.ControlPlaneCPUs > 0 && os.Geteuid() != 0:
		return &SpecError{"processors of the control plane", "bounding them needs root"}
	case s.HasVirt() && s.Nodes == 0:
		return &SpecError{"virtual machines", "they need simulated nodes, and there are none"}
	}
	if s.HasVirt() {
		if _, err := planted.Parse(s.Virt, s.TimeScale); err != nil {
			return &SpecError{"virtual machines", err.Error()}
		}
	}
	return s.validateRealNode()
}

// SpecError says What is wrong in a lab's Spec, and Why.
type SpecError struct{ What, Why string }

func (e *SpecError) Error() string { return e.What + ": " + e.Why }

// ValidateName returns a *SpecError unless name is a DNS label: directories and kubeconfigs have it.
func ValidateName(name string) error {
	const what = "lab name"
	switch {
	case name == "":
		return &SpecError{what, "it is empty"}
	case len(name) > 63:
		return &SpecError{what, fmt.Sprintf("%q has %d characters, at most 63 are allowed", name, len(name))}
	}
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		switch {
		case letter:
		case r == '-' && i > 0 && i < len(name)-1:
		case r == '-':
			return &SpecError{what, fmt.Sprintf("%q begins or ends with '-'", name)}
		default:
			return &SpecError{what, fmt.Sprintf("%q has %q, allowed are a-z, 0-9 and '-'", name, r)}
		}
	}
	return nil
}

// NotFoundError reports a lab that does not exist, and lists those that do.
type NotFoundError struct {
	Name string
	Have []string
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("there is no lab %q", e.Name) }

// ExistsError reports that the lab to be made exists already.
type ExistsError struct{ Name string }

func (e *ExistsError) Error() string { return fmt.Sprintf("lab %q exists already", e.Name) }

// BusyError reports a lab that another process makes, removes or owns as its private one. PID 0 is unknown.
type BusyError struct {
	Name string
	PID  int
}

func (e *BusyError) Error() string {
	if e.PID != 0 {
		return fmt.Sprintf("lab %q is in use by process %d", e.Name, e.PID)
	}
	return fmt.Sprintf("lab %q is in use by another command", e.Name)
}

// Store holds the labs of one user.
type Store struct {
	Root       string            // the directory that holds them; it is made when first needed
	Executable string            // the program that runs each component, by its command "component"
	From       string            // what an image is made of: directory of a release, or program of Traefik; "" for what is here
	Progress   func(what string) // receives a few words, unless it is nil, about what Up waits for
}

func (s Store) progress(format string, args ...any) {
	if s.Progress != nil {
		s.Progress(fmt.Sprintf(format, args...))
	}
}

// labs returns one path however the user spells it, because processes are found by this path.
func (s Store) labs() string {
	root := filepath.Clean(s.Root)
	existing := existingParent(root)
	if real, err := filepath.EvalSymlinks(existing); err == nil {
		root = real + strings.TrimPrefix(root, existing)
	}
	return filepath.Join(root, "labs")
}

func (s Store) dir(name string) string { return filepath.Join(s.labs(), name) }

// Lab is one lab. Its methods may be called from several goroutines.
type Lab struct {
	runner
	damage error // why the record cannot be read
	lock   *lock // held as long as a private lab lives
}

// Name returns the lab's name.
func (l *Lab) Name() string { return l.record.Name }

// ID differs between two labs of the same name, an earlier and a later one.
func (l *Lab) ID() string { return l.record.ID }

// Spec returns what the lab was made from, with defaults. If the lab's record is lost, only the name is set.
func (l *Lab) Spec() Spec { return l.record.spec() }

// Kubeconfig returns the path of the kubeconfig of a user with all rights and no exemption from limits.
func (l *Lab) Kubeconfig() string { return l.dir.kubeconfig() }

// Logs returns the path of a component's log, or a *ComponentError.
func (l *Lab) Logs(component string) (string, error) {
	if !slices.Contains(l.componentNames(), component) {
		return "", &ComponentError{component, l.componentNames()}
	}
	return l.dir.log(component), nil
}

// ComponentError reports a component that the lab does not have, and lists those that it has.
type ComponentError struct {
	Name string
	Have []string
}

func (e *ComponentError) Error() string {
	return fmt.Sprintf("there is no component %q, there are %s", e.Name, strings.Join(e.Have, ", "))
}

// Open finds a lab by name, in any condition. It returns a *SpecError or a *NotFoundError.
func (s Store) Open(name string) (*Lab, error) {
	if err := ValidateName(name); err != nil {
		return nil, err
	}
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, name) {
		return nil, &NotFoundError{name, names}
	}
	return s.open(name), nil
}

func (s Store) open(name string) *Lab {
	l := &Lab{runner: runner{store: s, dir: directory(s.dir(name))}}
	l.record, l.damage = l.dir.readRecord()
	if l.damage != nil {
		l.record = record{Name: name}
	}
	return l
}

// Damage says why the lab's record cannot be read, or is nil. A damaged lab can be looked at and removed.
func (l *Lab) Damage() error { return l.damage }

// List returns all labs, sorted by name.
func (s Store) List() ([]*Lab, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	labs := make([]*Lab, 0, len(names))
	for _, name := range names {
		labs = append(labs, s.open(name))
	}
	return labs, nil
}

// names lists the labs that have a directory or a process: a process may outlive its directory.
func (s Store) names() ([]string, error) {
	entries, err := os.ReadDir(s.labs())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list labs: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && ValidateName(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	processes, err := processesUnder(s.labs())
	if err != nil {
		return nil, fmt.Errorf("list labs: %w", err)
	}
	for _, p := range processes {
		names = append(names, p.lab)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Sweep removes dead private and half-made labs, and returns their parts and those left, or only looks.
func (s Store) Sweep(ctx context.Context, dry bool) ([]room.Left, error) {
	entries, err := os.ReadDir(s.labs())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for abandoned labs: %w", err)
	}
	var list []room.Left
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		left, err := s.sweepOne(ctx, e.Name(), dry)
		if err != nil {
			return list, fmt.Errorf("remove abandoned lab %q: %w", e.Name(), err)
		}
		if left != nil {
			left.Alive = left.Why != ""
			list = append(list, *left)
		}
	}
	return list, nil
}

// sweepOne removes an abandoned lab; it returns nil for any other.
func (s Store) sweepOne(ctx context.Context, name string, dry bool) (*room.Left, error) {
	dir := directory(s.dir(name))
	left := &room.Left{Things: []string{fmt.Sprintf("lab %q in %s", name, dir)}}
	held, err := tryLock(string(dir))
	if err != nil {
		return nil, ignoreNotExist(err) // gone by now
	}
	record, readErr := dir.readRecord()
	if held == nil {
		left.Why = "its command runs"
		if readErr != nil || !record.Private {
			return nil, nil // it is being made, or another command is at work on it
		}
		return left, nil
	}
	defer held.release()
	processes, err := processesOf(string(dir))
	if err != nil {
		return nil, err
	}
	switch {
	case errors.Is(readErr, fs.ErrNotExist):
		// Without a record only its processes can say whether it was one.
		if left.Why = "it has processes and no record: 'plimsoll lab down " + name + "' removes it"; len(processes) > 0 {
			return left, nil
		}
	case readErr != nil:
		left.Why = "its record cannot be read: 'plimsoll lab down " + name + "' removes it"
		return left, nil
	case !record.Private && record.Ready:
		return nil, nil
	}
	left.Why = ""
	for _, p := range processes {
		left.Things = append(left.Things, fmt.Sprintf("its process %d (%s)", p.pid, p.component))
	}
	left.Things = append(left.Things, realnode.Leftovers(string(dir))...)
	if dry {
		return left, nil
	}
	return left, remove(ctx, dir)
}

// SweepGroups removes control groups without a lab and returns their paths; with dry it only looks.
func (s Store) SweepGroups(ctx context.Context, dry bool) ([]string, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, name := range names {
		dirs = append(dirs, s.dir(name))
	}
	return realnode.SweepGroups(ctx, dirs, dry)
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Down ends the lab's processes and removes its files. It returns a *BusyError for another's private lab.
func (l *Lab) Down(ctx context.Context) error {
	held, err := l.lock, error(nil)
	if held == nil {
		if held, err = l.acquire(ctx); err != nil {
			return err
		}
	}
	defer held.release()
	if err := remove(ctx, l.dir); err != nil {
		return fmt.Errorf("remove lab %q: %w", l.Name(), err)
	}
	if l.tie != nil {
		l.tie.Close()
	}
	return nil
}

// acquire locks the lab, waiting its turn. It makes a lost directory again to have something to lock.
func (l *Lab) acquire(ctx context.Context) (*lock, error) {
	for {
		if err := os.MkdirAll(string(l.dir), 0o700); err != nil {
			return nil, fmt.Errorf("lock lab %q: %w", l.Name(), err)
		}
		held, err := tryLock(string(l.dir))
		if held != nil {
			return held, nil
		}
		if ignoreNotExist(err) != nil {
			return nil, fmt.Errorf("lock lab %q: %w", l.Name(), err)
		}
		if l.record.Private {
			return nil, &BusyError{l.Name(), l.record.Owner}
		}
		select {
		case <-ctx.Done():
			return nil, &BusyError{l.Name(), l.record.Owner}
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// remove ends the processes that work in dir and removes it, even after ctx: half a removal helps nobody.
func remove(ctx context.Context, dir directory) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := killAll(ctx, string(dir), func(process) bool { return true }); err != nil {
		return err
	}
	if err := realnode.Remove(string(dir)); err != nil {
		return err
	}
	if err := os.RemoveAll(string(dir)); err != nil {
		return err
	}
	// The last lab takes the empty directories above it along.
	labs := filepath.Dir(string(dir))
	if os.Remove(labs) == nil {
		os.Remove(filepath.Dir(labs))
	}
	return nil
}

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
	// RealGuests counts the first machines, whose guests QEMU runs. Booting keeps a processor busy for each.
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

func existingParent(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return dir
		}
		dir = parent
	}
}
