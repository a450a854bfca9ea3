package fold

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

// One object's times by the server's own clock: what a list showed late, or a later
// message, is dated by it, as far as other news says how the clocks differ.
func TestLateNewsIsDatedByTheServer(t *testing.T) {
	const ready, second = 1, record.Micros(1e6)
	news := func(node int32, at record.Micros, stamp int64) *object {
		return &object{at: []record.Micros{Never, at}, stamp: []int64{0, stamp}, where: node}
	}
	// Forty objects of each node, whose clock is so far ahead of the others' and whose
	// news comes within 0.3 s.
	inTime := func(node int32, ahead int64) (list []*object) {
		for i := range 40 {
			at := second*10 + record.Micros(i)*137_000
			list = append(list, news(node, at+300_000, int64(at/second)+1000+ahead))
		}
		return list
	}
	for _, tt := range []struct {
		why    string
		others []*object
		at     record.Micros
		stamp  int64
		list   bool // a list showed it
		lost   bool // other news of the step was lost
		want   record.Micros
		early  record.Micros // Never: unknown
	}{
		{"in time", inTime(0, 0), 12_500_000, 1012, false, true, 12_500_000, Never},
		{"1.9 s after its second began may be the lag of the watch", inTime(0, 0), 14_200_000, 1012, false, true, 14_200_000, Never},
		{"8 s later where news was lost: so may have been its own", inTime(0, 0), 20_000_000, 1012, false, true, 20_000_000, 12_300_000},
		{"8 s later where none was: the node was slow to say so", inTime(0, 0), 20_000_000, 1012, false, false, 20_000_000, Never},
		{"a list showed it", inTime(0, 0), 20_000_000, 1012, true, false, 13_300_000, 12_300_000},
		{"a list showed it within its second", inTime(0, 0), 12_600_000, 1012, true, false, 12_600_000, 12_300_000},
		{"a clock that is 8 s behind is no late news", inTime(0, -8), 20_000_000, 1012 - 1, false, true, 20_000_000, Never},
		{"another node's clock says nothing of this one's", inTime(1, 0), 20_000_000, 1012, true, true, 20_000_000, Never},
		{"no other news", nil, 20_000_000, 1012, true, true, 20_000_000, Never},
		{"the server gives no time", inTime(0, 0), 20_000_000, 0, true, true, 20_000_000, Never},
	} {
		o := news(0, tt.at, tt.stamp)
		if tt.list {
			o.setLate(ready)
		}
		late := o.isLate(ready)
		dateByServer([]*slot{{objects: append(tt.others, o)}}, -1, tt.lost)
		early := Never
		if len(o.early) > ready {
			early = o.early[ready]
		}
		near := func(got, want record.Micros) bool {
			return got == want || want != Never && got-want < 150_000 && want-got < 150_000
		}
		if got := o.at[ready]; !near(got, tt.want) || !near(early, tt.early) {
			t.Errorf("%s: between %v and %v, want %v and %v", tt.why, early, got, tt.early, tt.want)
		}
		if o.isLate(ready) != (late || early != Never) {
			t.Errorf("%s: late %v", tt.why, o.isLate(ready))
		}
	}
}

// However many objects there are, those whose news came in time keep their times.
func TestTimesOfNewsInTimeStay(t *testing.T) {
	s := &slot{}
	var want []record.Micros
	for i := range 5000 {
		at := record.Micros(i) * 7919
		o := &object{at: []record.Micros{at + record.Micros(i%10)*100_000}, stamp: []int64{int64(at/1e6) + 1700000000}, where: int32(i % 7)}
		s.objects, want = append(s.objects, o), append(want, o.at[0])
	}
	dateByServer([]*slot{s}, 0, true)
	for i, o := range s.objects {
		if o.at[0] != want[i] || o.late != 0 {
			t.Fatalf("object %d: %v instead of %v", i, o.at[0], want[i])
		}
	}
}
