// Package planted holds what is planted in a lab with simulated virtual
// machines: how long things take there, what is limited, and what goes wrong.
// The defaults are calibrated with published figures of a cluster with external
// Ceph (100 machines boot in 102 s and 1000 in 1065 s, bulks of 100 clones are
// the fastest way to 800, the knee is at 250); they reproduce nothing.
package planted

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// Virt is what is planted.
type Virt struct {
	Import time.Duration // of an image over HTTP

	// A clone takes a worker for CloneTime (or CopyPerGiB) and the lock of its
	// parent for CloneLock, which grows by the share CloneContention with each
	// clone of that parent beyond the workers. Once the storage has made it,
	// CloneFinish passes, for all at once.
	CloneWorkers    int
	CloneTime       time.Duration
	CloneLock       time.Duration
	CloneContention float64
	CloneFinish     time.Duration
	SnapshotTime    time.Duration // what the strategy snapshot takes besides
	CopyPerGiB      time.Duration // of the strategy copy, which needs no lock
	// FlattenAbove is how many clones a parent has, since none was under way,
	// before each further one waits until another is flattened.
	FlattenAbove  int
	FlattenPerGiB time.Duration
	// PurgeLimit is how many clones of the strategy csi-clone of one parent can
	// be purged: the volumes of further ones stay.
	PurgeLimit int

	// BootShare is what machines that start take turns at, BootGrowth what is
	// added for each that began to start since none did; BootTime is what a
	// machine takes from Running until it answers.
	BootShare, BootGrowth, BootTime time.Duration
	Shutdown                        time.Duration

	MigrateRHEL, MigrateFedora, MigrateWindows, MigrateOther time.Duration
	MigratePrepare                                           time.Duration // from a target that is Scheduled until its machine moves
	// MigrateUnderIO is the share by which a machine that does IO takes longer.
	MigrateUnderIO float64

	Reboot     time.Duration // of a node
	Upgrade    time.Duration // of a cluster's operators
	KVMPerNode int           // machines that a node's devices allow; 0 is no device at all

	// QPS and Burst limit virt-controller's requests unless the resource KubeVirt does.
	QPS   float64
	Burst int

	HyperConverged bool // one stands there, and overwrites the KubeVirt

	StuckMigrations int    // every so many-th migration makes no progress; 0 is none
	StuckClones     int    // every so many-th clone never ends; 0 is none
	DegradedPool    string // the pool whose nodes cannot take a configuration
	LostNode        string // the node that is lost,
	LostAfter       time.Duration
}

