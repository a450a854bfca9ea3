package virt

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"plimsoll.dev/plimsoll/internal/plan/planted"
	"plimsoll.dev/plimsoll/internal/plan/settings"
)

func figures(t testing.TB, list string) planted.Virt {
	t.Helper()
	given, err := settings.ParseList(list)
	if err != nil {
		t.Fatal(err)
	}
	v, err := planted.Parse(given, 1)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

var zero = time.Unix(0, 0)

// drain lets all clones be made and returns when the last one was.
func drain(q *cloneQueue, seen func(time.Time)) (last time.Time) {
	for {
		at, ok := q.next()
		if !ok {
			return last
		}
		if seen != nil {
			seen(at)
		}
		q.advance(at)
		last = at
	}
}

// inBulks returns how long it takes to deploy so many clones in bulks.
func inBulks(v planted.Virt, total, bulk int, c clone) time.Duration {
	q := newCloneQueue(v)
	now := zero
	for made := 0; made < total; made += bulk {
		for range min(bulk, total-made) {
			one := c
			q.add(now, &one)
		}
		now = drain(q, nil).Add(v.CloneFinish)
	}
	return now.Sub(zero)
}

func locked(v planted.Virt) clone {
	return clone{parent: "golden", work: v.CloneTime, locks: true, gib: 40}
}

// The calibration: of the document's bulks, 100 is the fastest way to 800, and
// past 250 it becomes much slower.
func TestClonesAreCalibrated(t *testing.T) {
	v := figures(t, "")
	took := map[int]time.Duration{}
	bulks := []int{1, 10, 50, 100, 200, 250, 400, 800}
	for _, bulk := range bulks {
		took[bulk] = inBulks(v, 800, bulk, locked(v))
		t.Logf("bulks of %d: %v", bulk, took[bulk])
	}
	fastest := slices.MinFunc(bulks, func(a, b int) int { return int(took[a] - took[b]) })
	if fastest != 100 {
		t.Errorf("bulks of %d are the fastest", fastest)
	}
	if before, after := took[250]-took[200], took[400]-took[250]; after < 3*before {
		t.Errorf("no knee at 250: %v more from 200 to 250, %v more from there to 400", before, after)
	}
	big := locked(v)
	big.gib = 80
	if a, b := took[800], inBulks(v, 800, 800, big); b < a+a/4 {
		t.Errorf("a snapshot of twice the size takes %v, not much more than %v", b, a)
	}
	if a := inBulks(v, 800, 800, clone{parent: "golden", work: time.Duration(40 * float64(v.CopyPerGiB))}); a > took[800]/2 {
		t.Errorf("copies take %v: they should know neither lock nor flattening (%v)", a, took[800])
	}
}

func TestBootsAreCalibrated(t *testing.T) {
	v := figures(t, "")
	for _, tt := range []struct {
		machines int
		want     time.Duration
	}{{100, 102 * time.Second}, {1000, 1065 * time.Second}} {
		line := bootLine{share: v.BootShare, growth: v.BootGrowth}
		var last time.Time
		for range tt.machines {
			last = line.take(zero)
		}
		got := last.Add(v.BootTime).Sub(zero)
		if d := got - tt.want; d.Abs() > time.Second {
			t.Errorf("%d machines answer after %v, want %v", tt.machines, got, tt.want)
		}
		if alone := line.take(last); alone.Sub(last) != v.BootShare {
			t.Errorf("after the storm a machine waits %v, want %v", alone.Sub(last), v.BootShare)
		}
	}
}

// slowly plays the same storage in steps of a millisecond.
func slowly(v planted.Virt, arrivals []time.Duration, all []*clone) []time.Duration {
	type state struct{ began, lock, made int }
	states := make([]state, len(all))
	for i := range states {
		states[i] = state{-1, -1, -1}
	}
	asked := map[string][]int{}
	held := map[string]int{}
	flat := map[string]int{}
	for now := 0; ; now++ {
		left := 0
		at := time.Duration(now) * time.Millisecond
		for i, c := range all {
			if arrivals[i] == at {
				asked[c.parent] = append(asked[c.parent], i)
			}
		}
		// What ends now, in the order in which it began to be waited for.
		for changed := true; changed; {
			changed = false
			busy := 0
			for i, c := range all {
				s := &states[i]
				if s.began >= 0 && s.made < 0 {
					if !c.locks && now >= s.began+int(c.work.Milliseconds()) || s.lock >= 0 && now >= s.lock {
						s.made, changed = now, true
						if c.locks {
							delete(held, c.parent)
							flat[c.parent]++
						}
						asked[c.parent] = slices.DeleteFunc(asked[c.parent], func(j int) bool { return j == i })
						if len(asked[c.parent]) == 0 {
							flat[c.parent] = 0
						}
					}
				}
			}
			for i, c := range all {
				s := &states[i]
				if _, taken := held[c.parent]; c.locks && s.began >= 0 && s.lock < 0 && !taken && now >= s.began+int(c.work.Milliseconds()) {
					hold := float64(v.CloneLock) * (1 + v.CloneContention*float64(max(0, len(asked[c.parent])-v.CloneWorkers)))
					if flat[c.parent] >= v.FlattenAbove {
						hold += float64(v.FlattenPerGiB) * c.gib
					}
					s.lock, held[c.parent], changed = now+int(time.Duration(hold).Milliseconds()), i, true
				}
				if s.began >= 0 && s.made < 0 {
					busy++
				}
			}
			for i := range all {
				if states[i].began < 0 && arrivals[i] <= at && busy < v.CloneWorkers {
					states[i].began, changed = now, true
					busy++
				}
			}
		}
		for i := range all {
			if states[i].made < 0 {
				left++
			}
		}
		if left == 0 {
			break
		}
	}
	made := make([]time.Duration, len(all))
	for i := range all {
		made[i] = time.Duration(states[i].made) * time.Millisecond
	}
	return made
}

// The queue does what steps of a millisecond do, and never exceeds its workers
// or lets two hold a parent's lock.
func TestCloneQueueAgainstSlowTwin(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		v := figures(t, "cloneLock=50ms,cloneTime=30ms,cloneContention=0.02,flattenPerGiB=5ms")
		v.CloneWorkers, v.FlattenAbove = 1+r.IntN(4), 5+r.IntN(10)
		n := 30
		all, arrivals := make([]*clone, n), make([]time.Duration, n)
		for i := range all {
			// One work for all, so that those who wait for a lock came in their order.
			all[i] = &clone{parent: fmt.Sprint("p", r.IntN(2)), work: 30 * time.Millisecond, locks: r.IntN(4) > 0, gib: 4}
			if i > 0 {
				arrivals[i] = arrivals[i-1] + time.Duration(1+r.IntN(20))*time.Millisecond
			}
		}
		twins := make([]*clone, n)
		for i, c := range all {
			copied := *c
			twins[i] = &copied
		}
		q := newCloneQueue(v)
		check := func(time.Time) {
			holds := map[string]int{}
			for _, d := range q.due.list {
				if d.lock {
					holds[d.clone.parent]++
				}
			}
			if q.busy > v.CloneWorkers || holds["p0"] > 1 || holds["p1"] > 1 {
				t.Errorf("seed %d: %d workers, locks %v", seed, q.busy, holds)
			}
		}
		for i, c := range all {
			q.add(zero.Add(arrivals[i]), c)
			check(zero)
		}
		drain(q, check)
		for i, want := range slowly(v, arrivals, twins) {
			// The twin rounds each hold of the lock down to a millisecond.
			if got := all[i].made.Sub(zero); (got - want).Abs() > 40*time.Millisecond {
				t.Errorf("seed %d: clone %d was made after %v, step by step after %v", seed, i, got, want)
			}
		}
	}
}

