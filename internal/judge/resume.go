package judge

import (
	"fmt"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
)

// Resumable says where a run that was cut goes on.
type Resumable struct {
	Step, Whole int           // the last step that began, and the last whole one; 0 for none
	Cut         int           // the step that was cut and is repeated, 0 for none
	Last        record.Micros // the last event on record
}

// Resume counts the run as cut here, whatever it was doing, and lets it go on from an empty target: a
// step in progress is closed as interrupted, nothing is in place any more, and cut steps no longer count,
// so that the search repeats them. A step that a guard ended is not repeated, even if its end is not on
// record: the target must not suffer it twice.
func (b *Builder) Resume() Resumable {
	b.close()
	r := Resumable{Last: b.lastT}
	for _, s := range b.steps {
		r.Step = max(r.Step, s.ID)
		if s.Ending == record.EndInterrupted && !s.Guarded {
			r.Cut = s.ID
			s.ClearVerdicts()
		} else {
			r.Whole, r.Cut = s.ID, 0
		}
	}
	for _, w := range b.collector.Resume() {
		b.Warn(w)
	}
	return r
}

// Forget leaves out the step in progress, whose record is not reliable.
func (b *Builder) Forget() { b.collector.Forget() }

func (b *Builder) addResume(t record.Micros, r *record.RunEvent) {
	brokeOff := "after the end of its record, of which up to 100 ms may be missing"
	if b.ended {
		brokeOff = "after it had ended"
		if b.endWhy != "" {
			brokeOff += " (" + b.endWhy + ")"
		}
	}
	paused := b.paused && r.Message == ""
	b.ended, b.endWhy, b.cleanup, b.paused, b.signal = false, "", nil, false, 0
	at := b.Resume()
	if paused {
		return
	}
	gap := (t - at.Last).Duration().Round(time.Millisecond).String()
	if r.Message != "" {
		gap = "an unknown time"
	}
	after := "before its first step"
	if at.Whole > 0 {
		after = fmt.Sprintf("after step %d", at.Whole)
	}
	text := fmt.Sprintf("the run was resumed %s, at %s, %s %s", after, b.spec.Wall(t), gap, brokeOff)
	if at.Cut > 0 {
		text += fmt.Sprintf(": step %d was cut off and is repeated", at.Cut)
	}
	b.Warn(record.Warning{Kind: record.WarningResumed, Text: text})
	if r.Message != "" {
		b.Warn(record.Warning{Kind: record.WarningResumed, Text: r.Message})
	}
}
