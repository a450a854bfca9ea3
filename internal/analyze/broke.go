package analyze

import (
	"cmp"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/slo"
)

// Kind is the sort of trouble that a Breach is.
type Kind string

// The kinds of breaches. The first ones are of bounds, and decide; the others
// are seen on the way, and decide nothing by themselves.
const (
	KindLatency  Kind = "latency"  // a quantile was above its objective
	KindMissing  Kind = "missing"  // objects did not get there, or not in time
	KindErrors   Kind = "errors"   // requests failed
	KindAchieved Kind = "achieved" // fewer got there a second than was asked for
	KindReplaced Kind = "replaced" // objects took the place of others
	KindGuard    Kind = "guard"    // a guard stopped the load

	KindThrottling Kind = "throttling" // answers of 429
	KindScheduling Kind = "scheduling" // no node for an object
	KindReadiness  Kind = "readiness"  // an object that was there is there no more
	KindProbes     Kind = "probes"     // a kubelet's probe failed
	KindRestarts   Kind = "restarts"   // a container ended and was started anew
	KindOOM        Kind = "oom"        // killed for want of memory
	KindEvictions  Kind = "evictions"  // a node or the scheduler put an object out
	KindDeleted    Kind = "deleted"    // an object was deleted, and not by the run
	KindNodes      Kind = "nodes"      // a node is not ready, or under pressure
	KindImages     Kind = "images"     // an image was not pulled
	KindSandbox    Kind = "sandbox"    // a pod's sandbox was not made or not removed
	KindVolumes    Kind = "volumes"    // a volume was not provisioned, attached or mounted
	KindCreation   Kind = "creation"   // a controller was refused an object
	KindWatch      Kind = "watch"      // news was cut off: what came meanwhile is known late
)

// Breach is something that broke, at the moment at which it did. Where Decided
// is set it is a bound of an objective, or a guard, and is why goals did not
// hold; else it was only seen on the way.
type Breach struct {
	Time  string   `json:"time"`
	Step  int      `json:"step"`
	What  string   `json:"what"`
	Value *float64 `json:"value"`
	Bound *float64 `json:"bound"`
	Kind  Kind     `json:"kind"`
	// Decided says that Goals did not hold for it.
	Decided bool     `json:"decided"`
	Goals   []string `json:"goals,omitempty"`
	// First marks, in the list of the run, what broke first in the step that
	// decided it.
	First bool `json:"first"`
	// Usual says that the first step, which held, saw it about as often for
	// each object that it asked for: it belongs to what is normal.
	Usual bool `json:"usual"`
	// Count is how many objects, requests or events it is of, all through the
	// step; Object is the first of them, and Message what was told of it.
	Count   int    `json:"count"`
	Object  string `json:"object,omitempty"`
	Message string `json:"message,omitempty"`
	Load    Load   `json:"load"`

	at record.Micros
}

// Load is how far a step had come at a moment.
type Load struct {
	Asked int `json:"asked"` // objects asked for and in place
	There int `json:"there"` // of them, those that had got there and stay
	// Unplaced had no node. It is 0 where nothing is scheduled.
	Unplaced int `json:"unplaced"`
	// Level is the level that the objects asked for come to; on an axis of
	// arrivals per second it is that of the step.
	Level float64 `json:"level"`
}

// pending is how many objects were asked for and not there.
func (l Load) pending() int { return max(l.Asked-l.There, 0) }

// sighting is one kind of trouble as it is seen in a step.
type sighting struct {
	first record.Micros
	// told is how many objects or requests told of it themselves, events how
	// many events did: both may be of the same.
	told, events    int
	what            string
	object, message string
}

func (s *sighting) count() int { return cmp.Or(s.told, s.events) }

// see notes that a trouble was seen.
func (c *building) see(kind Kind, t record.Micros, what, object, message string) *sighting {
	s, ok := c.seen[kind]
	if !ok {
		s = &sighting{first: t, what: what, object: object, message: message}
		c.seen[kind] = s
	}
	if t < s.first {
		// Events of several goroutines can be on record a little out of order.
		s.first, s.what, s.object, s.message = t, what, object, message
	}
	return s
}