// Whatever comes and goes, no limit is exceeded, nobody waits while there is
// room, and among those of a node the first to come is the first to go.
func TestGateKeepsTheLimits(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		g := newGate()
		g.limits = limits{cluster: 1 + r.IntN(6), outbound: 1 + r.IntN(3)}
		var inside []types.UID
		order := map[string][]types.UID{}
		admitted := func(keys []string) {
			for _, key := range keys {
				inside = append(inside, types.UID(key))
				for node, list := range order {
					if i := slices.Index(list, types.UID(key)); i >= 0 {
						if i > 0 {
							t.Fatalf("seed %d: %s overtook %v", seed, key, list[:i])
						}
						order[node] = list[1:]
					}
				}
			}
		}
		for i := range 300 {
			id := types.UID(fmt.Sprint("m", i))
			node := fmt.Sprint("n", r.IntN(5))
			if r.IntN(3) > 0 {
				order[node] = append(order[node], id)
				if g.ask(candidate{id, string(id), node}) {
					admitted([]string{string(id)})
				}
			} else if len(inside) > 0 {
				gone := r.IntN(len(inside))
				keys := g.done(inside[gone])
				inside = slices.Delete(inside, gone, gone+1)
				admitted(keys)
			}
			from := map[string]int{}
			for _, n := range g.from {
				from[n]++
				if from[n] > g.limits.outbound {
					t.Fatalf("seed %d: %d migrations from %s", seed, from[n], n)
				}
			}
			if len(g.from) > g.limits.cluster || len(g.from) != len(inside) {
				t.Fatalf("seed %d: %d migrations, %d known, limit %d", seed, len(g.from), len(inside), g.limits.cluster)
			}
			for _, c := range g.waiting {
				if g.room(c.node) {
					t.Fatalf("seed %d: %s waits although there is room", seed, c.id)
				}
			}
		}
	}
}

// As in a cluster, claims of machines are chosen by the labels of their templates.
func TestAClaimHasTheLabelsOfItsDataVolume(t *testing.T) {
	dv := &cdi.DataVolume{ObjectMeta: metav1.ObjectMeta{Name: "d", Labels: map[string]string{"volume-type": "root"}}}
	if got := newClaim(dv).Labels; !maps.Equal(got, map[string]string{"app": "containerized-data-importer", "volume-type": "root"}) {
		t.Errorf("%v", got)
	}
}
