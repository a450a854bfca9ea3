package network

import (
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/load"
)

// The axes that a path can be loaded along.
const (
	axisStreams = "streams"
	axisRate    = "rate"
	axisSize    = "size"
)

// The sources of samples.
const (
	sourceClient   = "client"        // this program, with the generator in it, as the program's own readings are
	sourceServer   = "server"        // the process that answers
	sourceCarriers = "path programs" // those that carry packets in user space
	sourcePath     = "path"          // what crossed it, since the step began
	sourceAll      = "client, server, path and softirqs"
	sourceMachine  = "machine" // this machine, as every target's
	sourceShares   = "path shares"
)

// Values of sourcePath, which only grow but for the queue.
const (
	payloadBytes = "payloadBytes" // of the answers and their heads, as they come in
	payloadGB    = "payloadGB"
	payloadGbit  = "payloadGbit"
	thousands    = "thousandRequests"
	wireBytes    = "wireBytes" // both ways, with all headers from Ethernet's on
	packets      = "packets"
	retransmits  = "retransmits"
	drops        = "drops"
	usedSeconds  = "usedSeconds" // CPU time that readings of processes hold already
)

func requests() record.ObjectKind {
	of := func(source, value string, fold record.FoldKind) record.Fold {
		return record.Fold{Source: source, Value: value, Fold: fold}
	}
	cost := func(name, title, help, of1, value string, per string) record.Metric {
		by := of(sourcePath, per, record.FoldDifference)
		return record.Metric{Name: name, Title: title, Unit: "s", Help: help, Of: of(of1, value, record.FoldDifference), Per: &by}
	}
	perPayload := of(sourcePath, payloadBytes, record.FoldDifference)
	return record.ObjectKind{
		Object: record.Noun{One: "request", Many: "requests"},
		Place:  record.Noun{One: "machine", Many: "machines"},
		Milestones: []record.Milestone{
			{Name: load.Connected, Owner: "path"}, {Name: load.Response, Owner: "path and server"},
		},
		There:    load.Response,
		Measures: []record.Measure{record.RequestErrors(0)},
		Metrics: append([]record.Metric{
			{Name: "throughput", Unit: "Gbit/s", Help: "bits of answers per second, without headers", LessIsWorse: true, Of: of(sourcePath, payloadGbit, record.FoldPerSecond)},
			record.AchievedRate("requests answered per second"),
			cost("cpuPerGB", "CPU per GB", "CPU time of client, server, programs of the path and the kernel's softirqs for each 1e9 bytes of answers", sourceAll, usedSeconds, payloadGB),
			cost("cpuPer1000", "CPU per 1000 requests", "CPU time of client, server, programs of the path and the kernel's softirqs for each 1000 requests", sourceAll, usedSeconds, thousands),
			cost("clientCPUPer1000", "client CPU per 1000 requests", "CPU time of the client for each 1000 requests", sourceClient, usedSeconds, thousands),
			cost("serverCPUPer1000", "server CPU per 1000 requests", "CPU time of the server for each 1000 requests", sourceServer, record.ValueCPU, thousands),
			cost("pathCPUPer1000", "path CPU per 1000 requests", "CPU time of the programs that carry packets where the kernel does not, for each 1000 requests", sourceCarriers, record.ValueCPU, thousands),
			cost("softirqPer1000", "softirq per 1000 requests", "time of all processors in interrupts and softirqs for each 1000 requests; of whatever program; kernels that do not account for it apart have it in the time of client and server, too", sourceMachine, "interruptSeconds", thousands),
			{Name: "wireBytesPerByte", Title: "wire bytes per payload byte", Help: "bytes that crossed the client's link, both ways and with all headers, for each byte of an answer", Of: of(sourcePath, wireBytes, record.FoldDifference), Per: &perPayload},
			{Name: "packets", Unit: "/s", Help: "packets per second on the client's link, both ways; one that is segmented later counts once", Of: of(sourcePath, packets, record.FoldPerSecond)},
			{Name: "retransmits", Help: "TCP segments that client or server sent again", Of: of(sourcePath, retransmits, record.FoldDifference)},
			{Name: "drops", Help: "packets that interfaces of the path dropped, or queues of processors (softnet), of whatever program", Of: of(sourcePath, drops, record.FoldDifference)},
		}, record.UseOf(sourceServer, "the server")...),
		Charts: []record.Chart{
			{Title: "Path: shares in use", Source: sourceShares, Values: []record.Value{
				{Key: "link", Name: "link's rate"}, {Key: "softirq", Name: "busiest softirq"}, {Key: "carriers", Name: "path programs"}, {Key: "server", Name: "server"}, {Key: "client", Name: "client"},
				{Key: "window", Name: "window"}, {Key: "loss", Name: "loss"},
			}},
		},
		Bounds: []record.Bound{
			{Name: "link", What: "the rate of the link (linkRate)", Source: sourceShares, Value: "link", Full: 0.9},
			{Name: "softirq", What: "one processor's softirqs, in which the kernel carries packets", Source: sourceShares, Value: "softirq", Full: 0.9},
			{Name: "carriers", What: "the processor of the programs that carry packets in user space", Source: sourceShares, Value: "carriers", Full: 0.9},
			{Name: "server", What: "the processor of the server", Source: sourceShares, Value: "server", Full: 0.9},
			{Name: "client", What: "the processor of the client, which is the generator's", Source: sourceShares, Value: "client", Full: 0.9, Generator: true},
			{Name: "window", What: "TCP's window: the server waited until the client takes more", Source: sourceShares, Value: "window", Full: 0.5, Slow: true},
			{Name: "loss", What: "loss: TCP sent less, since segments had to be sent again", Source: sourceShares, Value: "loss", Full: 0.5, Slow: true},
		},
	}
}
