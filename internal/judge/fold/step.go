package fold

import (
	"maps"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/record"
)

// Measured is a step as it was measured, and what outlasts its facts besides.
type Measured struct {
	result.Step
	Message   string // why it was cut
	Guarded   bool   // a guard stopped its load
	Hold      record.Micros
	Requested int // objects that its own requests on record ask for
	Asked     int // objects that it is judged by
	Hits      []signature.Hit
	Parts     map[string][]Part // of a comparison, by milestone
	// Others is what other programs used of the CPUs, in percent; 0 where that
	// is no more than is tolerated.
	Others float64
}

// measure measures a step by its facts.
func measure(spec *result.Spec, f *Facts) *Measured {
	s := &Measured{Step: f.head, Message: f.message, Guarded: len(f.Guards) > 0, Hold: f.hold, Requested: f.asked, Asked: len(f.units)}
	s.Start, s.End, s.Seconds = spec.Wall(f.Start), spec.Wall(f.End), (f.End - f.Start).Seconds()
	if f.Reached != Never {
		s.ReachSeconds = new((f.Reached - f.Start).Seconds())
	}
	if level, other := f.levelLeft(); other {
		s.LevelReached = level
	}
	f.outcomes = unitOutcomes(spec, f)
	for _, x := range f.outcomes {
		countOutcome(&s.Objects, x)
	}
	s.Reasons = reasonsOf(spec, f, f.outcomes)
	s.Latency, f.Samples = latenciesOf(spec, f, f.outcomes)
	s.APIRequests, f.Dropped = requestsOf(f)
	for _, x := range f.own {
		s.Retries429 += x.throttled
	}
	s.InFlightMax, s.WatchLag, s.Resources = inFlight(f.own), f.canaries.lag(), f.readings.Resources()
	var limits []result.BoundShare
	s.Concurrent, limits = concurrentIn(spec, f)
	s.Groups = groupsOf(spec, f, f.outcomes)
	s.OwnDelay, s.Logs = f.readings.OwnDelay, f.logs
	f.Account.measure(spec, s)
	s.Metrics = metricsOf(spec, f, s)
	if b := s.Backlog; b != nil {
		if mean := s.Latency[spec.Kind.There].Mean; mean != nil && s.AchievedRate != nil {
			b.Balance = result.Finite(result.Round(*mean**s.AchievedRate, 3))
		}
	}
	s.Bottleneck, s.Others = bottleneckOf(spec, f, limits)
	if s.Neighbours = f.neighbours(); slices.ContainsFunc(s.Neighbours, func(n result.Neighbour) bool { return n.What == result.Processors }) {
		s.Bottleneck.ClearTimes()
	}
	if b := s.Bottleneck.Bound(); f.Account.Streams() {
		// Of a schedule the generator's own delay tells, and not the program's timers.
		s.AtLeast = b != nil && b.Generator || !s.Open && s.OwnDelay.Short(false)
	}
	s.EffectiveLevel = f.effective(s)
	f.Stood = f.standstills()
	f.Silent = append(f.Silent, f.stillness()...)
	if spec.Arms != nil {
		s.Parts = f.Account.parts(f.Samples)
		s.Params = spec.Arms.Params[s.Arm]
	}
	return s
}

func (f objectAccount) measure(spec *result.Spec, s *Measured) {
	if !f.head.Open {
		s.OfferedRate, s.AchievedRate, f.Achieved = ratesOf(f.Facts, func(u *unit) record.Micros { return u.object.reached(f.there) })
		return
	}
	s.Arrivals = arrivalsOf(f.Facts)
	s.OfferedRate, s.AchievedRate, f.Achieved = arrivalRates(f.Facts, s.Arrivals)
	s.Backlog = backlogOf(spec, f.Facts, s.Arrivals.Judged, func(_ *slot, o *object) record.Micros {
		if o == nil {
			return Never
		}
		return o.reached(f.there)
	})
}

func (objectAccount) done(s *Measured) int { return s.Objects.Ready }

// unitOutcome is what became of one object asked for.
type unitOutcome int8

const (
	unitReady unitOutcome = iota
	unitNeverReady
	unitLost
	unitCreateFailed
	unitDropped
)

// countOutcome adds one object to the account.
func countOutcome(o *result.Objects, f unitOutcome) {
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
func unitOutcomes(spec *result.Spec, f *Facts) []unitOutcome {
	outcomes := make([]unitOutcome, len(f.units))
	for i := range f.units {
		outcomes[i] = unitOutcomeOf(spec, f, &f.units[i])
	}
	return outcomes
}

func unitOutcomeOf(spec *result.Spec, f *Facts, u *unit) unitOutcome {
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
	case u.slot.released && u.latency(f.there) <= f.timeout:
		return unitReady // it was removed as was meant
	case f.awayOf(u).State == record.PlaceGone:
		return unitLost // with its place, whatever was last heard of it
	case o.there && (!u.own || u.latency(f.there) <= f.timeout):
		return unitReady
	case (o.there || f.head.Open) && u.latency(f.there) != unreached && f.least(u, f.there) <= f.timeout:
		return unitLost // it may have been there in time
	case o.there || o.failed || o.gone:
		return unitNeverReady
	case o.reason != "" && o.reason == spec.Kind.Unplaced && !f.Blind:
		// While the watch is cut it may have found a place.
		return unitNeverReady
	}
	if f.Blind || f.Cut() {
		return unitLost
	}
	return unitNeverReady
}

// Sample holds the latencies to one milestone.
type Sample struct {
	stats.Sample
	Lost int // of the censored, those whose state is unknown
}

// Part is the sample of one component's objects, or of all.
type Part struct {
	Component string // "" is all
	stats.Sample
}

func (f objectAccount) parts(samples map[string]Sample) map[string][]Part {
	parts := make(map[string][]Part)
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
		parts[name] = append(parts[name], Part{"", s.Sample})
		m := f.of(name)
		for _, component := range components {
			var values []float64
			for _, u := range own[component] {
				if l := u.latency(m); l <= f.timeout {
					values = append(values, l.Seconds())
				}
			}
			parts[name] = append(parts[name], Part{component, stats.NewSample(values, len(own[component])-len(values))})
		}
	}
	return parts
}

// effective is the level of those objects that were ready: an iteration counts
// only whole, since half of one does no work.
func (f *Facts) effective(s *Measured) *float64 {
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
	if f.Account.Streams() {
		return nil // no part of the clients was idle
	}
	// A request that is not on record belongs to no iteration that is known.
	short := make(map[int]bool)
	for i, u := range f.units {
		if f.outcomes[i] != unitReady && u.slot.onRecord {
			short[u.slot.iteration] = true
		}
	}
	whole := 0
	for i := range f.units {
		if u := &f.units[i]; u.slot.onRecord && !short[u.slot.iteration] && f.awayOf(u).State == "" {
			whole++
		}
	}
	var level float64
	if f.places > 0 {
		level = float64(f.Others+whole) / float64(f.places)
	} else {
		level = s.LevelReached * (float64(whole) / float64(intended))
	}
	return new(result.Round(level, 6))
}
