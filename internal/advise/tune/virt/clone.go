package virt

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/optimize"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/ceph"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

// CloneModel models clones of a golden image in the provisioner and its lock (V23, V24), in seconds.
type CloneModel struct {
	Workers int     // calls at a time (10 in the document)
	Lock    float64 // that a clone holds the image, one after the other
	Work    float64 // that a clone needs after that, beside others
	Penalty float64 // the share by which each clone beyond the workers slows the holder of the image
	// Each clone beyond FlattenAfter holds the image for Flatten longer. FlattenAfter 0 is never.
	FlattenAfter int
	Flatten      float64
	Bulk         float64 // the further cost of each bulk: making the machines, and noticing that the last one is done
}

// CloneReading is the measured time of a bulk.
type CloneReading struct {
	Bulk    int
	Seconds float64
	From    string
}

// UnmarshalText reads a reading as a parameter.
func (r *CloneReading) UnmarshalText(text []byte) error {
	var took time.Duration
	err := param.ReadParts(string(text), "bulk=time", &r.Bulk, &took)
	r.Seconds = took.Seconds()
	return err
}

// BulkTime returns the time from a bulk's first request to its last clone, after so many earlier clones.
func (m CloneModel) BulkTime(bulk, before int) float64 {
	workers := make([]float64, max(1, m.Workers)) // when each is free
	lockFree, done := 0.0, 0.0
	for i := range bulk {
		// Calls begin in turn, so the worker that is free first comes next.
		w := &workers[i%len(workers)]
		hold := m.Lock * (1 + m.Penalty*float64(max(0, bulk-i-len(workers))))
		if m.FlattenAfter > 0 && before+i >= m.FlattenAfter {
			hold += m.Flatten
		}
		lockFree = max(*w, lockFree) + hold
		*w = lockFree + m.Work
		done = max(done, *w)
	}
	return done + m.Bulk
}

// Total returns how long clones take in bulks, one after the other.
func (m CloneModel) Total(clones, bulk int) float64 {
	total := 0.0
	for before := 0; before < clones; before += bulk {
		total += m.BulkTime(min(bulk, clones-before), before)
	}
	return total
}

// Calibrate fits the model to readings by the squares of their relative errors. It fits the time that a clone
// holds the image; with two sizes of bulk also the cost of a bulk, and with three the penalty. If the time of
// a flattening is not given, it follows from bulks that reach the flattening and others that do not. worst is
// the largest remaining error, as a share.
func (m CloneModel) Calibrate(readings []CloneReading, flattenGiven bool) (fitted CloneModel, worst float64) {
	small, large := map[int]bool{}, map[int]bool{}
	lock, longest := math.Inf(1), 0.0
	for _, r := range readings {
		sizes := small
		if !flattenGiven && m.FlattenAfter > 0 && r.Bulk > m.FlattenAfter {
			sizes = large
		}
		sizes[r.Bulk] = true
		lock, longest = min(lock, r.Seconds/float64(r.Bulk)), max(longest, r.Seconds)
	}
	if len(small) == 0 || len(large) == 0 { // no comparison shows the cost of flattening
		maps.Copy(small, large)
		large = nil
	}
	// The squares keep the parameters from becoming negative.
	free, start := []func(*CloneModel, float64){func(c *CloneModel, x float64) { c.Lock = x * x }}, []float64{math.Sqrt(lock)}
	if len(small) >= 2 {
		free, start = append(free, func(c *CloneModel, x float64) { c.Bulk = x * x }), append(start, 1)
	}
	if len(small) >= 3 {
		free, start = append(free, func(c *CloneModel, x float64) { c.Penalty = x * x / 100 }), append(start, 0.1)
	}
	if len(large) > 0 {
		free, start = append(free, func(c *CloneModel, x float64) { c.Flatten = x * x }), append(start, math.Sqrt(lock))
	}
	at := func(x []float64) CloneModel {
		c := m
		for i, set := range free {
			set(&c, x[i])
		}
		return c
	}
	misses := func(x []float64) (sum float64) {
		c := at(x)
		for _, r := range readings {
			e := math.Log(max(c.BulkTime(r.Bulk, 0), 1e-9) / r.Seconds)
			sum += e * e
		}
		return sum
	}
	// The search restarts from its end, because its simplex may have become flat.
	for range 8 {
		found, err := optimize.Minimize(optimize.Problem{Func: misses}, start, nil, &optimize.NelderMead{})
		if err != nil && found == nil {
			break
		}
		start = found.X
	}
	fitted = at(start)
	for _, r := range readings {
		worst = max(worst, math.Abs(fitted.BulkTime(r.Bulk, 0)/r.Seconds-1))
	}
	return fitted, worst
}