// seeRequest notes what a request met.
func (c *building) seeRequest(r *record.Slot) {
	if r.Throttled > 0 {
		at := r.ThrottledAt
		if at == 0 {
			at = r.Replied // a record of before that was told
		}
		c.see(KindThrottling, at, "the server asked for patience (429)", r.Slot, r.Trouble).told += r.Throttled
	}
	if r.Outcome == record.SlotFailed || r.Outcome == record.SlotUnknown {
		c.see(KindErrors, r.Replied, "requests failed", r.Slot, r.Error).told++
	}
}

// seeState notes what an object tells of itself.
func (c *building) seeState(t record.Micros, r *record.State, was, arrived string) {
	if r.Lost == arrived {
		switch {
		case r.Reason != reasonDeleting:
			c.see(KindReadiness, t, "objects that were there fell from it", r.Object, told(r.Reason, r.Message)).told++
		case !c.Open: // else it is removed as it ages
			c.see(KindDeleted, t, "objects were deleted, and not by the run", r.Object, "").told++
		}
	}
	if r.Reason == was {
		return // the same trouble in other words
	}
	if kind, what := troubleOf(r.Reason, ""); kind != "" {
		c.see(kind, t, what, r.Object, told(r.Reason, r.Message)).told++
	}
}

// seeEvent notes what the cluster has published.
func (c *building) seeEvent(t record.Micros, e *record.KubeEvent) {
	if kind, what := troubleOf(e.Reason, e.Message); kind != "" {
		c.see(kind, t, what, e.Object, told(e.Reason, e.Message)).events++
	}
}

func told(reason, message string) string {
	if message == "" || message == reason {
		return reason
	}
	return reason + ": " + message
}

const reasonDeleting = "Deleting"

// troubleOf is the kind of trouble that a reason tells of, "" for none that is
// known. The reasons are those that the components of Kubernetes give in
// events and in the states of pods and containers.
func troubleOf(reason, message string) (Kind, string) {
	switch reason {
	case reasonUnschedulable, "FailedScheduling", "SchedulerError", "SchedulingGated":
		return KindScheduling, "no node was found for objects"
	case "Unhealthy":
		probe, _, ok := strings.Cut(message, " probe ")
		if !ok || probe != "Readiness" && probe != "Liveness" && probe != "Startup" {
			probe = "A"
		}
		return KindProbes, strings.ToLower(probe) + " probes failed"
	case "ProbeError":
		return KindProbes, "probes could not be made"
	case "CrashLoopBackOff", "Restarted", "Error", "ContainerCannotRun", "RunContainerError", "StartError", "CreateContainerError", "CreateContainerConfigError", "PostStartHookError", "FailedPostStartHook":
		return KindRestarts, "containers ended, or did not start"
	case "BackOff":
		if strings.Contains(message, "pulling image") {
			return KindImages, "images were not pulled"
		}
		return KindRestarts, "containers ended, or did not start"
	case "OOMKilled", "OOMKilling", "SystemOOM":
		return KindOOM, "killed for want of memory"
	case "Evicted", "Preempted", "Preempting", "EvictionThresholdMet", "TaintManagerEviction", "DeletionByTaintManager", "EvictionByEvictionAPI", "TerminationByKubelet":
		return KindEvictions, "objects were put out, or about to be"
	case "NodeNotReady", "NodeNotSchedulable", "NodeHasDiskPressure", "NodeHasInsufficientMemory", "NodeHasInsufficientPID", "NodeNetworkUnavailable", "NodeStatusUnknown", "NodeLost", "KubeletIsDown", "ContainerRuntimeIsDown", "Rebooted", "InvalidDiskCapacity":
		return KindNodes, "nodes were not ready, or under pressure"
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed", "InspectFailed":
		return KindImages, "images were not pulled"
	case "Failed":
		if strings.Contains(message, "image") || strings.Contains(message, "ErrImage") || strings.Contains(message, "ImagePull") {
			return KindImages, "images were not pulled"
		}
		return KindRestarts, "containers ended, or did not start"
	case "FailedCreatePodSandBox", "FailedPodSandBoxStatus", "FailedKillPod", "FailedCreatePodContainer", "NetworkNotReady":
		return KindSandbox, "sandboxes were not made, or not removed"
	case "FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedDetachVolume", "ProvisioningFailed", "FailedBinding", "VolumeFailedDelete", "FailedUnMount", "VolumeResizeFailed":
		return KindVolumes, "volumes were not provisioned, attached or mounted"
	case "FailedCreate":
		return KindCreation, "a controller was refused objects"
	}
	return "", ""
}

