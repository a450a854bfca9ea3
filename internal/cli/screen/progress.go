package screen

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/words"
	"plimsoll.dev/plimsoll/internal/run/engine"
)

// How often progress is shown: on a terminal a picture is drawn over, else
// lines follow one another.
const (
	liveInterval  = 500 * time.Millisecond
	plainInterval = 10 * time.Second
)

// Display shows how a run proceeds, on standard error.
type Display struct {
	Console *Console
	Quiet   bool
	Title   string
	Unit    string
	Kind    record.ObjectKind
	Stream  bool       // the load is a stream of requests
	Plan    *plan.Plan // its guards are complete once the first step is chosen
	Soft    context.Context
	stop    chan struct{}

	mu       sync.Mutex
	ended    bool
	Guards   string    // as they were said, "" for none
	begun    time.Time // the first step
	steps    []result.Step
	forecast forecast
	doing    bool // a step is under way
	status   engine.Status
	sum      func() fold.Live
	live     fold.Live
	summed   time.Time // when live was taken last
	sumTook  time.Duration
	since    time.Time // start of the stage
	shown    time.Time // when the last line was shown, where there is no terminal
	rates    rates
}

// Lasts says how long steps are held: one that decides, after its warm-up, and
// one that only proposes.
func (g *Display) Lasts(warm, hold, short time.Duration) {
	g.forecast.warm, g.forecast.hold, g.forecast.short = warm, hold, short
}

// Start keeps the display going until End is called.
func (g *Display) Start() {
	g.stop = make(chan struct{})
	if g.Quiet {
		return
	}
	go func(stop <-chan struct{}) {
		tick := time.NewTicker(liveInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				g.tick()
			case <-stop:
				return
			}
		}
	}(g.stop)
}

// Status implements run.Observer.
func (g *Display) Status(s engine.Status, sum func() fold.Live) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.Console.Now()
	if s.Step != g.status.Step {
		g.live, g.rates = fold.Live{}, rates{}
	}
	if s.Step != g.status.Step || s.Stage != g.status.Stage {
		g.since, g.shown = now, time.Time{}
	}
	g.status, g.sum, g.doing = s, sum, true
	g.rates.add(now, s.Progress.Arrived)
}

// tick shows how far the run is.
func (g *Display) tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.begun.IsZero() || g.ended {
		return
	}
	now := g.Console.Now()
	if g.Console.screen != nil {
		g.refresh(now)
		g.draw(now)
		return
	}
	if !g.doing || now.Sub(g.since) < waitingSilence || now.Sub(g.shown) < plainInterval {
		return
	}
	g.shown = now
	if g.refresh(now); !g.doing {
		return
	}
	g.Console.Logf("%s\n", statusLine(g.status, g.there(), g.live, now.Sub(g.since)))
}

// refresh sums up the step under way, for at most a fiftieth of the time. It is
// called with the lock held, and gives it up meanwhile: a step must not wait for
// its display.
func (g *Display) refresh(now time.Time) {
	const part = 50
	if g.sum == nil || now.Sub(g.summed) < part*g.sumTook {
		return
	}
	sum, step := g.sum, g.status.Step
	g.mu.Unlock()
	live := sum()
	g.mu.Lock()
	g.summed = g.Console.Now()
	g.sumTook = g.summed.Sub(now)
	if g.doing && g.status.Step == step {
		g.live = live
	}
}

// draw draws the picture. It is called with the lock held.
func (g *Display) draw(now time.Time) {
	p := picture{
		title: g.Title, unit: g.Unit, kind: g.Kind, elapsed: now.Sub(g.begun), stopping: g.Soft.Err() != nil, steps: g.steps,
		left: g.forecast.left(now),
	}
	if g.doing {
		p.doing = &doing{Status: g.status, elapsed: now.Sub(g.since), rate: g.rates.now(), live: g.live}
	}
	g.Console.screen.draw(p.draw(g.Console.Width(), g.Console.Height()))
}

// there names the state of ready objects, or of answered requests.
func (g *Display) there() string {
	if g.Stream {
		return "done"
	}
	return strings.ToLower(g.Kind.There)
}

// sentOf returns how many requests were sent by a schedule, or by clients, who send
// as many as are answered.
func sentOf(s engine.Status) string {
	if s.Requests == 0 {
		return fmt.Sprintf("%d sent", s.Sent)
	}
	return fmt.Sprintf("%d of %d sent", s.Sent, s.Requests)
}

