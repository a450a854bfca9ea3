package judge

import (
	"maps"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// confidence is that of every interval in a result.
const confidence = 0.95

// judged is a step as it was judged, with what the findings over the whole run
// need of it besides.
type judged struct {
	Step
	message   string
	guarded   bool              // a guard stopped its load
	requested int               // objects that its own requests on record ask for
	binding   map[string]string // by goal: what it broke on
	hits      []signature.Hit
	samples   map[string][]part // of a comparison, by milestone
	// largest are the objectives that were judged by a maximum.
	largest []string
	// stood is how long all writes stood still at most, in seconds.
	stood float64
	// others is what other programs used of the CPUs, in percent; 0 where that
	// is no more than is tolerated.
	others float64
	// Where it is the first step, it tells what is normal: how often each
	// trouble was seen, of so many objects, and its figures.
	asked     int
	sightings map[BreachKind]int
	normal    map[string]float64
	// again says that the step was cut and is made again by a run that was
	// resumed: it decides nothing.
	again bool
}

// judge judges a step by its facts. The first is the first step of the run that
// decides anything, nil for that step itself.
func judge(spec *Spec, f *facts, first *judged) *judged {
	s := &judged{Step: f.head, message: f.message, guarded: len(f.guards) > 0, requested: f.asked, asked: len(f.units), binding: make(map[string]string)}
	s.Start, s.End, s.Seconds = spec.wall(f.start), spec.wall(f.end), (f.end - f.start).Seconds()
	if f.reached != never {
		s.ReachSeconds = new((f.reached - f.start).Seconds())
	}
	outcomes := unitOutcomes(spec, f)
	for _, x := range outcomes {
		s.Objects.count(x)
	}
	s.Reasons = reasonsOf(spec, f, outcomes)
	v := &verdicts{spec: spec, f: f, step: s, normal: first.asBaseline(), outcomes: outcomes}
	s.Latency, v.samples = latenciesOf(spec, f, outcomes)
	s.APIRequests, v.dropped = requestsOf(f)
	for _, x := range f.own {
		s.Retries429 += x.throttled
	}
	s.InFlightMax, s.WatchLag, s.Resources = inFlight(f.own), f.canaries.lag(), f.readings.resources()
	var limits []BoundShare
	s.Concurrent, limits = concurrentIn(spec, f)
	s.Groups = groupsOf(spec, f, outcomes)
	s.OwnDelay, s.Logs = f.readings.ownDelay, f.logs
	if f.stream != nil {
		f.stream.fill(spec, f, v)
	} else if f.head.Open {
		s.Arrivals = arrivalsOf(f)
		s.OfferedRate, s.AchievedRate, v.achieved = arrivalRates(f, s.Arrivals)
		s.Backlog = backlogOf(f, s.Arrivals.Judged)
	} else {
		s.OfferedRate, s.AchievedRate, v.achieved = ratesOf(f)
	}
	s.Metrics = metricsOf(spec, f, s)
	if b := s.Backlog; b != nil {
		if mean := s.Latency[spec.Kind.There].Mean; mean != nil && s.AchievedRate != nil {
			b.Balance = finite(round(*mean**s.AchievedRate, 3))
		}
	}
	s.Bottleneck, s.others = bottleneckOf(spec, f, limits)
	if b := s.Bottleneck.bound(); f.stream != nil {
		s.AtLeast = b != nil && b.generator || s.OwnDelay.short(s.Open)
	}
	s.EffectiveLevel = effective(f, s, outcomes)
	s.Goals = make(map[string]slo.Verdict, len(spec.Goals))
	s.Verdict, s.VerdictWhy = slo.Inconclusive, "no goal was given"
	v.addGuards()
	for i, g := range spec.Goals {
		verdict, why := v.goal(g)
		s.Goals[g.Name] = verdict
		if i == 0 {
			s.Verdict, s.VerdictWhy = verdict, why
		}
	}
	s.orderBreaches(spec, f, first)
	s.describe(f, first)
	if spec.Arms != nil {
		s.samples = partsOf(f, v.samples)
		s.Params = spec.Arms.Params[s.Arm]
	}
	return s
}

// unitOutcome is what became of one object asked for.
type unitOutcome int8

const (
	unitReady unitOutcome = iota
	unitNeverReady
	unitLost
	unitCreateFailed
	unitDropped
)

// count adds one object to the account.
func (o *Objects) count(f unitOutcome) {
	switch f {
	case unitReady:
		o.Ready++
	case unitNeverReady:
		o.NeverReady++
	case unitLost:
		o.Lost++
	case unitCreateFailed:
		o.CreateFailed++
	case unitDropped:
		o.Dropped++
	}
	o.Created = o.Ready + o.NeverReady + o.Lost
	o.Intended = o.Created + o.CreateFailed + o.Dropped
}

// unitOutcomes is what became of each object by the end of a step. Whether it is
// there is judged now; how long it took is judged by the step that made it.
func unitOutcomes(spec *Spec, f *facts) []unitOutcome {
	outcomes := make([]unitOutcome, len(f.units))
	for i := range f.units {
		outcomes[i] = unitOutcomeOf(spec, f, &f.units[i])
	}
	return outcomes
}

func unitOutcomeOf(spec *Spec, f *facts, u *unit) unitOutcome {
	o := u.object
	switch {
	case o == nil && u.slot.outcome == record.SlotFailed:
		// With news of the object its request has succeeded, whatever the
		// answer was.
		return unitCreateFailed
	case o == nil && u.slot.outcome == record.SlotDropped:
		return unitDropped
	case o == nil:
	case f.head.Open && u.latency(f.there) <= f.timeout:
		return unitReady // it is removed as it ages
	case o.there && (!u.own || u.latency(f.there) <= f.timeout):
		return unitReady
	case o.there || o.failed || o.gone:
		return unitNeverReady
	case o.reason != "" && o.reason == spec.Kind.Unplaced && !f.blind:
		// While the watch is cut it may have found a place.
		return unitNeverReady
	}
	if f.blind || f.cut() {
		return unitLost
	}
	return unitNeverReady
}

// sample holds the latencies to one milestone.
type sample struct {
	stats.Sample
	lost int // of the censored, those whose state is not known
}

// part is the sample of one component's objects, or of all.
type part struct {
	component string // "" is all
	stats.Sample
}

// partsOf are a step's samples, with those of each component where its objects
// are of several.
func partsOf(f *facts, samples map[string]sample) map[string][]part {
	parts := make(map[string][]part)
	if f.stream != nil {
		for _, x := range f.stream.ByComponent(f.kind.There, f.names) {
			parts[x.Milestone] = append(parts[x.Milestone], part{x.Component, x.Sample})
		}
		return parts
	}
	var components []string
	own := make(map[string][]*unit)
	for i := range f.units {
		if u := &f.units[i]; u.own {
			own[u.slot.component] = append(own[u.slot.component], u)
		}
	}
	if len(own) > 1 {
		components = slices.Sorted(maps.Keys(own))
	}
	for name, s := range samples {
		parts[name] = append(parts[name], part{"", s.Sample})
		m := f.of(name)
		for _, component := range components {
			var values []float64
			for _, u := range own[component] {
				if l := u.latency(m); l <= f.timeout {
					values = append(values, l.Seconds())
				}
			}
			parts[name] = append(parts[name], part{component, stats.NewSample(values, len(own[component])-len(values))})
		}
	}
	return parts
}

// effective is the level of those objects that were ready: an iteration counts
// only whole, since half of one does no work.
func effective(f *facts, s *judged, outcomes []unitOutcome) *float64 {
	account := s.Account()
	intended := max(account.Intended, f.setOut)
	if account.Intended == 0 {
		return nil
	}
	if s.Open {
		return s.AchievedRate
	}
	if account.Ready == intended {
		return new(s.LevelReached)
	}
	if f.stream != nil {
		return nil // no part of the clients was idle
	}
	// A request that is not on record belongs to no iteration that is known.
	short := make(map[int]bool)
	for i, u := range f.units {
		if outcomes[i] != unitReady && u.slot.onRecord {
			short[u.slot.iteration] = true
		}
	}
	whole := 0
	for _, u := range f.units {
		if u.slot.onRecord && !short[u.slot.iteration] {
			whole++
		}
	}
	var level float64
	if f.places > 0 {
		level = float64(f.others+whole) / float64(f.places)
	} else {
		level = s.LevelReached * (float64(whole) / float64(intended))
	}
	return new(round(level, 6))
}
