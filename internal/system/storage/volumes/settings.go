package volumes

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
)

type settings struct {
	gluster  gluster.Settings // without its places
	mount    bool
	write    int64 // bytes of each volume's file, 0 for none
	creators int   // volumes made in parallel
	options  map[string]string
	distinct int           // number of distinct sets of options
	patience time.Duration // for a mount and a file
	memory   int64         // bytes, 0 for the available memory
	life     time.Duration // of a volume on the axis rate
	wait     time.Duration // before volumes are deleted
	fault    string
}

const (
	faultRestart = "restart" // glusterd alone
	faultReboot  = "reboot"  // every process of a storage server
	faultKill    = "kill"    // the process that serves most bricks
)

func settingsOf(p workload.Params, life time.Duration) (settings, error) {
	s := settings{
		mount: p.Flag("mount"), creators: int(p.Int("creators")), distinct: int(p.Int("distinctOptions")), patience: p.Duration("patience"),
		life: life, wait: p.Duration("deleteAfter"), fault: p.Get("fault"), write: p.Bytes("write"), memory: p.Bytes("memory"),
	}
	switch {
	case s.write > 0 && !s.mount:
		return s, system.ParamMistake("write", "set mount=true, or write=0", "only a volume that is mounted can be written to")
	case s.patience <= 0:
		return s, system.ParamMistake("patience", "for example 30s", "it must be more than 0")
	}
	var err error
	if s.options, err = optionsOf(p.Get("options")); err != nil {
		return s, err
	}
	s.gluster, err = gluster.SettingsOf(p)
	return s, err
}

// optionsOf reads options of volumes: name=value, separated by spaces.
func optionsOf(text string) (map[string]string, error) {
	options := make(map[string]string)
	for word := range strings.FieldsSeq(text) {
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" || value == "" {
			return nil, system.ParamMistake("options", "for example 'performance.io-cache=off network.ping-timeout=10'", "%q is not an option with its value", word)
		}
		options[name] = value
	}
	return options, nil
}

// optionsOf returns the options of volume n. Different ones keep bricks from sharing a process.
func (s settings) optionsOf(n int) map[string]string {
	if s.distinct <= 1 {
		return s.options
	}
	options := maps.Clone(s.options)
	options["network.inode-lru-limit"] = strconv.Itoa(16384 + n%s.distinct)
	return options
}

// kindOn returns the kind of objects on an axis, with the milestones that the settings reach.
func kindOn(k record.ObjectKind, all map[string]settings) record.ObjectKind {
	mounts, writes := false, false
	for _, s := range all {
		mounts, writes = mounts || s.mount, writes || s.write > 0
	}
	k.Milestones = slices.DeleteFunc(slices.Clone(k.Milestones), func(m record.Milestone) bool {
		return !mounts && (m.Name == mounted || m.Name == unmounted) || !writes && (m.Name == written || m.Name == verified)
	})
	return k
}

// Name is the target's name.
const Name = "volumes"

// Axes of the target.
const (
	axisVolumes   = "volumes"
	axisRate      = "rate"
	axisDeletions = "deletions"
	axisBricks    = "bricks"
)

// Milestones of a volume, and of a brick after a fault.
const (
	created   = "Created"
	started   = "Started"
	mounted   = "Mounted"
	written   = "Written"
	ready     = "Ready"
	unmounted = "Unmounted"
	stopped   = "Stopped"
	deleted   = "Deleted"

	hit       = "Hit"
	back      = "Back"
	verified  = "Verified"
	recovered = "Recovered"
)

// Reasons of volumes that are not ready.
const (
	createFailed = "CreateFailed"
	startFailed  = "StartFailed"
	mountFailed  = "MountFailed"
	mountHung    = "MountHung"
	writeFailed  = "WriteFailed"
	noSpace      = "NoSpace"
	brickDown    = "BrickDown"
	wrongData    = "WrongData"
	deleteFailed = "DeleteFailed"
	notBack      = "NotBack"
	noAnswer     = "NoAnswer"
)