// statusLine returns a step's status in one line.
func statusLine(s engine.Status, there string, live fold.Live, elapsed time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "step %d %s %s: ", s.Step, cmp.Or(s.Arm, string(s.Purpose)), words.Number(s.Level))
	switch s.Stage {
	case engine.StageEmptying:
		fmt.Fprintf(&b, "emptying, %s so far", elapsed.Round(time.Second))
		return b.String()
	case engine.StageRaising:
		fmt.Fprintf(&b, "created %d of %d", s.Replied, s.Requests)
	case engine.StageWarming, engine.StageArriving:
		fmt.Fprintf(&b, "%s, %s, %d were %s, %d in flight", s.Stage, sentOf(s), s.Progress.Arrived, there, s.InFlight)
		if s.Late > 0 {
			fmt.Fprintf(&b, ", %d late, %d dropped", s.Late, s.Dropped)
		}
	default:
		b.WriteString(string(s.Stage))
	}
	if s.Stage != engine.StageWarming && s.Stage != engine.StageArriving && s.Units > 0 {
		fmt.Fprintf(&b, ", %s %d of %d", there, s.Progress.There, s.Units)
	}
	if rate := float64(s.Replied) / elapsed.Seconds(); s.Stage == engine.StageRaising && elapsed > time.Second {
		fmt.Fprintf(&b, ", %.0f/s", rate)
	}
	if live.P50 != nil && live.P99 != nil {
		fmt.Fprintf(&b, ", p50 %s p99 %s", words.Seconds(*live.P50), words.Seconds(*live.P99))
	}
	if s.Stage == engine.StageRaising {
		fmt.Fprintf(&b, ", %d of %d in flight", s.InFlight, s.Bound)
	}
	if n := s.Progress.Unschedulable; n > 0 {
		fmt.Fprintf(&b, ", %d without a place", n)
	}
	left := s.Left
	if s.Stage == engine.StageRaising && elapsed > time.Second && s.Replied > 0 {
		left = time.Duration(float64(elapsed) / float64(s.Replied) * float64(s.Requests-s.Replied))
	}
	if left > 0 {
		atMost := ""
		if s.Stage == engine.StageWaiting {
			atMost = "at most "
		}
		fmt.Fprintf(&b, ", %s%s left", atMost, left.Round(time.Second))
	}
	return b.String()
}

// Chose implements run.Observer.
func (g *Display) Chose(n design.Next, ahead [][]design.Next) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.Console.Now()
	if g.begun.IsZero() {
		g.begun = now
		if text := GuardsText(g.Plan.Guards, g.Kind.Measures); text != g.Guards && !g.Quiet {
			g.Guards = text
			g.say("%s", text)
		}
		if text := lastsText(g.Plan, g.forecast.warm+g.forecast.hold); text != "" && !g.Quiet {
			g.say("%s", text)
		}
	}
	g.since = now
	g.forecast.chose(now, n, ahead)
	if g.Quiet || g.Console.screen != nil {
		return
	}
	g.Console.Logf("%s %s\n", cmp.Or(n.Arm, string(n.Purpose)), words.Number(n.Level))
}

// lastsText says how long a comparison that ends when it is decided may take, each step
// lasting at least step; "" for other plans.
func lastsText(p *plan.Plan, step time.Duration) string {
	if p.Kind != plan.AB || p.Repeat.Fixed() {
		return ""
	}
	each := len(p.Arms) * len(p.Levels())
	least, most := each*p.Repeat.Least, each*p.Repeat.Most
	end := "each arm is better, worse or equivalent"
	if p.Until == plan.UntilNotWorse {
		end = "no arm is worse"
	}
	return fmt.Sprintf("%d to %d steps until %s: from %s to %s, and the time to fill and empty the target",
		least, most, end, words.Span((time.Duration(least) * step).Seconds()), words.Span((time.Duration(most) * step).Seconds()))
}

// GuardsText says at what the load stops, each bound with its unit; "" where no
// guard watches.
func GuardsText(guards plan.Guards, measures []record.Measure) string {
	var bounds []string
	for _, m := range measures {
		if bound, ok := guards[m.Name]; ok {
			bounds = append(bounds, fmt.Sprintf("%s is %s (%s)", m.Name, bound, m.Help))
		}
	}
	if len(bounds) == 0 {
		return ""
	}
	return "the load stops when " + strings.Join(bounds, ", or ")
}

// Stepped implements run.Observer.
func (g *Display) Stepped(s result.Step) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.steps, g.doing, g.sum = append(g.steps, s), false, nil
	g.forecast.stepped(g.Console.Now())
	switch {
	case g.Quiet:
	case g.Console.screen != nil:
		g.draw(g.Console.Now())
	default:
		g.Console.Logf("%s\n", g.stepLine(s))
	}
}

// stepLine returns the outcome of a step in one line.
func (g *Display) stepLine(s result.Step) string {
	text := fmt.Sprintf("step %d %s %s: %s", s.ID, cmp.Or(s.Arm, string(s.Purpose)), words.Number(s.LevelReached), s.Verdict)
	if s.Verdict != slo.Pass {
		return text + ": " + s.VerdictWhy
	}
	if q := quantiles(s.Latency[g.Kind.There].P50, s.Latency[g.Kind.There].P99); q != "" {
		text += fmt.Sprintf(", %d %s, %s", s.Account().Ready, g.there(), q)
	}
	return text
}

