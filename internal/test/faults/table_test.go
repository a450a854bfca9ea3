package faults

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"syscall"
	"time"
)

// load is a column of the matrix: what is loaded, and by which command.
type load struct {
	name string
	args []string
	// api says that it goes through the proxy, to a lab. Created is the resource of
	// which it makes one object for each request on record; "" where that is not so.
	api     bool
	created string
	// virt says that its lab has virtual machines, and that it is there once.
	virt bool
	// slow are further arguments of a run that something is done to while it is
	// under way.
	slow []string
	// bound is within which any run of it must have ended, whatever happens.
	bound time.Duration
	// some is the moment when a part of the load is in place. Later are the moments
	// after the hold has begun at which the run goes on for a while, and last those
	// at which it ends by itself right away: SIGKILL alone comes at these.
	some        moment
	later, last []moment
	// servers are the names of the processes that serve it, on this machine.
	servers []string
}

// moments returns those at which a signal finds the run with something still to do.
func (l load) moments() []moment {
	return append([]moment{made(), begun(), raising(), l.some, holding()}, l.later...)
}

// Moments at which a fault comes: SIGKILL at any, SIGTERM where the run still has
// something to do, and what is done to the target when a part of the load is there.
func atAny(l load) []moment    { return append(l.moments(), l.last...) }
func atWork(l load) []moment   { return l.moments() }
func underWay(l load) []moment { return []moment{l.some} }

// loads returns the columns. A run of each takes a few seconds.
func loads() []load {
	// In a cluster the result is written before the target is emptied, which takes
	// seconds; on this machine it is the last that a run does. A stream that is
	// simulated has nothing to remove, and IO only a file.
	cluster, local := []moment{held(), removing(), written()}, []moment{held(), removing()}
	return []load{
		{name: "pods by density", api: true, created: "pods", bound: 150 * time.Second, some: created(3), later: cluster, slow: []string{"--pace", "4"},
			args: []string{"node-density", "--levels", "20", "--pace", "25", "--hold", "500ms", "--step-timeout", "20s", "--slo", "all Ready"}},
		{name: "pods by rate", api: true, created: "pods", bound: 150 * time.Second, some: created(3), later: cluster, slow: []string{"--hold", "9s", "--hold-max", "9s"},
			args: []string{"node-density", "--axis", "rate", "--levels", "6", "--hold", "4s", "--hold-max", "4s", "--life", "1s", "--step-timeout", "20s", "--slo", "all Ready within 15s"}},
		{name: "described objects", api: true, created: "deployments", bound: 150 * time.Second, some: created(3), later: cluster, slow: []string{"--pace", "1"},
			args: []string{"./deployments", "--levels", "10", "--pace", "10", "--hold", "500ms", "--step-timeout", "20s"}},
		{name: "machines", api: true, virt: true, bound: 150 * time.Second, some: created(3), later: cluster,
			args: []string{"vm-boot-storm", "--levels", "4", "--hold", "500ms", "--step-timeout", "20s"}},
		{name: "stream", bound: 30 * time.Second, some: windows(3), last: []moment{held(), written()},
			args: []string{"simulated", "--axis", "requests", "--levels", "300", "--hold", "3s"}},
		{name: "router", bound: 120 * time.Second, some: windows(3), later: local, last: []moment{written()}, servers: []string{"haproxy"},
			args: []string{"router", "--axis", "rate", "--levels", "100", "--hold", "3s"}, slow: []string{"--hold", "9s", "--hold-max", "9s"}},
		{name: "volumes", bound: 120 * time.Second, some: created(1), later: local, last: []moment{written()}, servers: []string{"glusterd", "glusterfsd"},
			args: []string{"gluster-volumes", "--levels", "2", "--hold", "1s"}, slow: []string{"--hold", "9s"}},
		{name: "IO", bound: 60 * time.Second, some: windows(3), last: []moment{held(), removing(), written()}, servers: []string{"fio"},
			args: []string{"io-volumes", "--axis", "rate", "--levels", "50", "--hold", "3s", "--set", "path=mount", "--set", "size=1MiB", "--set", "drive=false", "--slo", "errors <= 0%"}},
	}
}

// must names what must hold of a faulted run beside its twin, the same run without the
// fault. Under every fault counts equal the proxy's, analyze prints what the run printed,
// the planted secret appears nowhere, the run ends within its bound, and nothing of it
// remains, or it names the rest with the command that removes it.
type must string

