package fold

import "plimsoll.dev/plimsoll/internal/record"

const (
	stampResolution = record.Micros(1e6)  // of a server's own times
	lateNews        = 2 * stampResolution // behind other news of its kind
	fewStamps       = 20                  // too few to know a server's clock to less than a second
)

// serverClock names the clock of a milestone's stamp: each place may have its own.
type serverClock struct {
	milestone int
	place     int32
}

// offset holds the shortest time from a stamp of a clock to its news, with the difference of the clocks.
type offset struct {
	least record.Micros
	n     int
}

// dateByServer dates the milestones whose news came late by the server's own times, to their resolution.
// A milestone that a list showed was reached within the second of its stamp: the object's time becomes
// the end of that second, and early its begin. Where news of the step was lost, a later message may
// report what a lost one should have. If it came more than lateNews later after its stamp than the
// quickest news of the same clock, early becomes the begin of its second too, and its time stays. Without
// lost news the target took that time: a node may know that a pod is ready long before it can say so.
// Where all news of a clock came late, nothing changes.
func dateByServer(own []*slot, created int, lost bool) {
	clocks := make(map[serverClock]offset)
	each := func(do func(o *object, m int, clock serverClock, after record.Micros)) {
		for _, s := range own {
			for _, o := range s.objects {
				for m, stamp := range o.stamp {
					if stamp != 0 && o.reached(m) != Never {
						do(o, m, serverClock{m, o.where}, o.reached(m)-record.Micros(stamp*1e6))
					}
				}
			}
		}
	}
	each(func(o *object, m int, clock serverClock, after record.Micros) {
		if o.isLate(m) {
			return
		}
		x, known := clocks[clock]
		if !known || after < x.least {
			x.least = after
		}
		x.n++
		clocks[clock] = x
	})
	each(func(o *object, m int, clock serverClock, after record.Micros) {
		x := clocks[clock]
		listed := o.isLate(m)
		if x.n == 0 || !listed && !(lost && after-x.least > lateNews) {
			return
		}
		from := o.at[m] - after + x.least
		if listed {
			o.at[m] = min(o.at[m], from+stampResolution)
		}
		if x.n < fewStamps {
			from -= stampResolution
		}
		o.setLate(m)
		for len(o.early) < len(o.stamp) {
			o.early = append(o.early, Never)
		}
		o.early[m] = from
		if m == created {
			o.first = min(o.first, o.at[m])
		}
	})
}

func (o *object) isLate(milestone int) bool { return o.late&(1<<min(milestone, 63)) != 0 }

func (o *object) setLate(milestone int) { o.late |= 1 << min(milestone, 63) }

// earliest returns the earliest possible time of a milestone with late news, at least time zero.
func (u *unit) earliest(milestone int) record.Micros {
	if early := u.object.early; milestone < len(early) && early[milestone] != Never {
		return max(early[milestone], u.zero)
	}
	return u.zero
}