// Event implements run.Observer. What a user must know at once is
// shown; the rest is for the record.
func (g *Display) Event(e record.Event) {
	if g.Quiet {
		return
	}
	switch b := e.Body.(type) {
	case *record.Guard:
		g.say("%s", b.Message)
	case *record.Fault:
		if b.To == 0 {
			g.say("%s", strings.TrimSuffix(b.What+": "+b.Message, ": "))
		} else {
			g.say("%s is over after %s", b.What, (b.To - b.From).Duration().Round(time.Millisecond))
		}
	}
}

// say shows a line at once: on a terminal above the picture.
func (g *Display) say(format string, args ...any) { g.Console.Logf(format+"\n", args...) }

// End takes the picture away. Where the result does not follow on the terminal,
// the steps that were made stay there.
// A second call does nothing.
func (g *Display) End(result bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return
	}
	close(g.stop)
	g.ended = true
	if g.Quiet || g.Console.screen == nil {
		return
	}
	g.Console.screen.draw(nil)
	if result && g.Console.StdoutTerminal {
		return
	}
	for _, s := range g.steps {
		g.say("%s", g.stepLine(s))
	}
}

// rates computes how fast a count has grown lately.
type rates struct {
	at    []time.Time
	count []int
}

// rateSpan is the time over which a rate is taken.
const rateSpan = 3 * time.Second

func (r *rates) add(now time.Time, count int) {
	r.at, r.count = append(r.at, now), append(r.count, count)
	for len(r.at) > 2 && now.Sub(r.at[1]) >= rateSpan {
		r.at, r.count = r.at[1:], r.count[1:]
	}
}

// now returns the rate per second, nil while too little is known.
func (r *rates) now() *float64 {
	const least = time.Second / 2
	n := len(r.at) - 1
	if n < 1 || r.at[n].Sub(r.at[0]) < least {
		return nil
	}
	rate := float64(r.count[n]-r.count[0]) / r.at[n].Sub(r.at[0]).Seconds()
	return &rate
}

// forecast estimates how long a run still takes: a step takes its hold, and as
// long for what it adds to the level before it as the steps so far took.
type forecast struct {
	hold, short time.Duration // of a step that decides, and of one that only proposes
	warm        time.Duration // before each hold
	ahead       [][]design.Next
	chosen      design.Next
	began       time.Time     // the chosen step; zero between steps
	level       float64       // before it
	took        time.Duration // the steps so far, without their holds
	raised      float64       // what they have added to their levels
}

func (f *forecast) chose(now time.Time, n design.Next, ahead [][]design.Next) {
	f.chosen, f.ahead, f.began = n, ahead, now
}

func (f *forecast) stepped(now time.Time) {
	f.took += max(now.Sub(f.began)-f.holdOf(f.chosen), 0)
	f.raised += added(f.chosen, f.level)
	f.level = f.chosen.Level
	for i, steps := range f.ahead {
		f.ahead[i] = steps[min(1, len(steps)):]
	}
	f.began = time.Time{}
}

func (f *forecast) holdOf(n design.Next) time.Duration {
	if n.FullHold {
		return f.warm + f.hold
	}
	return f.warm + f.short
}

// added returns what a step adds to the level before it.
func added(n design.Next, before float64) float64 {
	if n.FromEmpty {
		before = 0
	}
	return math.Abs(n.Level - before)
}

// left says how many steps and how long the run still takes, "" until a step
// has ended.
func (f *forecast) left(now time.Time) string {
	if f.raised <= 0 || len(f.ahead) == 0 {
		return ""
	}
	fewest, most := math.MaxInt, 0
	least, longest := time.Duration(math.MaxInt64), time.Duration(0)
	for _, steps := range f.ahead {
		fewest, most = min(fewest, len(steps)), max(most, len(steps))
		var sum time.Duration
		level := f.level
		for i, n := range steps {
			takes := f.holdOf(n) + time.Duration(float64(f.took)*added(n, level)/f.raised)
			if i == 0 && !f.began.IsZero() {
				takes = max(takes-now.Sub(f.began), time.Second)
			}
			sum += takes
			level = n.Level
		}
		least, longest = min(least, sum), max(longest, sum)
	}
	if most == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s left with this one, about %s", between(strconv.Itoa(fewest), strconv.Itoa(most)), words.Noun(most, "step"), between(clock(least), clock(longest)))
}

// between returns a range in words.
func between(from, to string) string {
	if from == to {
		return from
	}
	return from + " to " + to
}
