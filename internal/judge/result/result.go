package result

import (
	"cmp"
	"fmt"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// Schema names the format of result.json.
const Schema = "plimsoll/result/v1"

// Result is result.json: durations in seconds, times RFC 3339 with microseconds. A null figure is one
// that is unknown or not finite: one that is never null otherwise is named by a warning.
type Result struct {
	Schema     string      `json:"schema"`
	Experiment string      `json:"experiment"`
	Workload   string      `json:"workload"`
	Kind       string      `json:"kind"`    // limit, sweep, ab or run
	Verdict    slo.Verdict `json:"verdict"` // of the headline goal, or of the comparison
	ExitCode   int         `json:"exitCode"`
	// Require is the goal that the exit code follows, "all" for the worst of
	// them; "" is the headline, or the comparison.
	Require    string              `json:"require,omitempty"`
	Why        string              `json:"why"` // the verdict's reason in a sentence
	Command    string              `json:"command"`
	Version    string              `json:"version"`
	Fidelity   record.Fidelity     `json:"fidelity"`
	LoadLine   *LoadLine           `json:"loadLine"`
	Goals      []GoalResult        `json:"goals"`
	Steps      []Step              `json:"steps"`
	Comparison *compare.Comparison `json:"comparison"`
	// ObjectKind describes the objects, without what only judging needs.
	ObjectKind record.ObjectKind `json:"objectKind"`
	Arrived    string            `json:"arrived"`  // the milestone at which an object counts as there
	Breaches   []Breach          `json:"breaches"` // in order of time
	BrokeFirst *BrokeFirst       `json:"brokeFirst"`
	Diagnosis  []Diagnosis       `json:"diagnosis"`
	Ceilings   []record.Ceiling  `json:"ceilings"` // what was known before any load, the lowest first
	// Prediction is what they predicted beside what was found, nil where
	// nothing was looked at before or nothing was found.
	Prediction *ceiling.Prediction `json:"prediction"`
	Published  []Published         `json:"published,omitempty"`
	Laws       *Laws               `json:"laws,omitempty"`     // null where there are fewer than two levels
	Overhead   *Overhead           `json:"overhead,omitempty"` // of one pod; null without a real node
	Cost       Cost                `json:"cost"`
	// Cleanup is whether what the run made in its target was removed; null
	// where the record does not say it.
	Cleanup  *record.Cleanup `json:"cleanup"`
	Warnings record.Warnings `json:"warnings"`
}

// LoadLine is the highest level that held.
type LoadLine struct {
	Axis string `json:"axis"`
	Unit string `json:"unit"`
	// Level and LowestFailing are the levels that were made, by whole iterations. LevelAsked and
	// LowestFailingAsked are those that were asked for, where they are others.
	Level              *float64 `json:"level"`
	LevelAsked         *float64 `json:"levelAsked,omitempty"`
	LowestFailing      *float64 `json:"lowestFailing"`
	LowestFailingAsked *float64 `json:"lowestFailingAsked,omitempty"`
	Resolution         float64  `json:"resolution"`
	// Sustained is what was done a second at Level, the mean of the steps that
	// held it, where what is loaded comes and goes; null where it stays.
	Sustained *float64 `json:"sustained"`
	// Confirmations passed of the ConfirmationsMade that decided; as many as
	// ConfirmationsAsked must pass.
	Confirmations      int `json:"confirmations"`
	ConfirmationsAsked int `json:"confirmationsAsked"`
	ConfirmationsMade  int `json:"confirmationsMade"`
	// PassProbability is what the steps at this level mean that were made from
	// empty with the whole hold: a further one passes with at least this
	// probability, at 95 % confidence for all levels that might have been named.
	PassProbability float64 `json:"passProbability"`
	// Estimate is the level at which half of such steps hold, and Interval where it lies, by all steps:
	// see stats.FindCrossing. Exact says that what failed was refused by every place: the interval is the
	// bracket then. An end is null where nothing bounds it, and the estimate where nothing failed.
	Estimate *float64 `json:"estimate"`
	Interval *Range   `json:"interval"`
	Exact    bool     `json:"exact,omitempty"`
	// Binding is what the goal broke on at the lowest failing level: the most frequent reason that kept
	// objects from being ready, or the objective or guard that was breached. Empty when nothing failed.
	Binding string `json:"binding"`
	// EffectiveLevel is the level of those that were ready at the lowest failing level.
	EffectiveLevel *float64 `json:"effectiveLevel"`
	// Mixed are the levels at which steps do not agree.
	Mixed []design.Mixed `json:"mixed,omitempty"`
}

// Bracket is the line as a comparison takes it, of a goal with a verdict.
func (l *LoadLine) Bracket(v slo.Verdict) compare.Bracket {
	b := compare.Bracket{
		Level: l.Level, LowestFailing: l.LowestFailing, Verdict: string(v), Binding: l.Binding, Estimate: l.Estimate, Exact: l.Exact,
		Confirmations: fmt.Sprintf("%d of %d", l.Confirmations, cmp.Or(l.ConfirmationsMade, l.ConfirmationsAsked)),
	}
	if x := l.Interval; x != nil {
		b.Low, b.High = x.Lo, x.Hi
	}
	return b
}

// Range is where a figure lies, from Lo to Hi; null is without bound.
type Range struct {
	Lo *float64 `json:"lo"`
	Hi *float64 `json:"hi"`
}

// FailingAsked is the level that was asked for to make the lowest failing one; nil where none failed.
func (l *LoadLine) FailingAsked() *float64 { return cmp.Or(l.LowestFailingAsked, l.LowestFailing) }

// GoalResult is what became of one goal.
type GoalResult struct {
	Name     string      `json:"name"`
	SLO      []string    `json:"slo"`
	LoadLine *LoadLine   `json:"loadLine"`
	Verdict  slo.Verdict `json:"verdict"`
	Why      string      `json:"why"`
}

// Step is one level held once.
type Step struct {
	ID int `json:"id"`
	record.StepPlan
	LevelReached float64                `json:"levelReached"`
	Params       map[string]string      `json:"params,omitempty"`
	Verdict      slo.Verdict            `json:"verdict"`
	VerdictWhy   string                 `json:"verdictWhy"`
	Goals        map[string]slo.Verdict `json:"goals"`
	Start        string                 `json:"start"`
	End          string                 `json:"end"`
	Ending       record.Ending          `json:"ending"`
	// Seconds is from the first request until the last news of the step had come, after its hold;
	// ReachSeconds from the first request until every object was there, null if some never were.
	Seconds      float64  `json:"seconds"`
	ReachSeconds *float64 `json:"reachSeconds"`
	OfferedRate  *float64 `json:"offeredRate"`  // requests per second that were asked for
	AchievedRate *float64 `json:"achievedRate"` // objects per second that became ready; of a stream, requests that were answered in the hold
	// AtLeast says that the generator of a stream was what was short: the target
	// can do at least the rate that was achieved, and its latencies are unknown.
	AtLeast bool `json:"atLeast,omitempty"`
	// LeftOut says by figure why it does not count where arms are compared: the
	// generator of a stream was late, which shifts it.
	LeftOut map[string]string `json:"leftOut,omitempty"`
	// Compared says that the figures count where arms are compared, although the
	// step's goals are not decided: only the generator's delay keeps them from it.
	Compared bool `json:"compared,omitempty"`
	// Open says that requests came by a schedule: latencies then count from when it wanted them, and the
	// figures are of those that it put into the hold, as Arrivals says.
	Open     bool      `json:"open,omitempty"`
	Arrivals *Arrivals `json:"arrivals,omitempty"`
	// Backlog is that over the hold of a step whose requests came by a schedule.
	Backlog    *Backlog    `json:"backlog,omitempty"`
	Bottleneck *Bottleneck `json:"bottleneck,omitempty"`
	// Neighbours are the resources of this machine of which programs beside the run
	// left the target short over the whole step, or its hold.
	Neighbours  []Neighbour `json:"neighbours,omitempty"`
	OwnDelay    *OwnDelay   `json:"ownDelay,omitempty"`
	Pace        string      `json:"pace"`
	InFlightMax int         `json:"inFlightMax"`
	Retries429  int         `json:"retries429"`
	WatchLag    *WatchLag   `json:"watchLag"`
	// Missed is how many changes a list showed that a watch had missed, by watch.
	Missed map[string]int `json:"missed,omitempty"`
	// Objects accounts for what was asked for, and Requests for it where that
	// was a stream of requests; the other one is left out.
	Objects        Objects          `json:"objects,omitzero"`
	Requests       *StreamRequests  `json:"requests,omitempty"`
	EffectiveLevel *float64         `json:"effectiveLevel"`
	PerPlace       *PerPlace        `json:"perNode,omitempty"`
	APIRequests    APIRequests      `json:"apiRequests"`
	Latency        Latencies        `json:"latency"`
	Reasons        []Reason         `json:"reasons"`
	Resources      map[string]Usage `json:"resources"`
	// Concurrent is how many objects were between two milestones at once.
	Concurrent *Concurrent `json:"concurrent,omitempty"`
	// Groups are the times of its objects by the values of each label that the workload names.
	Groups []Group `json:"groups,omitempty"`
	// Metrics are the figures that the target declares, by name, but for those of
	// CPU, memory and rate, which every step has.
	Metrics  map[string]float64 `json:"metrics,omitempty"`
	Breaches []Breach           `json:"breaches"` // in order of time
	// Conditions are those at what broke first; null where nothing broke.
	Conditions *Conditions `json:"conditions,omitempty"`
	// Durations are how long the work of a node took by what its programs publish of it, over the step.
	Durations []HistogramSummary `json:"durations,omitempty"`
	// Logs are samples of what containers of failing objects have written.
	Logs []LogTail `json:"logs,omitempty"`
}

// Objects accounts for every slot in place at the end of a step:
// intended = created + createFailed + dropped, created = ready + neverReady + lost.
type Objects struct {
	Intended     int `json:"intended"`
	Created      int `json:"created"`
	CreateFailed int `json:"createFailed"`
	Dropped      int `json:"dropped"`
	Ready        int `json:"ready"`
	NeverReady   int `json:"neverReady"`
	Lost         int `json:"lost"`

	None bool `json:"-"` // the step's account is Requests
}

// IsZero leaves out of result.json the objects of a stream, which has none.
func (o Objects) IsZero() bool { return o.None }

// Arrivals are the requests of a step whose requests came by a schedule.
type Arrivals struct {
	WarmUp  int `json:"warmUp"` // before the hold, not judged
	Judged  int `json:"judged"` // in the hold
	Late    int `json:"late"`   // of the judged, those that found no place among the requests under way
	Dropped int `json:"dropped"`
	// OwnDelayP99 is by how much the program itself sent later than it could
	// have, in seconds; null where nothing was sent.
	OwnDelayP99 *float64 `json:"ownDelayP99"`
	// OwnDelayMax is the most of it, where single arrivals are not on record.
	OwnDelayMax *float64 `json:"ownDelayMax,omitempty"`
	// DeletionsPerSecond is how many objects went in the hold, by the second.
	DeletionsPerSecond float64 `json:"deletionsPerSecond"`
}

// PerPlace is the level of the least and of the most loaded place.
type PerPlace struct {
	Places int     `json:"nodes"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Others is how many objects stood there that are not ours.
	Others int `json:"others"`
}

// StreamRequests accounts for the judged requests of a stream:
// intended = sent + dropped, sent = done + failed + lost.
type StreamRequests struct {
	Intended int            `json:"intended"`
	Sent     int            `json:"sent"`
	Done     int            `json:"done"`
	Failed   map[string]int `json:"failed"`  // by the kind of failure
	Late     int            `json:"late"`    // found no place among those under way; the dropped are among them
	Dropped  int            `json:"dropped"` // never sent
	Lost     int            `json:"lost"`    // what became of them is unknown
	// ByPlace is how many were done at each place, where there are several.
	ByPlace map[string]int `json:"byPlace,omitempty"`
	// FailedByPlace is how many failed at each place.
	FailedByPlace map[string]int `json:"failedByPlace,omitempty"`
	// PlacesFailed are those at which requests failed at the end of the hold and none was done.
	PlacesFailed []string `json:"placesFailed,omitempty"`
	// Retried is how often one of them was sent again.
	Retried int `json:"retried,omitempty"`
	// BitsPerSecond is what the answers came to in the hold, heads included; null where it is unknown.
	BitsPerSecond *float64 `json:"bitsPerSecond,omitempty"`

	// Stalls are the times of the hold in which nothing was answered.
	Stalls []Stall `json:"stalls,omitempty"`
	// Corrected are the latencies with the requests that stalls kept clients from
	// sending; nil where there was no stall, or a schedule sent them anyway.
	Corrected Latencies `json:"corrected,omitempty"`

	// Recorded are single requests, where the target put some on record: those that took longest, first
	// of those that were done and then of those that failed, at most recordedShown of each.
	Recorded []RecordedRequest `json:"recorded,omitempty"`
}

// Stall is a time in which a stream's load was under way and nothing was answered:
// at a place, or at all where Place is "".
type Stall struct {
	Place   string  `json:"place,omitempty"`
	From    string  `json:"from"` // wall clock, to the window that it began in
	Seconds float64 `json:"seconds"`
	Windows int     `json:"windows"` // whole ones, 0 for a stall shorter than two
}

// RecordedRequest is a single request of a stream. Its answer took Seconds from
// when it was due, and Late of them had gone before it was begun.
type RecordedRequest struct {
	Due     string  `json:"due"` // wall clock
	Late    float64 `json:"late"`
	Seconds float64 `json:"seconds"`
	Place   string  `json:"place,omitempty"`
	Status  int     `json:"status,omitempty"`
	Failed  string  `json:"failed,omitempty"` // the kind of failure, "" for none
	Retried bool    `json:"retried,omitempty"`
	Bytes   int64   `json:"bytes,omitempty"` // of the answer
}

// FailedAll is how many failed in any way.
func (r *StreamRequests) FailedAll() int {
	n := 0
	for _, k := range r.Failed {
		n += k
	}
	return n
}

// Streams reports whether the load was a stream of requests, which Requests accounts for.
func (s Step) Streams() bool { return s.Requests != nil }

// Account is Objects, or what a stream's requests come to in its words: ready are those that were done.
func (s Step) Account() Objects {
	if !s.Streams() {
		return s.Objects
	}
	r := s.Requests
	return Objects{Intended: r.Intended, Created: r.Sent, Dropped: r.Dropped, Ready: r.Done, NeverReady: r.FailedAll(), Lost: r.Lost}
}

// APIRequests sums up the requests that a step sent to ask for its objects. Their quantiles are service
// times, from request to reply, retries included.
type APIRequests struct {
	N       int      `json:"n"`
	Failed  int      `json:"failed"` // refused, given up, or never answered
	Retried int      `json:"retried"`
	P50     *float64 `json:"p50"`
	P99     *float64 `json:"p99"`
	Max     *float64 `json:"max"`
	// Sending is how many seconds after the moment that all of them were meant for
	// the last was sent; 0 where each was meant for a moment of its own.
	Sending float64 `json:"sending,omitempty"`
}

// Latencies are the latencies of a step's own objects by milestone.
type Latencies map[string]Latency

// Latency is the distribution of the time from an object's time zero to a milestone, over all objects
// that the step asked for. N includes the Censored, which were never ready and count as infinitely late;
// a quantile that falls on one is null, as Max and Mean are if there is any.
type Latency struct {
	N          int                    `json:"n"`
	Censored   int                    `json:"censored"`
	P50        *float64               `json:"p50"`
	P90        *float64               `json:"p90"`
	P95        *float64               `json:"p95"`
	P99        *float64               `json:"p99"`
	Max        *float64               `json:"max"`
	Mean       *float64               `json:"mean"`
	Resolution float64                `json:"resolution"`
	Intervals  map[string][2]*float64 `json:"intervals"`
}

// LatencyOf sums up a distribution.
func LatencyOf(s stats.Sample) Latency {
	l := Latency{
		N: s.N(), Censored: s.Censored(), Resolution: Round(s.Resolution(), 6),
		P50: Finite(s.Quantile(0.5)), P90: Finite(s.Quantile(0.9)), P95: Finite(s.Quantile(0.95)), P99: Finite(s.Quantile(0.99)),
		Max: Finite(s.Max()), Mean: Finite(s.Mean()),
		Intervals: make(map[string][2]*float64, 2),
	}
	for _, q := range []float64{0.5, 0.99} {
		lo, hi := s.Interval(q, Confidence)
		l.Intervals[stats.QuantileName(q)] = [2]*float64{Finite(lo), Finite(hi)}
	}
	return l
}

// WatchLag is how late the news of a change came, measured by canaries from
// the request that made the change: an upper bound.
type WatchLag struct {
	N      int      `json:"n"`
	Unseen int      `json:"unseen"`
	P50    *float64 `json:"p50"`
	P99    *float64 `json:"p99"`
}

// Usage is what a process used during a step.
type Usage struct {
	CPUSeconds float64 `json:"cpuSeconds"`
	// PeakCPUs is the most processors that it kept busy over about five
	// seconds; null where the step was shorter than half of that.
	PeakCPUs *float64 `json:"peakCPUs"`
	// PeakRSSBytes and StartRSSBytes are of resident memory; growth is the difference. That of a real
	// node's parts is what cannot be dropped: without files that were read.
	PeakRSSBytes  int64 `json:"peakRSSBytes"`
	StartRSSBytes int64 `json:"startRSSBytes"`
	// PeakPSSBytes and StartPSSBytes are of many processes of one program: memory
	// that they share counts once. They are 0 for one process.
	PeakPSSBytes  int64 `json:"peakPSSBytes,omitempty"`
	StartPSSBytes int64 `json:"startPSSBytes,omitempty"`
}

// PeakMemory is the most memory that was held, what processes share counted once.
func (u Usage) PeakMemory() int64 { return cmp.Or(u.PeakPSSBytes, u.PeakRSSBytes) }

// StartMemory is that at the start of the step.
func (u Usage) StartMemory() int64 {
	if u.PeakPSSBytes > 0 {
		return u.StartPSSBytes
	}
	return u.StartRSSBytes
}

// Cost is what this program itself used for the whole run.
type Cost struct {
	CPUSeconds      float64 `json:"cpuSeconds"`
	PeakMemoryBytes int64   `json:"peakMemory"`
	// LoadCPUSeconds and LoadPeakMemoryBytes are those from the first request
	// of a step to the end of its hold, over all steps.
	LoadCPUSeconds      float64 `json:"loadCpuSeconds"`
	LoadPeakMemoryBytes int64   `json:"loadPeakMemory"`
	Objects             int     `json:"objects"`
}
