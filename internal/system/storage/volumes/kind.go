package volumes

import (
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
)

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