func bulkSizes(clones int) []int {
	list := []int{1, 5, 10, 20, 50, 100, 150, 200, 250, 300, 400, 500, 800, 1000, 2000, 5000}
	return append(slices.DeleteFunc(list, func(b int) bool { return b >= clones }), clones)
}

// cloneBulks finds the best size of a bulk (V23, V24).
func (t *virtTuner) cloneBulks() {
	if !t.Clones.Ok() {
		return
	}
	t.Cite("V23", "V24", "V25", "ceph-csi")
	t.Figure("bulkDocument", int64(100), "clones", "the document found bulks of 100 the fastest")
	parents := param.CeilDiv(t.Clones.Value, ceph.CloneSoftLimit)
	t.Figure("goldenImages", parents, "", fmt.Sprintf("so that none has more than %d clones, where flattening begins", ceph.CloneSoftLimit))
	if !t.CloneLock.Ok() && len(t.CloneReadings) == 0 {
		t.Warn("how long clones take is unknown: --clone-lock, or bulks that were measured (--clone-measured 10=40s, --clone-measured 100=5m, --clone-measured 400=30m); the document's own times are in charts that are lost")
		return
	}
	m := CloneModel{
		Workers: int(t.CloneWorkers.Value), Lock: t.CloneLock.Value.Seconds(), Work: t.CloneWork.Value.Seconds(), Penalty: float64(t.ClonePenalty.Value),
		FlattenAfter: ceph.CloneSoftLimit, Flatten: t.Flatten.Value.Seconds(), Bulk: t.CloneBulk.Value.Seconds(),
	}
	t.Cite("csi-provisioner")
	if len(t.CloneReadings) > 0 {
		var worst float64
		if m, worst = m.Calibrate(t.CloneReadings, t.Flatten.Ok()); !t.Flatten.Ok() && m.Flatten > 0 {
			t.Figure("cloneFlatten", math.Round(m.Flatten*10)/10, "s", fmt.Sprintf("that flattening one image takes, as the bulks above %d clones have it", ceph.CloneSoftLimit))
			t.Flatten = param.Given(time.Duration(m.Flatten*float64(time.Second)), "from the readings")
		}
		for _, r := range t.CloneReadings {
			t.Inputs = append(t.Inputs, answer.Input{Name: fmt.Sprintf("bulk of %d", r.Bulk), Value: math.Round(r.Seconds*10) / 10, Unit: "s", From: r.From})
			t.Step(fmt.Sprintf("a bulk of %d: measured, and by the model", r.Bulk), fmt.Sprintf("%.1f s, %.1f s", r.Seconds, m.BulkTime(r.Bulk, 0)), "V23")
		}
		t.Figure("cloneLock", math.Round(m.Lock*1000)/1000, "s", "that a clone holds the image, as the readings have it")
		t.Figure("bulkOverhead", math.Round(m.Bulk*10)/10, "s", "that a bulk costs besides")
		t.Figure("clonePenalty", math.Round(m.Penalty*1e6)/1e6, "", "by which each clone that waits beyond the workers slows the others, as a share; three sizes of bulk or more tell it")
		if worst > 0.25 {
			t.Warn("the model misses a reading by %.0f%%: take what it says of other bulks with care; parameters that were given (--flatten, --clone-work, --clone-workers) may not be those of the storage that was measured", 100*worst)
		}
	}
	type choice struct {
		bulk  int
		total float64
	}
	var choices []choice
	var texts []string
	for _, b := range bulkSizes(int(t.Clones.Value)) {
		c := choice{b, m.Total(int(t.Clones.Value), b)}
		choices = append(choices, c)
		texts = append(texts, fmt.Sprintf("%d: %s", b, seconds(c.total)))
	}
	byTime := func(x, y choice) int { return cmp.Compare(x.total, y.total) }
	fastest := slices.MinFunc(choices, byTime)
	// Smaller bulks disturb others less: one percent does not justify a larger one.
	best := choices[slices.IndexFunc(choices, func(c choice) bool { return c.total <= fastest.total*1.01 })]
	t.Step(fmt.Sprintf("time of %s clones by size of bulk, from a model of %d workers and a lock on the image", param.Grouped(t.Clones.Value), m.Workers), strings.Join(texts, ", "), "V23", "V24")
	if near := choices[slices.IndexFunc(choices, func(c choice) bool { return c.total <= fastest.total*1.1 })]; near.bulk < best.bulk {
		t.Find(answer.Finding{Grade: answer.Advice, What: fmt.Sprintf("a bulk of %d is slower than one of %d by less than a tenth", near.bulk, best.bulk), Remedy: "take the smaller where others use the storage too"})
	}
	// No size of bulk saves this: the image is held for one clone after the other.
	held := float64(t.Clones.Value) * m.Lock
	flattened := float64(max(0, t.Clones.Value-ceph.CloneSoftLimit)) * m.Flatten
	t.Step("of that the image is held: clones x lock, and for flattening", fmt.Sprintf("%s and %s", seconds(held), seconds(flattened)), "V23", "V24")
	if flattened > held {
		t.Find(answer.Finding{Grade: answer.Change, What: "flattening", Now: seconds(flattened), Wanted: "none", Cost: "it takes longer than the clones themselves, whatever the size of the bulks", Remedy: fmt.Sprintf("%d golden images", parents)})
	}
	t.Figure("bulk", int64(best.bulk), "clones", "the smallest within 1% of the fastest of those compared")
	t.Figure("cloneTime", math.Round(best.total), "s", "of all clones, in bulks of that size")
	t.Figure("cloneTimeAtOnce", math.Round(m.Total(int(t.Clones.Value), int(t.Clones.Value))), "s", "all at once")
	t.Figure("cloneTimeDocument", math.Round(m.Total(int(t.Clones.Value), min(100, int(t.Clones.Value)))), "s", "in the document's bulks of 100")
	if t.Clones.Value > ceph.CloneSoftLimit {
		if !t.Flatten.Ok() {
			t.Warn("past %d clones of one image each further one waits for a flattening: give --flatten, the time of one, or use %d golden images", ceph.CloneSoftLimit, parents)
		}
		split := m
		split.FlattenAfter = 0
		per := int(param.CeilDiv(t.Clones.Value, parents))
		t.Figure("cloneTimeImages", math.Round(split.Total(per, min(best.bulk, per))), "s", fmt.Sprintf("with %d golden images cloned side by side, if workers and storage allow", parents))
	}
	t.Find(answer.Finding{Grade: answer.Advice, What: "cloneStrategy", Wanted: "copy, above 100 clones", Cost: "CSI clones may not be purged, even by hand (V25)", Remedy: "plimsoll tune ceph --clones " + fmt.Sprint(t.Clones.Value)})
}

func seconds(s float64) string { return (time.Duration(math.Round(s)) * time.Second).String() }

func checkReadings(list []CloneReading) error {
	for _, r := range list {
		if r.Bulk < 1 || r.Bulk > 100_000 || r.Seconds <= 0 {
			return param.Bad("clone-measured", "for example 100=5m", "a bulk of %d in %v s makes no sense", r.Bulk, r.Seconds)
		}
		if r.Seconds > 1e6 {
			return param.Bad("clone-measured", "", "a bulk takes less than 1000000 s")
		}
	}
	return nil
}
