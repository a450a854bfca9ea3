package realnode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"plimsoll.dev/plimsoll/internal/proc"
)

// The parts of a node, by the names of their control groups.
const (
	partNode       = "real-node" // the node's first process
	partContainerd = "containerd"
	partShims      = "containerd-shims"
	partKubelet    = "kubelet"
	partProxy      = "kube-proxy"
	partPods       = "pods"
)

func systemParts() []string {
	return []string{partNode, partContainerd, partShims, partKubelet, partProxy}
}

// group returns the whole node's control group, from each hierarchy's root.
func group(dir string) string { return groupPrefix + tag(dir) }

const groupPrefix = "plimsoll-"

func systemGroup(dir, part string) string { return group(dir) + "/system/" + part }

// hierarchy locates this system's control groups.
type hierarchy struct {
	unified string            // the root of version 2, "" on a system of version 1
	mounts  map[string]string // the root of each controller of version 1
}

func findHierarchy() (hierarchy, error) {
	mounts, err := procfs.GetMounts()
	if err != nil {
		return hierarchy{}, fmt.Errorf("control groups: %w", err)
	}
	return hierarchyOf(mounts)
}

// CheckControlGroups returns an error that lists the controllers that a kubelet misses here.
func CheckControlGroups() error {
	_, err := findHierarchy()
	return err
}

const cgroupRoot = "/sys/fs/cgroup"

func hierarchyOf(mounts []*procfs.MountInfo) (hierarchy, error) {
	h := hierarchy{mounts: make(map[string]string)}
	for _, m := range mounts {
		switch {
		case m.FSType == "cgroup2" && m.MountPoint == cgroupRoot:
			h.unified = m.MountPoint
		case m.FSType == "cgroup" && strings.HasPrefix(m.MountPoint, cgroupRoot+"/"):
			for option, value := range m.SuperOptions {
				// A hierarchy without a controller has a name; a kubelet looks for its groups there too.
				if option != "rw" && option != "ro" && (option == "name" || value == "") {
					h.mounts[option] = m.MountPoint
				}
			}
		}
	}
	if h.unified != "" {
		return h, nil
	}
	var missing []string
	for _, controller := range []string{"cpu", "cpuacct", "cpuset", "memory", "pids", "devices", "freezer"} {
		if h.mounts[controller] == "" {
			missing = append(missing, controller)
		}
	}
	if len(missing) > 0 {
		return h, fmt.Errorf("control groups (without: %s)", strings.Join(missing, ", "))
	}
	return h, nil
}

// roots returns the directories that hold groups.
func (h hierarchy) roots() []string {
	if h.unified != "" {
		return []string{h.unified}
	}
	return slices.Compact(slices.Sorted(maps.Values(h.mounts)))
}

func (s Spec) makeGroups() error {
	h, err := findHierarchy()
	if err != nil {
		return err
	}
	groups := []string{group(s.Dir), group(s.Dir) + "/system"}
	for _, part := range systemParts() {
		groups = append(groups, systemGroup(s.Dir, part))
	}
	for _, root := range h.roots() {
		for _, g := range groups {
			if err := h.makeGroup(root, g); err != nil {
				return err
			}
			if g == group(s.Dir) {
				// Before the groups below it, which inherit its limits.
				if err := h.confine(root, s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (h hierarchy) makeGroup(root, g string) error {
	dir := filepath.Join(root, g)
	if h.unified != "" {
		if err := delegate(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make control group: %w", err)
	}
	if root != h.mounts["cpuset"] {
		return nil
	}
	// A group of this controller begins without processors and memory, and takes no process.
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), value, 0)
		}
		if err != nil {
			return fmt.Errorf("make control group: %w", err)
		}
	}
	return nil
}

// delegate passes the controllers of a group of version 2 to the groups below it.
func delegate(dir string) error {
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("make control group: %w", err)
	}
	for _, c := range strings.Fields(string(controllers)) {
		if !slices.Contains([]string{"cpu", "cpuset", "io", "memory", "pids", "hugetlb"}, c) {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0); err != nil {
			if c == "hugetlb" || c == "io" {
				continue // not needed
			}
			return fmt.Errorf("give controller %s to the node: %w (a container needs a control group namespace whose root holds no process)", c, err)
		}
	}
	return nil
}

const quotaPeriod = 100_000 // in microseconds: the kernel's default

func (h hierarchy) confine(root string, s Spec) error {
	set := func(controller, file1, value1, file2, value2 string) error {
		file, value := file2, value2
		if h.unified == "" {
			if root != h.mounts[controller] {
				return nil
			}
			file, value = file1, value1
		}
		if err := os.WriteFile(filepath.Join(root, group(s.Dir), file), []byte(value), 0); err != nil {
			return fmt.Errorf("confine the node: %w", err)
		}
		return nil
	}
	var errs []error
	if len(s.Processors) > 0 {
		list := formatList(s.Processors)
		errs = append(errs, set("cpuset", "cpuset.cpus", list, "cpuset.cpus", list))
	}
	if s.CPUs > 0 && s.CPUs < float64(len(s.Processors)) {
		period, quota := strconv.Itoa(quotaPeriod), strconv.Itoa(int(math.Round(s.CPUs*quotaPeriod)))
		errs = append(errs, set("cpu", "cpu.cfs_quota_us", quota, "cpu.max", quota+" "+period))
	}
	if s.MemoryBytes > 0 {
		limit := strconv.FormatInt(s.MemoryBytes, 10)
		errs = append(errs, set("memory", "memory.limit_in_bytes", limit, "memory.max", limit))
	}
	return errors.Join(errs...)
}

// controlPlaneGroup returns the group of a confined control plane, outside of the node's.
func controlPlaneGroup(dir string) string { return group(dir) + "-control-plane" }

// ConfineControlPlane makes a control group with so many processors' time. Remove removes it.
func ConfineControlPlane(dir string, cpus float64) error {
	h, err := findHierarchy()
	if err != nil {
		return err
	}
	root, file, value := h.mounts["cpu"], "cpu.cfs_quota_us", strconv.Itoa(int(math.Round(cpus*quotaPeriod)))
	if h.unified != "" {
		root, file, value = h.unified, "cpu.max", value+" "+strconv.Itoa(quotaPeriod)
	}
	if err := h.makeGroup(root, controlPlaneGroup(dir)); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, controlPlaneGroup(dir), file), []byte(value), 0); err != nil {
		return fmt.Errorf("confine the control plane: %w", err)
	}
	return nil
}