// flags is the one table of figures: their keys, defaults and meanings.
func (v *Virt) flags() *flag.FlagSet {
	f := flag.NewFlagSet("virt", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.DurationVar(&v.Import, "import", time.Minute, "import of an image over HTTP")
	f.IntVar(&v.CloneWorkers, "cloneWorkers", 10, "clones that the provisioner works on at once")
	f.DurationVar(&v.CloneTime, "cloneTime", 2*time.Second, "a worker's time for a clone (csi-clone, snapshot)")
	f.DurationVar(&v.CloneLock, "cloneLock", 500*time.Millisecond, "time for which a clone holds the lock of its parent")
	f.Float64Var(&v.CloneContention, "cloneContention", 0.01, "share by which that grows with each clone of the parent beyond the workers")
	f.DurationVar(&v.CloneFinish, "cloneFinish", 25*time.Second, "from a clone made by the storage to Succeeded, for all at once")
	f.DurationVar(&v.SnapshotTime, "snapshotTime", time.Second, "a worker's further time with the strategy snapshot")
	f.DurationVar(&v.CopyPerGiB, "copyPerGiB", 150*time.Millisecond, "a worker's time per GiB with the strategy copy, which needs no lock")
	f.IntVar(&v.FlattenAbove, "flattenAbove", 250, "clones of a parent, since none was under way, above which each waits for one to be flattened")
	f.DurationVar(&v.FlattenPerGiB, "flattenPerGiB", 50*time.Millisecond, "time per GiB that this takes")
	f.IntVar(&v.PurgeLimit, "purgeLimit", 100, "clones (csi-clone) of a parent that can be purged; the volumes of others stay")
	f.DurationVar(&v.BootShare, "bootShare", 905*time.Millisecond, "what machines that start take turns at")
	f.DurationVar(&v.BootGrowth, "bootGrowth", 300*time.Microsecond, "what is added to it for each machine that began to start since none did")
	f.DurationVar(&v.BootTime, "bootTime", 10*time.Second, "from Running until a machine answers by SSH")
	f.DurationVar(&v.Shutdown, "shutdown", 5*time.Second, "time that a machine takes to shut down")
	f.DurationVar(&v.MigrateRHEL, "migrateRHEL", 14*time.Second, "live migration of a machine with RHEL")
	f.DurationVar(&v.MigrateFedora, "migrateFedora", 23*time.Second, "live migration of a machine with Fedora")
	f.DurationVar(&v.MigrateWindows, "migrateWindows", 12*time.Second, "live migration of a machine with Windows")
	f.DurationVar(&v.MigrateOther, "migrateOther", 14*time.Second, "live migration of any other machine")
	f.DurationVar(&v.MigratePrepare, "migratePrepare", time.Second, "preparing the target of a migration")
	f.Float64Var(&v.MigrateUnderIO, "migrateUnderIO", 0.04, "share by which the live migration of a machine with the label plimsoll.dev/io takes longer")
	f.DurationVar(&v.Reboot, "reboot", 8*time.Minute, "time for which a node that reboots is not ready")
	f.DurationVar(&v.Upgrade, "upgrade", 35*time.Minute, "upgrade of a cluster's operators, before its nodes reboot")
	f.IntVar(&v.KVMPerNode, "kvmPerNode", 1000, "devices.kubevirt.io/kvm of each node; 0 is none")
	f.Float64Var(&v.QPS, "qps", 200, "requests per second of virt-controller, unless the resource KubeVirt says otherwise")
	f.IntVar(&v.Burst, "burst", 400, "requests that it may send at once")
	f.BoolVar(&v.HyperConverged, "hyperconverged", false, "whether there is a HyperConverged, which overwrites the KubeVirt")
	f.IntVar(&v.StuckMigrations, "stuckMigrations", 0, "every so many-th migration makes no progress; 0 is none")
	f.IntVar(&v.StuckClones, "stuckClones", 0, "every so many-th clone never ends; 0 is none")
	f.StringVar(&v.DegradedPool, "degradedPool", "", "pool whose nodes cannot take a new configuration")
	f.StringVar(&v.LostNode, "lostNode", "", "node that is lost")
	f.DurationVar(&v.LostAfter, "lostAfter", time.Minute, "when it is lost, after the first machine began to run on it")
	return f
}

// Parse reads figures by their keys; those that are not given are the defaults.
// Durations are divided by the scale of time, rates multiplied. The error names
// a key or value that cannot be.
func Parse(given map[string]string, scale float64) (Virt, error) {
	var v Virt
	f := v.flags()
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if f.Lookup(key) == nil {
			return v, fmt.Errorf("there is no figure %q; %s", key, nearest.Hint(key, Keys(), "docs/virt-lab.md lists them"))
		}
		if err := f.Set(key, given[key]); err != nil {
			return v, fmt.Errorf("%s=%s: want %s", key, given[key], kindOf(f.Lookup(key)))
		}
	}
	if err := check(f); err != nil {
		return v, err
	}
	v.QPS *= scale
	f.VisitAll(func(one *flag.Flag) {
		if d, ok := one.Value.(flag.Getter).Get().(time.Duration); ok {
			one.Value.Set(time.Duration(float64(d) / scale).String())
		}
	})
	return v, nil
}

// check refuses what nothing can be planted with.
func check(f *flag.FlagSet) (err error) {
	least := map[string]float64{"cloneWorkers": 1, "qps": 0.1, "burst": 1}
	f.VisitAll(func(one *flag.Flag) {
		var figure float64
		switch value := one.Value.(flag.Getter).Get().(type) {
		case time.Duration:
			figure = float64(value)
		case int:
			figure = float64(value)
		case float64:
			figure = value
		}
		if err == nil && (!(figure >= least[one.Name]) || math.IsInf(figure, 0)) {
			err = fmt.Errorf("%s=%s: want at least %g", one.Name, one.Value, least[one.Name])
		}
	})
	return err
}

func kindOf(f *flag.Flag) string {
	switch f.Value.(flag.Getter).Get().(type) {
	case time.Duration:
		return "a duration such as 1.5s"
	case int:
		return "a whole number"
	case bool:
		return "true or false"
	default:
		return "a number"
	}
}

// ParseList reads "KEY=VALUE,KEY=VALUE" as written on a command line; empty is
// none.
func ParseList(text string) (map[string]string, error) {
	given := map[string]string{}
	if text == "" {
		return given, nil
	}
	for _, one := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(one, "=")
		if !ok {
			return nil, fmt.Errorf("%q: want KEY=VALUE", one)
		}
		given[key] = value
	}
	return given, nil
}

// List writes figures as ParseList reads them.
func List(given map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(given)) {
		list = append(list, key+"="+given[key])
	}
	return strings.Join(list, ",")
}

// Keys are the figures by name, in order.
func Keys() []string {
	var keys []string
	new(Virt).flags().VisitAll(func(f *flag.Flag) { keys = append(keys, f.Name) })
	return keys
}

// Figure is one of the figures for a reader.
type Figure struct{ Key, Default, Meaning string }

// Figures lists all of them.
func Figures() []Figure {
	var all []Figure
	new(Virt).flags().VisitAll(func(f *flag.Flag) { all = append(all, Figure{f.Name, f.DefValue, f.Usage}) })
	return all
}