// broke notes a bound that was exceeded, which decided a goal: once for each
// step, whatever the goals that share it.
func (c *building) broke(goals []string, b Breach) {
	b.Step, b.Decided = c.ID, true
	for i := range c.Breaches {
		if x := &c.Breaches[i]; x.Decided && x.What == b.What {
			for _, g := range goals {
				if !slices.Contains(x.Goals, g) {
					x.Goals = append(x.Goals, g)
				}
			}
			return
		}
	}
	b.Goals = slices.Clone(goals)
	c.Breaches = append(c.Breaches, b)
}

// goalNames are those of all goals.
func (b *Builder) goalNames() []string {
	names := make([]string, len(b.spec.Goals))
	for i, g := range b.spec.Goals {
		names[i] = g.Name
	}
	return names
}

// order completes a step's breaches: what was only seen is added, all are put
// in order of time, and each gets the load at its moment.
func (b *Builder) order(c *building, f *facts) {
	normal := b.normalStep(c)
	for kind, s := range c.seen {
		n := float64(s.count())
		x := Breach{Step: c.ID, What: s.what, Value: &n, Kind: kind, Count: s.count(), Object: s.object, Message: s.message, at: s.first}
		x.Usual = normal != nil && normal.often(kind)*usualSlack >= n/float64(max(len(f.units), 1))
		c.Breaches = append(c.Breaches, x)
	}
	slices.SortFunc(c.Breaches, func(x, y Breach) int {
		// What was seen comes before the objective that was lost by it.
		return cmp.Or(cmp.Compare(x.at, y.at), compareBool(x.Decided, y.Decided), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.What, y.What))
	})
	moments := make([]record.Micros, len(c.Breaches))
	for i, x := range c.Breaches {
		moments[i] = x.at
	}
	loads := b.loadsAt(c, moments)
	for i := range c.Breaches {
		x := &c.Breaches[i]
		x.Time, x.Load = b.wall(x.at), loads[i]
	}
	c.asked = len(f.units)
	c.sightings, c.seen = make(map[Kind]int, len(c.seen)), nil
	for _, x := range c.Breaches {
		if !x.Decided {
			c.sightings[x.Kind] = x.Count
		}
	}
}

// usualSlack is how much more often than in the first step a trouble may be
// seen and still belong to what is normal.
const usualSlack = 2

