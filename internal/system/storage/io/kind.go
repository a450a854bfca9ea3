package io

import (
	"plimsoll.dev/plimsoll/internal/record"
)

// Axes of IO.
const (
	axisVolumes    = "volumes"
	axisDepth      = "depth"
	axisRate       = "rate"
	axisWorkers    = "workers" // of small files, as is the next
	axisOperations = "operations"
)

const complete = "Complete" // milestone of an IO

// Sources of readings beside the windows.
const (
	sourceFio          = "fio"
	sourceDrive        = "drive" // its device
	sourceThroughput   = "throughput"
	sourceDriveAlone   = "drive alone"
	sourceShare        = "share of the drive"
	sourceLinkAlone    = "link alone"
	sourceLinkShare    = "share of the link"
	sourceSpread       = "spread"
	sourcePgbench      = "pgbench"
	sourceTransactions = "transactions" // Of pgbench in the hold
	sourceTransaction  = "transaction latency"
)

func operations() record.ObjectKind {
	reported := func(name, unit, help, source string, lessIsWorse bool) record.Metric {
		return record.Metric{Name: name, Unit: unit, Help: help, LessIsWorse: lessIsWorse, Of: record.Fold{Source: source, Value: "value", Fold: record.FoldLast}}
	}
	return record.ObjectKind{
		Object:     record.Noun{One: "IO", Many: "IOs"},
		Place:      record.Noun{One: "volume", Many: "volumes"},
		Milestones: []record.Milestone{{Name: complete, Owner: "storage"}},
		There:      complete,
		Generator:  "fio",
		Measures:   []record.Measure{record.RequestErrors(0)},
		Metrics: []record.Metric{
			record.AchievedRate("IOs completed per second (IOPS)"),
			reported("throughput", "B/s", "bytes read and written per second", sourceThroughput, true),
			reported("drive alone", "B/s", "bytes per second of one fio on the file system below the volumes, right before the step", sourceDriveAlone, true),
			reported("share of the drive", "%", "throughput as a share of that of the drive alone", sourceShare, true),
			reported("link alone", "Gbit/s", "what one connection by TCP carries from a storage server of the run's own GlusterFS to its client, right before the step", sourceLinkAlone, true),
			reported("share of the link", "%", "what crossed that link as a share of it; what is written crosses it once for each replica", sourceLinkShare, true),
			reported("finish spread", "s", "by how much earlier the fastest volume had done what the slowest one did in the hold", sourceSpread, false),
			reported("transactions", "/s", "transactions per second of pgbench beside the IO", sourceTransactions, true),
			reported("transaction latency", "s", "mean latency of these", sourceTransaction, false),
		},
		Charts: []record.Chart{
			{Title: "Drive: share of the time busy", Source: sourceDrive, Values: []record.Value{{Key: "busy", Name: "drive"}}},
			{Title: "pgbench: transactions per second", Source: sourcePgbench, Values: []record.Value{{Key: "transactionsPerSecond", Name: "transactions"}}},
		},
		Bounds: []record.Bound{
			{Name: "fio", What: "the processor of fio", Source: sourceFio, Value: "busiest", Full: 0.9, Generator: true},
			{Name: "drive", What: "the drive: its device was busy", Source: sourceDrive, Value: "busy", Full: 0.9},
		},
	}
}

func fileOperations() record.ObjectKind {
	k := operations()
	k.Object, k.Generator, k.Bounds = record.Noun{One: "operation", Many: "operations"}, "the process that works on the files", k.Bounds[1:]
	k.Metrics[0].Help = "operations completed per second"
	return k
}
