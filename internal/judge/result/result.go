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
	Schema     string              `json:"schema"`
	Experiment string              `json:"experiment"`
	Workload   string              `json:"workload"`
	Kind       string              `json:"kind"`    // limit, sweep, ab or run
	Verdict    slo.Verdict         `json:"verdict"` // of the headline goal, or of the comparison
	ExitCode   int                 `json:"exitCode"`
	Require    string              `json:"require,omitempty"` // goal that the exit code follows, "all" for the worst, "" for the default
	Why        string              `json:"why"`               // the verdict's reason in a sentence
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
	// Level and LowestFailing count whole iterations; LevelAsked and LowestFailingAsked were requested.
	Level              *float64 `json:"level"`
	LevelAsked         *float64 `json:"levelAsked,omitempty"`
	LowestFailing      *float64 `json:"lowestFailing"`
	LowestFailingAsked *float64 `json:"lowestFailingAsked,omitempty"`
	Resolution         float64  `json:"resolution"`
	Sustained          *float64 `json:"sustained"` // work per second at Level, by the steps that held it; null where the load stays
	// Confirmations passed of ConfirmationsMade; as many as ConfirmationsAsked must pass.
	Confirmations      int     `json:"confirmations"`
	ConfirmationsAsked int     `json:"confirmationsAsked"`
	ConfirmationsMade  int     `json:"confirmationsMade"`
	PassProbability    float64 `json:"passProbability"` // least probability, at 95% confidence, that a further step here passes
	// Estimate is the level at which half of such steps hold, null where nothing failed, Interval its
	// interval; see stats.FindCrossing. With Exact it is the bracket: every place refused the failed
	// objects. Both are null for such a limit that is not confirmed.
	Estimate       *float64       `json:"estimate"`
	Interval       *Range         `json:"interval"`
	Exact          bool           `json:"exact,omitempty"`
	Binding        string         `json:"binding"`         // what broke the goal at the lowest failing level, "" when nothing failed
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
	// Seconds runs from the first request to the last news, ReachSeconds until all were there, or null.
	Seconds      float64           `json:"seconds"`
	ReachSeconds *float64          `json:"reachSeconds"`
	OfferedRate  *float64          `json:"offeredRate"`        // requests per second
	AchievedRate *float64          `json:"achievedRate"`       // objects per second that became ready; of a stream, answers in the hold
	AtLeast      bool              `json:"atLeast,omitempty"`  // a stream's generator was short: the target can do at least the achieved rate
	LeftOut      map[string]string `json:"leftOut,omitempty"`  // by figure why it does not count for arms: a stream's late generator shifts it
	Compared     bool              `json:"compared,omitempty"` // figures count for arms though the generator's delay leaves goals undecided
	Open         bool              `json:"open,omitempty"`     // requests came by a schedule: latencies count from it, and figures cover the hold
	Arrivals     *Arrivals         `json:"arrivals,omitempty"`
	Backlog      *Backlog          `json:"backlog,omitempty"` // over the hold, with a schedule
	Bottleneck   *Bottleneck       `json:"bottleneck,omitempty"`
	Neighbours   []Neighbour       `json:"neighbours,omitempty"` // resources of which other programs left the target short over the step, or its hold
	OwnDelay     *OwnDelay         `json:"ownDelay,omitempty"`
	Pace         string            `json:"pace"`
	InFlightMax  int               `json:"inFlightMax"`
	Retries429   int               `json:"retries429"`
	WatchLag     *WatchLag         `json:"watchLag"`
	Missed       map[string]int    `json:"missed,omitempty"` // changes that a list showed and a watch had missed, by watch
	// Objects accounts for requested objects, Requests for a stream's; the other is left out.
	Objects        Objects            `json:"objects,omitzero"`
	Requests       *StreamRequests    `json:"requests,omitempty"`
	EffectiveLevel *float64           `json:"effectiveLevel"`
	PerPlace       *PerPlace          `json:"perNode,omitempty"`
	APIRequests    APIRequests        `json:"apiRequests"`
	Latency        Latencies          `json:"latency"`
	Reasons        []Reason           `json:"reasons"`
	Resources      map[string]Usage   `json:"resources"`
	Concurrent     *Concurrent        `json:"concurrent,omitempty"`
	Groups         []Group            `json:"groups,omitempty"`     // by the labels that the workload names
	Metrics        map[string]float64 `json:"metrics,omitempty"`    // target's own figures by name, without those of every step
	Breaches       []Breach           `json:"breaches"`             // in order of time
	Conditions     *Conditions        `json:"conditions,omitempty"` // when the first thing broke; null where nothing did
	Durations      []HistogramSummary `json:"durations,omitempty"`  // of a node's work, by its programs
	Logs           []LogTail          `json:"logs,omitempty"`       // of containers of failing objects
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
	WarmUp             int      `json:"warmUp"` // before the hold, not judged
	Judged             int      `json:"judged"` // in the hold
	Late               int      `json:"late"`   // of the judged, without a place among those in flight
	Dropped            int      `json:"dropped"`
	OwnDelayP99        *float64 `json:"ownDelayP99"`           // how late the program itself sent, in seconds; null where nothing was sent
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

