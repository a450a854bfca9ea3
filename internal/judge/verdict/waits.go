package verdict

import (
	"fmt"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
)

// Of a wait that counts as grown: by how much of what is normal, and by how many
// times the lag with which all news comes.
const (
	leastGrowth = 0.2 // least growth of a wait as a part of the normal one, lagsOfWait in lags of news
	lagsOfWait  = 2
)

// longestOf names the longest wait of a closed step's objects, and its slowdown, or "".
func longestOf(n *result.Bottleneck) string {
	if n == nil || len(n.Waits) == 0 {
		return ""
	}
	w := n.Waits[0]
	text := fmt.Sprintf("the longest wait was for the %s (%s to %s: %s on average, %.0f%% of all waiting)", w.For, w.From, w.To, result.DurationText(w.Mean, 0), w.Share)
	if n.Slowdown != nil {
		text += "; " + n.Slowdown.String()
	}
	return text
}

// growthOf names the wait that grew most beside the normal step, and the CPUs' use, or "". A wait as long
// as ever binds nothing, and one as short as the lag of news cannot be measured.
func growthOf(n *result.Bottleneck, normal *Judged, lag *result.WatchLag) string {
	if n == nil {
		return ""
	}
	var parts []string
	if len(n.Bounds) > 0 && n.Bound() == nil {
		parts = append(parts, "nothing that is watched was used up")
	}
	if normal != nil && normal.Bottleneck != nil && len(n.Bounds) == 0 {
		most, by, was := result.Wait{}, 0.0, 0.0
		for _, w := range n.Waits {
			before := 0.0 // for a way without an object of the normal step
			for _, x := range normal.Bottleneck.Waits {
				if x.From == w.From && x.To == w.To {
					before = x.Mean
				}
			}
			grew := w.Mean - before
			if lag != nil && lag.P50 != nil && grew <= lagsOfWait**lag.P50 || grew <= leastGrowth*before {
				continue
			}
			if grew > by {
				most, by, was = w, grew, before
			}
		}
		text := fmt.Sprintf("no wait grew beside step %d", normal.ID)
		if by > 0 {
			text = fmt.Sprintf("the wait for the %s (%s to %s) grew from %s to %s on average beside step %d", most.For, most.From, most.To, result.DurationText(was, 0), result.DurationText(most.Mean, 0), normal.ID)
		}
		parts = append(parts, text)
	}
	if n.CPUBusy != nil {
		text := fmt.Sprintf("the %d CPUs were %.0f%% busy", n.CPUs, *n.CPUBusy)
		var most []string
		for _, u := range n.CPUBy[:min(len(n.CPUBy), 3)] {
			most = append(most, fmt.Sprintf("%s %.0f%%", u.Source, u.Percent))
		}
		if len(most) > 0 {
			text += ", " + strings.Join(most, ", ")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}