const (
	healed  must = "the twin's verdict"
	told    must = "the twin's verdict, inconclusive, or what names the fault"
	named   must = "a breach whose first sentence is the fault, where the load waits for it"
	refused must = "an error that names it, exit code 5, or the twin's verdict"
	resumed must = "resumed, it ends with the twin's verdict"
	prompt  must = "it ends within 2 s, and names what removes the rest"
)

// fault is a row of the matrix.
type fault struct {
	name string
	must must
	// plan are the rules of the proxy, drawn again for each run where they are drawn.
	plan func(*rand.Rand) []Rule
	// act is done to a run that is under way; it returns what takes it back.
	act func(c *cell) (undo func())
	// at are the moments of a run at which the fault comes, of which the seed draws
	// one; nil where the proxy makes it.
	at func(l load) []moment
	// alone says that it meets all that a lab runs.
	alone bool
	// on are the loads that it is made on, in both sizes of the matrix; short are
	// those of the short one.
	on, short []string
	// times holds how often each runs in the short matrix and in the whole one; 0 means once.
	times [2]int
	// elsewhere says by load why it is not made here: another test makes it, or it
	// cannot occur.
	elsewhere map[string]string
	says      *regexp.Regexp // what names it
	// waits lists the loads whose objects wait for what a fault that must be named stops, until
	// the run finds that out; other loads report it.
	waits []string
}

// mustOn returns what must hold of the fault on a load.
func (f fault) mustOn(l load) must {
	if f.must == named && !slices.Contains(f.waits, l.name) {
		return told
	}
	return f.must
}

const (
	density, rate, objects, machines = "pods by density", "pods by rate", "described objects", "machines"
	stream_, router, volumes, io_    = "stream", "router", "volumes", "IO"
	noAPI                            = "cannot occur: it has no API server"
	inRows                           = "each component has rows of its own"
	servers                          = "(?i)haproxy|server|gluster|brick|fio|answer|timeout|mount|stood still"
	noPlaces                         = "cannot occur: it has no places of its own"
)

func pods() []string   { return []string{density, rate} }
func apis() []string   { return []string{density, rate, objects, machines} }
func locals() []string { return []string{router, volumes, io_} }
func every() []string {
	return []string{density, rate, objects, machines, stream_, router, volumes, io_}
}

// local says why what is done to an API does not occur elsewhere.
func local() map[string]string {
	return map[string]string{stream_: noAPI, router: noAPI, volumes: noAPI, io_: noAPI}
}

// proxied returns a fault of the proxy's, in a plan that is always the same.
func proxied(name string, m must, says string, short []string, rules ...Rule) fault {
	return fault{name: name, must: m, plan: func(*rand.Rand) []Rule { return rules }, on: apis(), short: short, elsewhere: local(), says: regexp.MustCompile(says)}
}