// StreamRequests accounts for a stream: intended = sent + dropped, sent = done + failed + lost.
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

	Stalls    []Stall   `json:"stalls,omitempty"`    // in the hold
	Corrected Latencies `json:"corrected,omitempty"` // latencies with the requests that stalls kept from being sent; nil for none

	Recorded []RecordedRequest `json:"recorded,omitempty"` // the longest done requests on record, then failed ones, recordedShown of each
}

// Stall is a time in which nothing was answered to a stream in flight: at Place, or anywhere for "".
type Stall struct {
	Place   string  `json:"place,omitempty"`
	From    string  `json:"from"` // wall clock, to the window of its begin
	Seconds float64 `json:"seconds"`
	Windows int     `json:"windows"` // whole ones, 0 for a stall shorter than two
}

// RecordedRequest is a request of a stream. Seconds run from its due time; Late went before it began.
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

// APIRequests sums up a step's requests for objects; quantiles are of service times, with retries.
type APIRequests struct {
	N       int      `json:"n"`
	Failed  int      `json:"failed"` // refused, given up, or never answered
	Retried int      `json:"retried"`
	P50     *float64 `json:"p50"`
	P99     *float64 `json:"p99"`
	Max     *float64 `json:"max"`
	Sending float64  `json:"sending,omitempty"` // time to send a load that is due at one moment, in seconds; 0 for other loads
}

// Latencies holds the latencies of a step's own objects by milestone.
type Latencies map[string]Latency

// Latency is the distribution of the time from an object's time zero to a milestone, over the step's
// objects. N includes the Censored, which were never ready: a quantile, Max or Mean with one is null.
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

// WatchLag says how late news came, by canaries, from the request for the change: an upper bound.
type WatchLag struct {
	N      int      `json:"n"`
	Unseen int      `json:"unseen"`
	P50    *float64 `json:"p50"`
	P99    *float64 `json:"p99"`
}

// Usage says what a process used during a step.
type Usage struct {
	CPUSeconds float64  `json:"cpuSeconds"`
	PeakCPUs   *float64 `json:"peakCPUs"` // most processors that it kept busy over about five seconds; null for a short step
	// PeakRSSBytes and StartRSSBytes are resident memory, without what a real node's parts can drop.
	PeakRSSBytes  int64 `json:"peakRSSBytes"`
	StartRSSBytes int64 `json:"startRSSBytes"`
	// PeakPSSBytes and StartPSSBytes count shared memory of many processes once; 0 for one process.
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
	// LoadCPUSeconds and LoadPeakMemoryBytes cover all steps from first request to the end of the hold.
	LoadCPUSeconds      float64 `json:"loadCpuSeconds"`
	LoadPeakMemoryBytes int64   `json:"loadPeakMemory"`
	Objects             int     `json:"objects"`
}
