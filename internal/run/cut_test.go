package run

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run/engine"
	"plimsoll.dev/plimsoll/internal/system/simulated"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

// Wherever a record of any kind ends, what is whole in it is judged as before,
// what is cut is never a breach that the rest could have made up for, and the
// line is never another one.
func TestWhatIsCutDecidesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector it takes half a minute, and shares no more between goroutines than others do")
	}
	t.Parallel()
	density := small()
	density.goals = []string{"ready=all Ready", "fast=Ready p99 <= 5s; errors < 5%"}
	rate := trial{plan: line(12), goals: inTime, options: openLoop(), design: design.Search{From: 4, Step: 4, Max: 40, Resolution: 2, Need: 2, Of: 2}}
	rate.plan.Latency = dist.Dist{Shape: dist.Constant, A: 300 * time.Millisecond}
	rate.options.Hold, rate.options.ShortHold = 20*time.Second, 20*time.Second
	stream := streamed(simulated.Plan{Latency: took(2 * time.Millisecond), Rate: 95})
	stream.design = design.Search{From: 50, Step: 50, Max: 500, Resolution: 10, Need: 2, Of: 2}
	stream.options.Hold, stream.options.ShortHold, stream.options.Warmup = 10*time.Second, 10*time.Second, 2*time.Second
	clients := streamed(simulated.Plan{Latency: took(10 * time.Millisecond), Rate: 500}, 2, 40)
	clients.options = engine.Options{Warmup: 2 * time.Second, MaxInFlight: 100, Timeout: 10 * time.Second, Hold: 10 * time.Second, ShortHold: 10 * time.Second}
	clients.goals = []string{"latency=Responded p99 <= 50ms; errors < 1%"}
	for name, tr := range map[string]trial{"density": density, "rate": rate, "stream": stream, "clients": clients} {
		t.Run(name, func(t *testing.T) {
			whole, _, dir, err := tr.run(t)
			if err != nil || whole.Verdict == slo.Inconclusive {
				t.Fatalf("the unbroken run: %s (%s), %v", whole.Verdict, whole.Why, err)
			}
			plain := text(t, dir)
			rng := rand.New(rand.NewPCG(11, 11))
			for range suite.Size(8, 40) {
				size := rng.IntN(len(plain))
				what := fmt.Sprintf("cut at %d of %d", size, len(plain))
				got := tr.judged(t, cutTo(t, dir, plain[:size]))
				for i, s := range got.Steps {
					want := whole.Steps[i]
					switch {
					case s.Ending == record.EndInterrupted:
						// What is late for certain, or was refused, is a breach at once; a
						// rate, and all of a stream, is only known at the end.
						if s.Verdict == slo.Pass || s.Verdict == slo.Fail && (want.Verdict != slo.Fail || s.Requests != nil || strings.Contains(s.VerdictWhy, "achieved")) {
							t.Errorf("%s: step %d of the cut record is %s (%s); of the whole one it is %s", what, s.ID, s.Verdict, s.VerdictWhy, want.Verdict)
						}
					case !reflect.DeepEqual(s.Goals, want.Goals) || !reflect.DeepEqual(s.Account(), want.Account()):
						t.Errorf("%s: step %d is whole, and is %v, %+v; it was %v, %+v", what, s.ID, s.Goals, s.Account(), want.Goals, want.Account())
					}
				}
				for i, g := range got.Goals {
					if !g.Verdict.Decided() || g.LoadLine == nil {
						continue
					}
					l, want := g.LoadLine, whole.Goals[i].LoadLine
					if *l.Level != *want.Level || *l.LowestFailing != *want.LowestFailing || l.Binding != want.Binding {
						t.Errorf("%s: the line of %s is %s, %g, below %g, by %s; it was %g, %g, %s", what, g.Name, g.Verdict, *l.Level, *l.LowestFailing, l.Binding, *want.Level, *want.LowestFailing, want.Binding)
					}
				}
			}
		})
	}
}

// A bit that is wrong in a record costs the steps that its frame tells of, and those
// that add to them: each that is still decided is judged as it was, and the run
// decides nothing where that could matter.
func TestADamagedRecordDecidesWhatIsWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector it takes half a minute, and shares no more between goroutines than others do")
	}
	t.Parallel()
	tr := small()
	tr.plan.Places = 400
	whole, _, dir, err := tr.run(t)
	if err != nil || !whole.Verdict.Decided() {
		t.Fatalf("the unbroken run: %s (%s), %v", whole.Verdict, whole.Why, err)
	}
	sound, err := os.ReadFile(dir.Path(record.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	tries, judged, steps := suite.Size(6, 12), 0, 0
	text := textOf(sound)
	for range tries {
		at, damaged := 0, sound
		for bytes.Equal(textOf(damaged), text) { // a match may lie at another distance as well
			at, damaged = rng.IntN(len(sound)), slices.Clone(sound)
			damaged[at] ^= byte(1 << rng.IntN(8))
		}
		if err := os.WriteFile(dir.Path(record.HistoryFile), damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		what := fmt.Sprintf("byte %d of %d", at, len(sound))
		got, err := Replay(dir, tr.experiment(t))
		if err != nil {
			if !strings.Contains(err.Error(), "damaged") {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		judged++
		if !slices.ContainsFunc(got.Warnings, func(w record.Warning) bool {
			return w.Kind == record.WarningCut && strings.Contains(w.Text, "a part of history.jsonl.zst is damaged")
		}) {
			t.Errorf("%s: %s (%s), nothing is told: %q", what, got.Verdict, got.Why, got.Warnings)
		}
		undecided := len(whole.Steps)
		for _, s := range got.Steps {
			if !s.Verdict.Decided() {
				continue
			}
			steps++
			undecided--
			if want := whole.Steps[s.ID-1]; s.Verdict != want.Verdict || !reflect.DeepEqual(s.Goals, want.Goals) || !reflect.DeepEqual(s.Account(), want.Account()) {
				t.Errorf("%s: step %d is %s, %v, %+v; it was %s, %v, %+v", what, s.ID, s.Verdict, s.Goals, s.Account(), want.Verdict, want.Goals, want.Account())
			}
		}
		if got.Verdict.Decided() && (undecided > 0 || got.Verdict != whole.Verdict) {
			t.Errorf("%s: %s (%s) with %d steps undecided, was %s", what, got.Verdict, got.Why, undecided, whole.Verdict)
		}
	}
	t.Logf("of %d damaged records %d were judged, with %d whole steps; %d bytes", tries, judged, steps, len(sound))
	if judged < tries/3 || steps < tries {
		t.Errorf("of %d damaged records %d were judged, with %d whole steps", tries, judged, steps)
	}
}

// textOf returns the text of a history up to its first damage.
func textOf(history []byte) []byte {
	zip, err := zstd.NewReader(bytes.NewReader(history))
	if err != nil {
		return nil
	}
	defer zip.Close()
	text, _ := io.ReadAll(zip)
	return text
}
