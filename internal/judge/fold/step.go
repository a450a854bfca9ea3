package fold

import (
	"maps"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/record"
)

// Measured is a measured step, with what outlasts its facts besides.
type Measured struct {
	result.Step
	Message   string // why it was cut
	Guarded   bool   // a guard stopped its load
	Hold      record.Micros
	Requested int // objects that its own requests on record ask for
	Asked     int // objects that count for its verdict
	Hits      []signature.Hit
	Parts     map[string][]Part // of a comparison, by milestone
	Others    float64           // CPUs used by other programs, in percent; 0 if tolerated
}

func measure(spec *result.Spec, f *Facts) *Measured {
	s := &Measured{Step: f.head, Message: f.message, Guarded: len(f.Guards) > 0, Hold: f.hold, Requested: f.asked, Asked: len(f.units)}
	s.Start, s.End, s.Seconds = spec.Wall(f.Start), spec.Wall(f.End), (f.End - f.Start).Seconds()
	if f.Reached != Never {
		s.ReachSeconds = new((f.Reached - f.Start).Seconds())
	}
	if level, other := f.levelLeft(); other {
		s.LevelReached = level
	}
	f.outcomes = make([]unitOutcome, len(f.units))
	for i := range f.units {
		f.outcomes[i] = unitOutcomeOf(spec, f, &f.units[i])
		countOutcome(&s.Objects, f.outcomes[i])
	}
	s.Reasons = reasonsOf(spec, f)
	s.Latency, f.Samples = latenciesOf(spec, f)
	s.APIRequests, f.Dropped = requestsOf(f)
	for _, x := range f.own {
		s.Retries429 += x.throttled
	}
	s.InFlightMax, s.WatchLag, s.Resources = inFlight(f.own), f.canaries.Lag(), f.readings.Resources()
	var limits []result.BoundShare
	s.Concurrent, limits = concurrentIn(spec, f)
	s.Groups = groupsOf(spec, f)
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
		// A schedule is judged by the generator's own delay, and not by the program's timers.
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
		s.OfferedRate, s.AchievedRate, f.Achieved = ratesOf(f.Facts, func(u *unit) record.Micros { return u.object.reached(u.slot.arrival) })
		return
	}
	s.Arrivals = arrivalsOf(f.Facts)
	s.OfferedRate, s.AchievedRate, f.Achieved = arrivalRates(f.Facts, s.Arrivals)
	s.Backlog = backlogOf(spec, f.Facts, s.Arrivals.Judged, func(s *slot, o *object) record.Micros {
		if o == nil {
			return Never
		}
		return o.reached(s.arrival)
	})
}

func (objectAccount) done(s *Measured) int { return s.Objects.Ready }

// unitOutcome says what became of one requested object.
type unitOutcome int8

const (
	unitReady unitOutcome = iota
	unitNeverReady
	unitLost
	unitCreateFailed
	unitDropped
)

func countOutcome(o *result.Objects, f unitOutcome) {
	*[...]*int{&o.Ready, &o.NeverReady, &o.Lost, &o.CreateFailed, &o.Dropped}[f]++
	o.Created = o.Ready + o.NeverReady + o.Lost
	o.Intended = o.Created + o.CreateFailed + o.Dropped
}

// unitOutcomeOf returns what became of an object by the step's end; its time is judged by its own step.
func unitOutcomeOf(spec *result.Spec, f *Facts, u *unit) unitOutcome {
	o, arrival := u.object, u.slot.arrival
	switch {
	case o == nil && u.slot.outcome == record.SlotFailed:
		return unitCreateFailed // with news of the object its request has succeeded, whatever the answer was
	case o == nil && u.slot.outcome == record.SlotDropped:
		return unitDropped
	case o == nil:
	case (f.head.Open || u.slot.released) && u.latency(arrival) <= f.timeout:
		return unitReady // it is removed as it ages, or was removed as planned
	case f.awayOf(u).State == record.PlaceGone:
		return unitLost // with its place, whatever the last news of it said
	case o.there && (!u.own || u.latency(arrival) <= f.timeout):
		return unitReady
	case (o.there || f.head.Open) && u.latency(arrival) != unreached && f.least(u, arrival) <= f.timeout:
		return unitLost // it may have been there in time
	case o.there || o.failed || o.gone:
		return unitNeverReady
	case o.reason != "" && o.reason == spec.Kind.Unplaced && !f.Blind:
		return unitNeverReady // while the watch is cut it may have found a place
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
	for _, u := range f.ownUnits() {
		own[u.slot.component] = append(own[u.slot.component], u)
	}
	if len(own) > 1 {
		components = slices.Sorted(maps.Keys(own))
	}
	for name, s := range samples {
		parts[name] = append(parts[name], Part{"", s.Sample})
		m := f.find(name)
		for _, component := range components {
			var values []float64
			n := 0
			for _, u := range own[component] {
				if !f.reaches(u.slot, m) {
					continue
				}
				n++
				if l := u.latency(m); l <= f.timeout {
					values = append(values, l.Seconds())
				}
			}
			parts[name] = append(parts[name], Part{component, stats.NewSample(values, n-len(values))})
		}
	}
	return parts
}

// effective returns the level of the ready objects in whole iterations: half of one does no work.
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
	short := make(map[int]bool) // iterations; that of a request that is not on record is unknown
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
	level := s.LevelReached * (float64(whole) / float64(intended))
	if f.places > 0 {
		level = float64(f.Others+whole) / float64(f.places)
	}
	return new(result.Round(level, 6))
}