// often is how often a trouble was seen for each object of a step.
func (c *building) often(kind Kind) float64 {
	return float64(c.sightings[kind]) / float64(max(c.asked, 1))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// normalStep is the first step, which tells what is normal: nil before it has
// ended, for itself, and where it did not hold.
func (b *Builder) normalStep(c *building) *building {
	for _, s := range b.steps {
		if s == c {
			return nil
		}
		if s.done && !s.again {
			if s.Verdict == slo.Pass {
				return s
			}
			return nil
		}
	}
	return nil
}

// firstOf is the index of what broke first: what is normal is passed over,
// unless nothing else is there. It is -1 where nothing broke.
func firstOf(list []Breach) int {
	if i := slices.IndexFunc(list, func(x Breach) bool { return !x.Usual }); i >= 0 {
		return i
	}
	return min(len(list), 1) - 1
}

// loadsAt is the load of a step at each of several moments, which are in
// order.
func (b *Builder) loadsAt(c *building, moments []record.Micros) []Load {
	loads := make([]Load, len(moments)+1)
	// from is the first moment at or after t: what happened at t holds from
	// there on.
	from := func(t record.Micros) int {
		i, _ := slices.BinarySearch(moments, t)
		return i
	}
	scheduled, isScheduled := b.index["Scheduled"]
	for _, s := range b.place.slots {
		if s.outcome == record.SlotDropped {
			continue
		}
		n := s.count()
		if s.told {
			loads[from(s.sent)].Asked += n
		}
		for i, o := range s.filling() {
			if i >= n {
				break
			}
			if !s.told {
				loads[from(o.first)].Asked++
			}
			end := len(moments)
			if o.gone {
				if t := o.reached(b.milestone(milestoneDeleted)); t != never {
					end = from(t)
				}
			}
			if o.fell != never {
				end = min(end, from(o.fell))
			}
			if t := o.reached(b.arrived); t != never && from(t) < end {
				loads[from(t)].There++
				loads[end].There--
			}
			if isScheduled {
				placed := len(moments)
				if t := o.reached(scheduled); t != never {
					placed = from(t)
				}
				if first := from(o.first); first < placed {
					loads[first].Unplaced++
					loads[placed].Unplaced--
				}
			}
		}
	}
	total := max(b.place.units, c.Objects.Intended)
	for i := range moments {
		if i > 0 {
			loads[i].Asked += loads[i-1].Asked
			loads[i].There += loads[i-1].There
			loads[i].Unplaced += loads[i-1].Unplaced
		}
	}
	for i := range moments {
		l := &loads[i]
		switch {
		case c.Open:
			l.Level = c.Level
		case c.places > 0:
			l.Level = round(float64(c.others+l.Asked)/float64(c.places), 6)
		case total > 0:
			l.Level = round(c.LevelReached*float64(l.Asked)/float64(total), 6)
		}
	}
	return loads[:len(moments)]
}

// BrokeFirst is what broke first in the step that decided a goal: its lowest
// failing level.
type BrokeFirst struct {
	Goal   string  `json:"goal"`
	Step   int     `json:"step"`
	Level  float64 `json:"level"` // that the step reached
	Breach Breach  `json:"breach"`
	// Says is what follows from it.
	Says       string      `json:"says"`
	Conditions *Conditions `json:"conditions"`
}

// functionalMaximum is what the second source document concludes from a limit
// whose cause is not known.
const functionalMaximum = "a limit of one or more components was reached; the functional maximum is lower than these conditions"

// brokeFirst finds what broke first in the step that decided. It is nil where
// every goal held.
func (b *Builder) brokeFirst(goals []GoalResult) *BrokeFirst {
	for _, g := range goals {
		c := b.decidingStep(g)
		if c == nil {
			continue
		}
		i := firstOf(c.Breaches)
		if i < 0 {
			continue
		}
		first := c.Breaches[i]
		first.First = true
		return &BrokeFirst{Goal: g.Name, Step: c.ID, Level: c.LevelReached, Breach: first, Says: functionalMaximum, Conditions: c.Conditions}
	}
	return nil
}

// decidingStep is the step that a goal failed in: the last one at the lowest
// failing level, since that was made from empty; where no line is sought, the
// one at the lowest level. It is nil where the goal did not fail.
func (b *Builder) decidingStep(g GoalResult) *building {
	var best *building
	for _, s := range b.steps {
		if !s.done || s.again || s.Goals[g.Name] != slo.Breach {
			continue
		}
		if l := g.LoadLine; l != nil && l.LowestFailing != nil {
			if s.Level == *l.LowestFailing {
				best = s
			}
			continue
		}
		if best == nil || s.LevelReached < best.LevelReached {
			best = s
		}
	}
	return best
}

// breachesInOrder are the breaches of all steps, and what guards have stopped
// outside of any, in order of time; the first of all is marked.
func (b *Builder) breachesInOrder(first *BrokeFirst) []Breach {
	list := slices.Clone(b.stray)
	for _, s := range b.steps {
		list = append(list, s.Breaches...)
	}
	slices.SortStableFunc(list, func(x, y Breach) int { return cmp.Compare(x.at, y.at) })
	for i := range list {
		x := &list[i]
		x.First = first != nil && x.Step == first.Step && x.Kind == first.Breach.Kind && x.What == first.Breach.What
	}
	if list == nil {
		list = []Breach{}
	}
	return list
}
