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

// Result is result.json: durations in seconds, times RFC 3339 with microseconds. A null figure is unknown
// or not finite: a warning names one that is never null otherwise.
type Result struct {
	Schema     string      `json:"schema"`
	Experiment string      `json:"experiment"`
	Workload   string      `json:"workload"`
	Kind       string      `json:"kind"`    // limit, sweep, ab or run
	Verdict    slo.Verdict `json:"verdict"` // of the headline goal, or of the comparison
	ExitCode   int         `json:"exitCode"`
	// Require is the goal that the exit code follows, "all" for the worst; "" is the headline, or the
	// comparison.
	Require    string              `json:"require,omitempty"`
	Why        string              `json:"why"` // the verdict's reason in a sentence
	Command    string              `json:"command"`
	Version    string              `json:"version"`
	Fidelity   record.Fidelity     `json:"fidelity"`
	LoadLine   *LoadLine           `json:"loadLine"`
	Goals      []GoalResult        `json:"goals"`
	Steps      []Step              `json:"steps"`
	Comparison *compare.Comparison `json:"comparison"`
	ObjectKind record.ObjectKind   `json:"objectKind"` // without what only the judge needs
	Arrived    string              `json:"arrived"`    // the milestone at which an object counts as there
	Breaches   []Breach            `json:"breaches"`   // in order of time
	BrokeFirst *BrokeFirst         `json:"brokeFirst"`
	Diagnosis  []Diagnosis         `json:"diagnosis"`
	Ceilings   []record.Ceiling    `json:"ceilings"`   // known before any load, the lowest first
	Prediction *ceiling.Prediction `json:"prediction"` // by the ceilings, beside the finding; nil where either is missing
	Published  []Published         `json:"published,omitempty"`
	Laws       *Laws               `json:"laws,omitempty"`     // null where there are fewer than two levels
	Overhead   *Overhead           `json:"overhead,omitempty"` // of one pod; null without a real node
	Cost       Cost                `json:"cost"`
	Cleanup    *record.Cleanup     `json:"cleanup"` // of the run's objects; null where the record does not say
	Warnings   record.Warnings     `json:"warnings"`
}

// LoadLine is the highest level that held.
type LoadLine struct {
	Axis string `json:"axis"`
	Unit string `json:"unit"`
	// Level and LowestFailing were made, by whole iterations; LevelAsked and LowestFailingAsked were
	// requested, where they differ.
	Level              *float64 `json:"level"`
	LevelAsked         *float64 `json:"levelAsked,omitempty"`
	LowestFailing      *float64 `json:"lowestFailing"`
	LowestFailingAsked *float64 `json:"lowestFailingAsked,omitempty"`
	Resolution         float64  `json:"resolution"`
	// Sustained is the work per second at Level, the mean of the steps that held it, where the load comes
	// and goes; null where it stays.
	Sustained *float64 `json:"sustained"`
	// Confirmations passed of the ConfirmationsMade that decided; as many as ConfirmationsAsked must
	// pass.
	Confirmations      int `json:"confirmations"`
	ConfirmationsAsked int `json:"confirmationsAsked"`
	ConfirmationsMade  int `json:"confirmationsMade"`
	// PassProbability is the least probability that another step at this level passes, at 95% confidence
	// for all levels that might have been named, by the steps from empty with the whole hold.
	PassProbability float64 `json:"passProbability"`
	// Estimate is the level at which half of such steps hold, and Interval its interval, by all steps;
	// see stats.FindCrossing. Exact says that every place refused the failed objects: the interval is the
	// bracket then. An end is null where nothing bounds it, and the estimate where nothing failed.
	Estimate *float64 `json:"estimate"`
	Interval *Range   `json:"interval"`
	Exact    bool     `json:"exact,omitempty"`
	// Binding says what broke the goal at the lowest failing level: the most frequent reason that kept
	// objects from being ready, or the breached objective or guard. It is empty when nothing failed.
	Binding        string         `json:"binding"`
	EffectiveLevel *float64       `json:"effectiveLevel"`  // of the ready objects at the lowest failing level
	Mixed          []design.Mixed `json:"mixed,omitempty"` // levels at which steps disagree
}

// Bracket returns the line for a comparison, of a goal with a verdict.
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

// Range says where a figure lies, from Lo to Hi; null is without bound.
type Range struct {
	Lo *float64 `json:"lo"`
	Hi *float64 `json:"hi"`
}

// FailingAsked returns the requested level of the lowest failing one; nil where none failed.
func (l *LoadLine) FailingAsked() *float64 { return cmp.Or(l.LowestFailingAsked, l.LowestFailing) }

