package fold

import (
	"net/http"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/record"
)

// neighbours returns the resources that others took, over the hold of a stream or over the step.
func (f *Facts) neighbours() []result.Neighbour {
	from, to := f.Start, f.End
	if f.Account.Streams() && f.Reached != Never {
		from, to = f.held()
	}
	return f.readings.NeighboursIn(from, to)
}

// NeighboursAt returns the resources of which others left the target short just before a moment.
func (f *Facts) NeighboursAt(t record.Micros) []result.Neighbour {
	return f.readings.NeighboursIn(max(t-usage.Window, f.Start), t)
}

func (f requestAccount) Refused() (n int) {
	for kind, failed := range f.stream.Account.Failed {
		if code, is := strings.CutPrefix(kind, "status "); kind != record.FailedTimeout && !(is && timeoutCode(code)) {
			n += failed
		}
	}
	return n
}

func (f objectAccount) Refused() (n int) {
	for _, s := range f.own {
		if f.judges(s) && s.refused() {
			n++
		}
	}
	return n
}

func (f objectAccount) RefusedObjects(milestone string, own bool) (n int) {
	m := f.find(milestone)
	for i := range f.units {
		u := &f.units[i]
		o := u.object
		switch {
		case own && !u.own || f.outcomes[i] == unitReady || !f.reaches(u.slot, m):
		case o == nil && u.slot.refused(), o != nil && (o.gone || o.reached(m) == Never && (o.failed || o.reason != "" && o.reason == f.kind.Unplaced)):
			n++
		}
	}
	return n
}

// refused reports whether the slot's request failed for another reason than time.
func (s *slot) refused() bool {
	return s.failed() && !timeoutCode(strconv.Itoa(s.code)) && !(s.code == 0 && timedOut(s.err))
}

func timeoutCode(code string) bool {
	return code == strconv.Itoa(http.StatusRequestTimeout) || code == strconv.Itoa(http.StatusGatewayTimeout)
}

func timedOut(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "timeout") || strings.Contains(text, "timed out") || strings.Contains(text, "deadline exceeded")
}
