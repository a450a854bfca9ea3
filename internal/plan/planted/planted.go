// Package planted holds what is planted in a lab with simulated virtual machines: times, limits and faults.
// The defaults are calibrated with published figures of a cluster with external Ceph (100 machines boot in
// 102 s and 1000 in 1065 s, bulks of 100 clones are the fastest way to 800, the knee is at 250); they
// reproduce nothing.
package planted

import (
	"reflect"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/settings"
)

// Virt holds the planted figures, declared for package settings.
type Virt struct {
	Import time.Duration `yaml:"import" default:"1m0s" range:"0.." help:"import of an image over HTTP"`

	// A clone takes a worker for CloneTime (or CopyPerGiB), its parent's lock for CloneLock plus
	// CloneContention per clone beyond the workers, and then CloneFinish.
	CloneWorkers    int           `yaml:"cloneWorkers" default:"10" range:"1.." help:"clones that the provisioner works on at once"`
	CloneTime       time.Duration `yaml:"cloneTime" default:"2s" range:"0.." help:"a worker's time for a clone (csi-clone, snapshot)"`
	CloneLock       time.Duration `yaml:"cloneLock" default:"500ms" range:"0.." help:"time for which a clone holds the lock of its parent"`
	CloneContention float64       `yaml:"cloneContention" default:"0.01" range:"0.." help:"share by which that grows with each clone of the parent beyond the workers"`
	CloneFinish     time.Duration `yaml:"cloneFinish" default:"25s" range:"0.." help:"from a clone made by the storage to Succeeded, for all at once"`
	SnapshotTime    time.Duration `yaml:"snapshotTime" default:"1s" range:"0.." help:"a worker's further time with the strategy snapshot"`
	CopyPerGiB      time.Duration `yaml:"copyPerGiB" default:"150ms" range:"0.." help:"a worker's time per GiB with the strategy copy, which needs no lock"`

	// FlattenAbove counts a parent's clones since none was under way; further ones wait for a flattening.
	FlattenAbove  int           `yaml:"flattenAbove" default:"250" range:"0.." help:"clones of a parent, since none was under way, above which each waits for one to be flattened"`
	FlattenPerGiB time.Duration `yaml:"flattenPerGiB" default:"50ms" range:"0.." help:"time per GiB that this takes"`

	// PurgeLimit counts a parent's clones by csi-clone that can be purged.
	PurgeLimit int `yaml:"purgeLimit" default:"100" range:"0.." help:"clones (csi-clone) of a parent that can be purged; the volumes of others stay"`

	// Starting machines take turns of BootShare, plus BootGrowth for each before, and answer after BootTime.
	BootShare      time.Duration `yaml:"bootShare" default:"905ms" range:"0.." help:"what machines that start take turns at"`
	BootGrowth     time.Duration `yaml:"bootGrowth" default:"300µs" range:"0.." help:"what is added to it for each machine that began to start since none did"`
	BootTime       time.Duration `yaml:"bootTime" default:"10s" range:"0.." help:"from Running until a machine answers by SSH"`
	Shutdown       time.Duration `yaml:"shutdown" default:"5s" range:"0.." help:"time that a machine takes to shut down"`
	MigrateRHEL    time.Duration `yaml:"migrateRHEL" default:"14s" range:"0.." help:"live migration of a machine with RHEL"`
	MigrateFedora  time.Duration `yaml:"migrateFedora" default:"23s" range:"0.." help:"live migration of a machine with Fedora"`
	MigrateWindows time.Duration `yaml:"migrateWindows" default:"12s" range:"0.." help:"live migration of a machine with Windows"`
	MigrateOther   time.Duration `yaml:"migrateOther" default:"14s" range:"0.." help:"live migration of any other machine"`

	// MigratePrepare passes from a Scheduled target to the machine's move.
	MigratePrepare time.Duration `yaml:"migratePrepare" default:"1s" range:"0.." help:"preparing the target of a migration"`
	MigrateUnderIO float64       `yaml:"migrateUnderIO" default:"0.04" range:"0.." help:"share by which the live migration of a machine with the label plimsoll.dev/io takes longer"`
	Reboot         time.Duration `yaml:"reboot" default:"8m0s" range:"0.." help:"time for which a node that reboots is not ready"`
	Upgrade        time.Duration `yaml:"upgrade" default:"35m0s" range:"0.." help:"upgrade of a cluster's operators, before its nodes reboot"`
	KVMPerNode     int           `yaml:"kvmPerNode" default:"1000" range:"0.." help:"devices.kubevirt.io/kvm of each node; 0 for none"`

	// QPS and Burst limit virt-controller's requests unless the resource KubeVirt does.
	QPS             float64       `yaml:"qps" default:"200" range:"0.1.." help:"requests per second of virt-controller, unless the resource KubeVirt says otherwise"`
	Burst           int           `yaml:"burst" default:"400" range:"1.." help:"requests that it may send at once"`
	HyperConverged  bool          `yaml:"hyperconverged" default:"false" help:"whether there is a HyperConverged, which overwrites the KubeVirt"`
	StuckMigrations int           `yaml:"stuckMigrations" default:"0" range:"0.." help:"every so many-th migration makes no progress; 0 for none"`
	StuckClones     int           `yaml:"stuckClones" default:"0" range:"0.." help:"every so many-th clone never ends; 0 for none"`
	DegradedPool    string        `yaml:"degradedPool" help:"pool whose nodes cannot take a new configuration"`
	LostNode        string        `yaml:"lostNode" help:"node that is lost"`
	LostAfter       time.Duration `yaml:"lostAfter" default:"1m0s" range:"0.." help:"when it is lost, after the first machine began to run on it"`
}

// Parse reads figures by their keys, divides durations by the scale of time and multiplies rates.
func Parse(given map[string]string, scale float64) (Virt, error) {
	var v Virt
	if err := settings.ReadTexts(given, &v); err != nil {
		return v, err
	}
	v.QPS *= scale
	for _, field := range reflect.ValueOf(&v).Elem().Fields() {
		if d, ok := field.Addr().Interface().(*time.Duration); ok {
			*d = time.Duration(float64(*d) / scale)
		}
	}
	return v, nil
}
