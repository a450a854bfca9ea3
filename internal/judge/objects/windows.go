package objects

import (
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/stream"
	"plimsoll.dev/plimsoll/internal/record"
)

// Windows returns the windows of a recorded run's streams, by the step's ID.
func Windows(dir record.Dir) (map[int][]*record.Window, error) {
	rows, err := record.ReadWindows(dir)
	if err != nil {
		return nil, err
	}
	windows := make(map[int][]*record.Window)
	for i := range rows {
		windows[int(rows[i].Step)] = append(windows[int(rows[i].Step)], &rows[i].Window)
	}
	return windows, nil
}

// Stream folds the windows of a step again.
func Stream(windows []*record.Window) *stream.Stream {
	var hold record.Micros
	judged := windows[min(max(slices.IndexFunc(windows, func(w *record.Window) bool { return !w.WarmUp }), 0), len(windows)):]
	for _, w := range judged {
		hold = max(hold, w.To-judged[0].From)
	}
	s := stream.New(hold, nil)
	for _, w := range windows {
		s.Add(w)
	}
	return s
}

func streamSamples(dir record.Dir, milestones []string, there string) (map[int][]compare.MilestoneSample, error) {
	windows, err := Windows(dir)
	if err != nil {
		return nil, err
	}
	samples := make(map[int][]compare.MilestoneSample)
	for id, list := range windows {
		samples[id] = Stream(list).ByComponent(there, milestones)
	}
	return samples, nil
}