// GoalResult is the result of one goal.
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
	// Seconds runs from the first request until the last news of the step, after its hold; ReachSeconds
	// from the first request until every object was there, null if some never were.
	Seconds      float64  `json:"seconds"`
	ReachSeconds *float64 `json:"reachSeconds"`
	OfferedRate  *float64 `json:"offeredRate"`  // requests per second
	AchievedRate *float64 `json:"achievedRate"` // objects per second that became ready; of a stream, answers in the hold
	// AtLeast says that the generator of a stream was short: the target can do at least the achieved
	// rate, and its latencies are unknown.
	AtLeast bool `json:"atLeast,omitempty"`
	// LeftOut says by figure why it does not count where arms are compared: the generator of a stream was
	// late, which shifts it.
	LeftOut map[string]string `json:"leftOut,omitempty"`
	// Compared says that the figures count where arms are compared, although the step's goals are not
	// decided: only the generator's delay prevents that.
	Compared bool `json:"compared,omitempty"`
	// Open says that requests came by a schedule: latencies then count from its times, and the figures
	// cover the requests of the hold; see Arrivals.
	Open       bool        `json:"open,omitempty"`
	Arrivals   *Arrivals   `json:"arrivals,omitempty"`
	Backlog    *Backlog    `json:"backlog,omitempty"` // over the hold, with a schedule
	Bottleneck *Bottleneck `json:"bottleneck,omitempty"`
	// Neighbours are the resources of which other programs left the target short over the step, or its hold.
	Neighbours  []Neighbour    `json:"neighbours,omitempty"`
	OwnDelay    *OwnDelay      `json:"ownDelay,omitempty"`
	Pace        string         `json:"pace"`
	InFlightMax int            `json:"inFlightMax"`
	Retries429  int            `json:"retries429"`
	WatchLag    *WatchLag      `json:"watchLag"`
	Missed      map[string]int `json:"missed,omitempty"` // changes that a list showed and a watch had missed, by watch
	// Objects accounts for the requested objects, or Requests for a stream of requests; the other one is
	// left out.
	Objects        Objects          `json:"objects,omitzero"`
	Requests       *StreamRequests  `json:"requests,omitempty"`
	EffectiveLevel *float64         `json:"effectiveLevel"`
	PerPlace       *PerPlace        `json:"perNode,omitempty"`
	APIRequests    APIRequests      `json:"apiRequests"`
	Latency        Latencies        `json:"latency"`
	Reasons        []Reason         `json:"reasons"`
	Resources      map[string]Usage `json:"resources"`
	Concurrent     *Concurrent      `json:"concurrent,omitempty"`
	Groups         []Group          `json:"groups,omitempty"` // by the labels that the workload names
	// Metrics are the figures that the target declares, by name, without those of every step: CPU,
	// memory, rate.
	Metrics    map[string]float64 `json:"metrics,omitempty"`
	Breaches   []Breach           `json:"breaches"`             // in order of time
	Conditions *Conditions        `json:"conditions,omitempty"` // when the first thing broke; null where nothing did
	Durations  []HistogramSummary `json:"durations,omitempty"`  // of a node's work, by its programs
	Logs       []LogTail          `json:"logs,omitempty"`       // of containers of failing objects
}

// Objects accounts for every slot in place at the end of a step: intended = created + createFailed +
// dropped, created = ready + neverReady + lost.
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

// Arrivals counts the requests of a step with a schedule.
type Arrivals struct {
	WarmUp  int `json:"warmUp"` // before the hold, not judged
	Judged  int `json:"judged"` // in the hold
	Late    int `json:"late"`   // of the judged, without a place among those in flight
	Dropped int `json:"dropped"`
	// OwnDelayP99 says how late the program itself sent, in seconds; null where nothing was sent.
	OwnDelayP99        *float64 `json:"ownDelayP99"`
	OwnDelayMax        *float64 `json:"ownDelayMax,omitempty"` // where single arrivals are not on record
	DeletionsPerSecond float64  `json:"deletionsPerSecond"`    // in the hold
}