// Sources of readings, besides gluster's parts.
const (
	sourceServers  = "storage servers/all" // sum of the servers' parts
	sourceCommands = "commands"            // to glusterd, and mounts
	sourceFault    = "fault"
)

const measureMemory = "memory" // measure of health that protects the machine

func volumes() record.ObjectKind {
	k := kind("volume", "volumes")
	k.Milestones = []record.Milestone{
		{Name: created, Owner: "glusterd"}, {Name: started, Owner: "brick processes"}, {Name: mounted, Owner: "client"},
		{Name: written, Owner: "bricks"}, {Name: ready, Owner: "client"}, {Name: deleted, Owner: "glusterd"},
	}
	k.Created, k.Started, k.There, k.Gone, k.FreshPerStep = created, started, ready, deleted, true
	return k
}

func deletions() record.ObjectKind {
	k := kind("volume", "volumes")
	k.Milestones = []record.Milestone{{Name: unmounted, Owner: "client"}, {Name: stopped, Owner: "brick processes"}, {Name: deleted, Owner: "glusterd"}}
	k.There = deleted
	return k
}

func bricks() record.ObjectKind {
	k := kind("brick", "bricks")
	k.Milestones = []record.Milestone{{Name: hit, Owner: "fault"}, {Name: back, Owner: "glusterd"}, {Name: verified, Owner: "client"}, {Name: recovered, Owner: "client"}}
	k.Created, k.There = hit, recovered
	k.Metrics = append(k.Metrics, record.Metric{Name: "bricks down", Help: "the most bricks that were seen down at a time", Of: record.Fold{Source: sourceFault, Value: "down", Fold: record.FoldMost}})
	return k
}

// kind returns the common parts of this target's kinds.
func kind(one, many string) record.ObjectKind {
	k := record.ObjectKind{
		Object: record.Noun{One: one, Many: many},
		Measures: []record.Measure{
			record.RequestErrors(0),
			{Name: measureMemory, Help: "memory of GlusterFS, in percent of that and what is available besides, or of the parameter memory", Percent: true, Bound: mostMemory},
		},
		Troubles: []record.Trouble{
			{Class: "space", What: "the bricks' file system is full", Reasons: []string{noSpace}},
			{Class: "bricks", What: "bricks went down", Reasons: []string{brickDown, notBack}},
			{Class: "mounts", What: "mounts failed or hung", Reasons: []string{mountFailed, mountHung}},
			{Class: "data", What: "what was read is not what was written", Reasons: []string{wrongData}},
			{Class: "management", What: "glusterd refused, or did not answer", Reasons: []string{createFailed, startFailed, deleteFailed, noAnswer}},
		},
	}
	for _, x := range [][2]string{
		{string(gluster.Bricks), "the processes that serve bricks"}, {string(gluster.Management), "glusterd"},
		{string(gluster.Mounts), "the mounts' processes"}, {sourceServers, "all processes of the storage servers"},
	} {
		use := record.UseOf(x[0], x[1])
		use[1].Help += ", shared memory counted in parts (PSS)"
		k.Metrics = append(k.Metrics, use...)
	}
	most := func(name, unit, help, value string) {
		of := record.Fold{Source: string(gluster.Bricks), Value: value, Fold: record.FoldMost}
		k.Metrics = append(k.Metrics, record.Metric{Name: of.Source + " " + name, Unit: unit, Help: help, Of: of})
	}
	most("processes", "", "processes that serve bricks", "processes")
	most("RSS", "B", "resident memory of the processes that serve bricks, shared memory counted for each", "residentBytes")
	most("threads", "", "threads of the processes that serve bricks", "threads")
	most("open files", "", "open files of the processes that serve bricks", "handles")
	most("ports", "", "ports that bricks listen on", "ports")
	return k
}