// table returns the matrix: each row a fault, and on which loads it is made.
func table() []fault {
	creates, watches := Match{Verb: "create"}, Watches("")
	const second = time.Second
	list := []fault{
		proxied("429 with Retry-After, 5% of creates", healed, "429|too many", []string{density, rate}, Rule{On: creates, Do: Busy(second), Share: 0.05}),
		proxied("429 without, 10% of all", healed, "429|too many", []string{objects}, Rule{Do: Status(429), Share: 0.1}),
		proxied("500, 5% of all", healed, "500|nternal", []string{density}, Rule{Do: Status(500), Share: 0.05}),
		proxied("503, 10% of all", healed, "503|unable", []string{density, rate}, Rule{Do: Status(503), Share: 0.1}),
		proxied("504, 5% of all", healed, "504|imeout", []string{objects}, Rule{Do: Status(504), Share: 0.05}),
		proxied("504 after the create took place, 5%", healed, "504|imeout", []string{density}, Rule{On: creates, Do: StatusAfter(504), Share: 0.05}),
		proxied("409 conflict, 5% of creates", healed, "409|onflict|cannot be fulfilled", []string{rate}, Rule{On: creates, Do: Status(409), Share: 0.05}),
		proxied("reset before, 5% of creates", healed, "reset|EOF|connection", []string{density}, Rule{On: creates, Do: ResetBefore(), Share: 0.05}),
		proxied("reset after the create took place, 5%", healed, "reset|EOF|connection", []string{rate, density}, Rule{On: creates, Do: ResetAfter(), Share: 0.05}),
		proxied("watches cut, 2% of events", healed, "watch", []string{density, objects}, Rule{On: watches, Do: Cut(), Share: 0.02}),
		proxied("events duplicated, 10%", healed, "watch", []string{rate}, Rule{On: watches, Do: Duplicate(), Share: 0.1}),
		proxied("events late by 1 s", healed, "watch|news|lag", []string{density}, Rule{On: watches, Do: Late(second), From: second}),
		proxied("410 gone, 2% of events", healed, "watch", []string{density}, Rule{On: watches, Do: Gone(), Share: 0.02}),
		proxied("events swapped, 5%", told, "watch|news", []string{density}, Rule{On: watches, Do: Swap(), Share: 0.05}),
		proxied("events dropped, 2%", told, "watch|news", []string{density, rate}, Rule{On: watches, Do: Drop(), Share: 0.02}),
		proxied("events late by 8 s", told, "watch|news|lag", []string{rate}, Rule{On: watches, Do: Late(8 * second), From: second}),
		proxied("an oversized event in each 50", told, "watch", []string{density}, Rule{On: watches, Do: Oversized(), Share: 0.02}),
		proxied("a garbage event in each 50", told, "watch|decode", []string{density}, Rule{On: watches, Do: Garbage(), Share: 0.02}),
		proxied("watches of nodes and namespaces hang", told, "watch|news", []string{density}, Rule{On: Watches("nodes"), Do: Hang()}, Rule{On: Watches("namespaces"), Do: Hang()}),
		proxied("slow bodies, 2 s, 5% of all", told, "slow|answer|late", nil, Rule{Do: SlowBody(2 * second), Share: 0.05}),
		proxied("stalled bodies, 2% of creates", told, "answer|timeout|deadline", nil, Rule{On: creates, Do: StalledBody(), Share: 0.02}),
		proxied("black holes, 2% of creates", told, "answer|timeout|deadline", nil, Rule{On: creates, Do: BlackHole(), Share: 0.02}),
		proxied("expired certificates from 1 s on", told, "certificate|expired|reach|answer", nil, Rule{Do: ExpiredCertificate(), From: second}, Rule{On: creates, Do: ResetBefore(), Share: 0.1, From: second}),
		proxied("network cut for 3 s", told, "cut|answer|reach|watch|stood still|API server", []string{density}, Rule{On: creates, Do: NetworkCut(3 * second), Nth: 12}),
		proxied("network cut for 10 minutes", told, "cut|answer|reach|watch|stood still|API server", nil, Rule{On: creates, Do: NetworkCut(10 * time.Minute), Nth: 12}),
		{name: "two to four of those that heal, at once", must: healed, plan: mix, on: apis(), short: pods(), times: [2]int{1, 6}, elsewhere: local(), says: regexp.MustCompile(".")},
	}
	for _, c := range []struct {
		name, says   string
		short, waits []string
	}{
		// Four machines are all there before anybody is missed.
		{"kube-scheduler", "(?i)schedul", pods(), []string{density, rate, objects}},
		{"kube-controller-manager", "(?i)controller", nil, []string{objects}},
		{"simulated-nodes", "(?i)nodes?\\b", nil, []string{density, rate, objects}},
		{"etcd", "(?i)etcd|stood still|write|no answer|API server", nil, []string{density, rate, objects}},
		{"kube-apiserver", "(?i)API server|no answer|reach|stood still|watch", nil, []string{density, rate, objects}},
	} {
		elsewhere := map[string]string{stream_: noAPI, router: "its servers are stopped: TestMeasuredAFreezeInEveryLoad", volumes: "bricks and mounts: TestVolumesThatFail; glusterd: TestVolumesOfAGlusterdThatStalls",
			io_: "TestMeasuredAFreezeInEveryLoad, TestIOOnGlusterThatBreaks"}
		list = append(list,
			fault{name: c.name + " stopped until the end", must: named, act: stopped(c.name), at: underWay, alone: true, on: apis(), short: c.short, waits: c.waits, elsewhere: elsewhere, says: regexp.MustCompile(c.says)},
			fault{name: c.name + " killed for good", must: named, act: killed(c.name), at: underWay, alone: true, on: apis(), waits: c.waits, elsewhere: elsewhere, says: regexp.MustCompile(c.says)},
			fault{name: c.name + " killed and started again", must: told, act: restarted(c.name), at: underWay, alone: true, on: apis(), elsewhere: elsewhere, says: regexp.MustCompile(c.says)})
	}
	elsewhere := map[string]string{density: inRows, rate: inRows, objects: inRows, machines: inRows, stream_: "cannot occur: it is simulated in the program"}
	list = append(list,
		fault{name: "all that serve it stopped until the end", must: told, act: serversGet(syscall.SIGSTOP), at: underWay, on: locals(), says: regexp.MustCompile(servers), elsewhere: elsewhere},
		fault{name: "all that serve it killed", must: told, act: serversGet(syscall.SIGKILL), at: underWay, on: locals(), short: []string{router}, says: regexp.MustCompile(servers), elsewhere: elsewhere},
		fault{name: "node deleted", must: told, act: nodeDeleted, at: underWay, on: []string{density, rate, objects}, short: []string{density},
			says: regexp.MustCompile(`(?i)nodes?\b`), elsewhere: map[string]string{machines: "TestFaultsOfVirtualMachines", stream_: noPlaces, router: noPlaces,
				volumes: "a storage server's bricks: TestVolumesThatFail", io_: "TestIOOnGlusterThatBreaks"}},
		fault{name: "node cordoned", must: told, act: nodeCordoned, at: underWay, on: []string{density, rate, objects}, short: []string{density},
			says: regexp.MustCompile(`(?i)nodes?\b`), elsewhere: map[string]string{machines: "as with pods", stream_: noPlaces, router: noPlaces, volumes: noPlaces, io_: noPlaces}},
		fault{name: "SIGKILL of ours", must: resumed, at: atAny, on: every(), short: []string{density, rate, stream_}, times: [2]int{3, 20}},
		fault{name: "SIGTERM of ours", must: prompt, at: atWork, on: every(), short: []string{density, stream_, router}, times: [2]int{3, 5}},
		fault{name: "the run directory is read-only", must: refused, says: regexp.MustCompile("read-only"), on: every(), short: []string{density, stream_}},
	)
	for _, size := range []string{"8k", "24k", "48k", "96k", "192k"} {
		list = append(list, fault{name: "a disk of " + size + " is full", must: refused, says: regexp.MustCompile("no space left"), on: every(), short: map[string][]string{"48k": {density, stream_}}[size]})
	}
	return append(list, fault{name: "the clock that is passed in steps", must: told, elsewhere: map[string]string{
		density: "simulated is enough: the engine's clock is one", rate: "as beside", objects: "as beside", machines: "as beside",
		stream_: "TestTheClockThatIsPassedInSteps", router: "as beside", volumes: "as beside", io_: "as beside"}})
}