// PerPlace holds the levels of the least and of the most loaded place.
type PerPlace struct {
	Places int     `json:"nodes"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Others int     `json:"others"` // objects there that are not of the run
}

// StreamRequests accounts for the judged requests of a stream: intended = sent + dropped, sent = done +
// failed + lost.
type StreamRequests struct {
	Intended      int            `json:"intended"`
	Sent          int            `json:"sent"`
	Done          int            `json:"done"`
	Failed        map[string]int `json:"failed"`            // by the kind of failure
	Late          int            `json:"late"`              // without a place among those in flight, with the dropped
	Dropped       int            `json:"dropped"`           // never sent
	Lost          int            `json:"lost"`              // with an unknown outcome
	ByPlace       map[string]int `json:"byPlace,omitempty"` // done, where there are several
	FailedByPlace map[string]int `json:"failedByPlace,omitempty"`
	PlacesFailed  []string       `json:"placesFailed,omitempty"`  // only failures at the end of the hold
	Retried       int            `json:"retried,omitempty"`       // sent again
	BitsPerSecond *float64       `json:"bitsPerSecond,omitempty"` // of answers with their heads in the hold; null is unknown

	Stalls []Stall `json:"stalls,omitempty"` // in the hold
	// Corrected holds the latencies with the requests that stalls kept clients from sending; nil where
	// there was no stall, or a schedule sent them anyway.
	Corrected Latencies `json:"corrected,omitempty"`

	// Recorded holds single requests, where the target put some on record: the longest done ones, then
	// the longest failed ones, at most recordedShown of each.
	Recorded []RecordedRequest `json:"recorded,omitempty"`
}

// Stall is a time in which a stream's load was in flight and nothing was answered: at a place, or at all
// where Place is "".
type Stall struct {
	Place   string  `json:"place,omitempty"`
	From    string  `json:"from"` // wall clock, to the window of its begin
	Seconds float64 `json:"seconds"`
	Windows int     `json:"windows"` // whole ones, 0 for a stall shorter than two
}

// RecordedRequest is a single request of a stream. Seconds run from its due time to its answer, and Late
// of them had gone before it was begun.
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

// FailedAll counts the requests that failed in any way.
func (r *StreamRequests) FailedAll() int {
	n := 0
	for _, k := range r.Failed {
		n += k
	}
	return n
}

// Streams reports whether the load was a stream of requests, which Requests accounts for.
func (s Step) Streams() bool { return s.Requests != nil }

// Account returns Objects, or a stream's requests in its words: the done ones are ready.
func (s Step) Account() Objects {
	if !s.Streams() {
		return s.Objects
	}
	r := s.Requests
	return Objects{Intended: r.Intended, Created: r.Sent, Dropped: r.Dropped, Ready: r.Done, NeverReady: r.FailedAll(), Lost: r.Lost}
}

// APIRequests sums up the requests for the objects of a step. Their quantiles are service times, from
// request to reply, retries included.
type APIRequests struct {
	N       int      `json:"n"`
	Failed  int      `json:"failed"` // refused, given up, or never answered
	Retried int      `json:"retried"`
	P50     *float64 `json:"p50"`
	P99     *float64 `json:"p99"`
	Max     *float64 `json:"max"`
	// Sending is the time from the moment that all of them were meant for until the last was sent, in
	// seconds; 0 where each was meant for a moment of its own.
	Sending float64 `json:"sending,omitempty"`
}

// Latencies holds the latencies of a step's own objects by milestone.
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

// WatchLag says how late the news of a change came, by canaries, from the request that made the change:
// an upper bound.
type WatchLag struct {
	N      int      `json:"n"`
	Unseen int      `json:"unseen"`
	P50    *float64 `json:"p50"`
	P99    *float64 `json:"p99"`
}

// Usage says what a process used during a step.
type Usage struct {
	CPUSeconds float64 `json:"cpuSeconds"`
	// PeakCPUs is the most processors that it kept busy over about five seconds; null where the step was
	// shorter than half of that.
	PeakCPUs *float64 `json:"peakCPUs"`
	// PeakRSSBytes and StartRSSBytes are resident memory; growth is the difference. For parts of a real
	// node they leave out memory that can be dropped, such as files.
	PeakRSSBytes  int64 `json:"peakRSSBytes"`
	StartRSSBytes int64 `json:"startRSSBytes"`
	// PeakPSSBytes and StartPSSBytes are for many processes of one program: memory that they share counts
	// once. They are 0 for one process.
	PeakPSSBytes  int64 `json:"peakPSSBytes,omitempty"`
	StartPSSBytes int64 `json:"startPSSBytes,omitempty"`
}

// PeakMemory returns the most memory, with shared memory counted once.
func (u Usage) PeakMemory() int64 { return cmp.Or(u.PeakPSSBytes, u.PeakRSSBytes) }

// StartMemory returns the memory at the start of the step.
func (u Usage) StartMemory() int64 {
	if u.PeakPSSBytes > 0 {
		return u.StartPSSBytes
	}
	return u.StartRSSBytes
}

// Cost holds what this program itself used for the whole run.
type Cost struct {
	CPUSeconds      float64 `json:"cpuSeconds"`
	PeakMemoryBytes int64   `json:"peakMemory"`
	// LoadCPUSeconds and LoadPeakMemoryBytes cover the time from the first request of a step to the end
	// of its hold, over all steps.
	LoadCPUSeconds      float64 `json:"loadCpuSeconds"`
	LoadPeakMemoryBytes int64   `json:"loadPeakMemory"`
	Objects             int     `json:"objects"`
}