// EnterControlPlane puts a process into the group of a confined control plane.
func EnterControlPlane(dir string, pid int) error {
	h, err := findHierarchy()
	if err != nil {
		return err
	}
	root := cmp.Or(h.unified, h.mounts["cpu"])
	procs := filepath.Join(root, controlPlaneGroup(dir), "cgroup.procs")
	if err := os.WriteFile(procs, []byte(strconv.Itoa(pid)), 0); err != nil {
		return fmt.Errorf("put process %d into the control plane's group: %w", pid, err)
	}
	return nil
}

// ProcessorsOf returns the processors of a node that gets so many: the last that this process may use.
func ProcessorsOf(cpus float64) ([]int, error) {
	all, err := usableProcessors()
	if err != nil {
		return nil, err
	}
	n := int(math.Ceil(cpus))
	if n > len(all) {
		return nil, fmt.Errorf("%g processors for the node: there are %d", cpus, len(all))
	}
	return all[len(all)-n:], nil
}

// ProcessorsBeside returns the processors that a node of so many leaves to others; nil if it gets all.
func ProcessorsBeside(cpus float64) []int {
	all, err := usableProcessors()
	if err != nil || cpus <= 0 {
		return nil
	}
	return all[:max(0, len(all)-int(math.Ceil(cpus)))]
}

// usableProcessors are the first process's: this process may have given some to the node.
func usableProcessors() ([]int, error) { return proc.Processors(1) }

func enter(s Spec, part string, pid int) error {
	h, err := findHierarchy()
	if err != nil {
		return err
	}
	for _, root := range h.roots() {
		procs := filepath.Join(root, systemGroup(s.Dir, part), "cgroup.procs")
		if err := os.WriteFile(procs, []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("put %s into its control group: %w", part, err)
		}
	}
	return nil
}

func removeGroups(dir string) error {
	h, err := findHierarchy()
	if err != nil {
		return nil // without a hierarchy there is no group
	}
	for _, root := range h.roots() {
		for _, g := range []string{group(dir), controlPlaneGroup(dir)} {
			if err := removeGroup(filepath.Join(root, g)); err != nil {
				return err
			}
		}
	}
	return nil
}

// groupPatience is the time for which a group must look abandoned: a lab that is being made soon has a process.
const groupPatience = 2 * time.Second

// SweepGroups removes groups without a process, of labs that neither dirs nor a process names, and returns
// their paths; with dry it only looks.
func SweepGroups(ctx context.Context, dirs []string, dry bool) ([]string, error) {
	h, err := findHierarchy()
	found := h.strays(dirs)
	if err != nil || len(found) == 0 {
		return nil, nil
	}
	select {
	case <-time.After(groupPatience):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	still := h.strays(dirs)
	found = slices.DeleteFunc(found, func(g string) bool { return !slices.Contains(still, g) })
	for _, g := range found {
		if !dry {
			err = errors.Join(err, removeGroup(g))
		}
	}
	return found, err
}

// labIn finds a lab's directory in an argument.
var labIn = regexp.MustCompile(`/.*/labs/[^/]+`)

func (h hierarchy) strays(dirs []string) (stray []string) {
	of := make(map[string]bool)
	for _, arg := range proc.Arguments() {
		dirs = append(dirs, labIn.FindString(arg))
	}
	for _, dir := range dirs {
		of[group(dir)], of[controlPlaneGroup(dir)] = true, true
	}
	for _, root := range h.roots() {
		groups, _ := filepath.Glob(filepath.Join(root, groupPrefix+"*")) // the pattern is well formed
		for _, g := range groups {
			// A group whose processes cannot be read may have some.
			if pids, err := processesIn(g); err == nil && len(pids) == 0 && !of[filepath.Base(g)] {
				stray = append(stray, g)
			}
		}
	}
	return stray
}