// mix draws several faults that a client can heal.
func mix(r *rand.Rand) []Rule {
	kinds := []func(share float64) Rule{
		func(s float64) Rule { return Rule{On: Match{Verb: "create"}, Do: Busy(time.Second), Share: s} },
		func(s float64) Rule { return Rule{Do: Status(500), Share: s} },
		func(s float64) Rule { return Rule{Do: Status(503), Share: s} },
		func(s float64) Rule { return Rule{On: Match{Verb: "create"}, Do: StatusAfter(504), Share: s} },
		func(s float64) Rule { return Rule{On: Match{Verb: "create"}, Do: Status(409), Share: s} },
		func(s float64) Rule { return Rule{On: Match{Verb: "create"}, Do: ResetBefore(), Share: s} },
		func(s float64) Rule { return Rule{On: Match{Verb: "create"}, Do: ResetAfter(), Share: s} },
		func(s float64) Rule { return Rule{On: Watches(""), Do: Cut(), Share: s / 3} },
		func(s float64) Rule { return Rule{On: Watches(""), Do: Duplicate(), Share: s} },
		func(s float64) Rule { return Rule{On: Watches(""), Do: Gone(), Share: s / 3} },
	}
	var rules []Rule
	for _, i := range r.Perm(len(kinds))[:2+r.IntN(3)] {
		rules = append(rules, kinds[i](0.02+0.06*r.Float64()))
	}
	return rules
}
