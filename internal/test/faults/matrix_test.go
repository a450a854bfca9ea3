package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/harness"
	"plimsoll.dev/plimsoll/internal/test/ring"
)

// Environment variables of the matrix: its size, short or whole, without which it
// is not made; its seed; the row and the column that are made alone, each in part;
// the file that gets its table; and the time after which no cell is begun any more.
const (
	sizeVariable   = "PLIMSOLL_FAULTS"
	seedVariable   = "PLIMSOLL_FAULTS_SEED"
	faultVariable  = "PLIMSOLL_FAULTS_FAULT"
	loadVariable   = "PLIMSOLL_FAULTS_LOAD"
	outputVariable = "PLIMSOLL_FAULTS_OUT"
	withinVariable = "PLIMSOLL_FAULTS_WITHIN"
)

const (
	cellLabel = "plimsoll.test/cell"
	pairs     = 6 // of nodes in the lab: so many runs are made at once at most
)

// matrix is one run of the matrix.
type matrix struct {
	seed  uint64
	whole bool
	labs  map[bool]*sharedLab // by whether it has virtual machines
	twins map[string]*cell    // by load

	mu      sync.Mutex
	tallies map[string]*tally  // by row and column
	healed  tally              // of all faults that a client can heal
	awaited map[string]awaited // by row
	smaller int                // failures that were made smaller
	until   time.Time          // when no cell is begun any more
	unmade  int                // cells that were not begun for that
}

// over skips a cell that would be begun when the matrix's time is over.
func (m *matrix) over(t *testing.T) {
	if time.Now().Before(m.until) {
		return
	}
	m.mu.Lock()
	m.unmade++
	m.mu.Unlock()
	t.Skip("the time is over: it is not made")
}

// tally counts how runs ended.
type tally struct {
	verdicts map[verdict]int
	problems int
}

// sharedLab is a lab of the matrix, which runs share.
type sharedLab struct {
	p      *harness.Program
	client kubernetes.Interface
	free   chan string // pairs of nodes that no run has
}

// newLab makes a lab, whose nodes get labels in pairs.
func newLab(t *testing.T, virt bool) *sharedLab {
	args, n := []string{"--nodes", strconv.Itoa(2 * pairs)}, pairs
	if virt {
		args, n = []string{"--nodes", "2", "--virt", "--time-scale", "20"}, 1
	}
	l := &sharedLab{p: suite.Lab(t, args...), free: make(chan string, n)}
	l.client = client(t, l.p.Kubeconfig, nil)
	nodes, err := l.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, node := range nodes.Items {
		label := fmt.Sprint("pair-", i/2)
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, cellLabel, label)
		if _, err := l.client.CoreV1().Nodes().Patch(t.Context(), node.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 {
			l.free <- label
		}
	}
	if err := os.CopyFS(l.p.Dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	return l
}

// nodeOf returns one of the nodes of a cell.
func (c *cell) nodeOf(ctx context.Context) (*corev1.Node, error) {
	nodes, err := c.lab.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: cellLabel + "=" + c.nodes})
	if err != nil || len(nodes.Items) == 0 {
		return nil, fmt.Errorf("%d nodes of %s: %w", len(nodes.Items), c.nodes, err)
	}
	return &nodes.Items[0], nil
}

// nodeDeleted deletes a node, and makes it again afterwards.
func nodeDeleted(c *cell) func() {
	ctx := context.Background()
	node, err := c.nodeOf(ctx)
	if err == nil {
		err = c.lab.client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{})
	}
	if err != nil {
		c.problem("delete a node: %v", err)
		return func() {}
	}
	return func() {
		node.ResourceVersion, node.UID = "", ""
		if _, err := c.lab.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			c.problem("make the node again: %v", err)
		}
		c.lab.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	}
}

// nodeCordoned makes a node unschedulable, and takes it back afterwards.
func nodeCordoned(c *cell) func() {
	ctx := context.Background()
	node, err := c.nodeOf(ctx)
	if err != nil {
		c.problem("cordon a node: %v", err)
		return func() {}
	}
	set := func(to bool) {
		patch := fmt.Sprintf(`{"spec":{"unschedulable":%v}}`, to)
		if _, err := c.lab.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			c.problem("cordon a node: %v", err)
		}
	}
	set(true)
	return func() { set(false) }
}

// newCell makes the nth cell of a fault and a load.
func (m *matrix) newCell(f fault, l load, n int) *cell {
	h := fnv.New64a()
	fmt.Fprint(h, m.seed, f.name, l.name, n)
	seed := h.Sum64() >> 8 // what a rule draws adds its number
	c := &cell{m: m, fault: f, load: l, random: random{rand.New(rand.NewPCG(seed, 1)), seed}}
	c.out = strings.Map(func(r rune) rune {
		if r == ' ' || r == '/' || r == '%' || r == ',' || r == ':' {
			return '-'
		}
		return r
	}, fmt.Sprint(l.name, " ", f.name, " ", n))
	if f.plan != nil {
		c.plan = Plan{Seed: seed, Rules: f.plan(c.Rand)}
	}
	if f.at != nil {
		c.moment = m.draw(f, l, n)
	}
	return c
}

// draw draws the moment of the nth cell of a fault and a load: the seed shuffles the
// moments, and the cells take them in turn.
func (m *matrix) draw(f fault, l load, n int) moment {
	h := fnv.New64a()
	fmt.Fprint(h, m.seed, f.name, l.name)
	of := f.at(l)
	return of[rand.New(rand.NewPCG(h.Sum64(), 2)).Perm(len(of))[n%len(of)]]
}

// take gives a cell its lab and nodes, or its own state on this machine, until the
// test ends.
func (m *matrix) take(t *testing.T, c *cell) {
	if c.load.api {
		c.lab = m.labs[c.load.virt]
		c.p = c.lab.p
		c.nodes = <-c.lab.free
		t.Cleanup(func() { c.lab.free <- c.nodes })
		return
	}
	c.p = suite.Program(t)
	if err := os.MkdirAll(filepath.Join(c.p.Dir, "mount"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// judge judges a cell that was made, and tells of what does not hold.
func (m *matrix) judge(t *testing.T, c *cell) {
	c.whole(t)
	v := c.judged(m.twins[c.load.name])
	m.mu.Lock()
	if c.moment.name != "" {
		a := m.awaited[c.fault.name]
		if a.cells++; c.before {
			a.before++
		}
		m.awaited[c.fault.name] = a
	}
	t2 := m.tallies[c.fault.name+"/"+c.load.name]
	if t2 == nil {
		t2 = &tally{verdicts: make(map[verdict]int)}
		m.tallies[c.fault.name+"/"+c.load.name] = t2
	}
	t2.verdicts[v]++
	t2.problems += min(len(c.problems), 1)
	if c.fault.must == healed {
		m.healed.verdicts[v]++
	}
	m.mu.Unlock()
	if must := c.fault.mustOn(c.load); !must.holds(v) {
		c.problem("exit code %d, its twin's was %d; must hold: %s\nfirst: %s\n%s", c.got.Code, m.twins[c.load.name].got.Code, must, c.first(), c.said())
	}
	if len(c.problems) > 0 {
		t.Errorf("%s\nmade again: make faults SEED=%d FAULT='%s' LOAD='%s'", strings.Join(c.problems, "\n"), m.seed, c.fault.name, c.load.name)
		m.shrink(t, c)
	}
	when := ""
	if c.moment.name != "" {
		when = " when " + c.moment.name
	}
	t.Logf("%s%s: %s, exit code %d after %v; %s", c.fault.name, when, v, c.got.Code, c.took.Round(10*time.Millisecond), c.first())
	if c.proxy != nil {
		t.Logf("faults %v", c.proxy.Counts().Faults)
	}
}

// shrinking bounds how often a plan is tried when a failure is made smaller, and shrunk
// how many failures are, so that a bad day ends too.
const (
	shrinking = 6
	shrunk    = 4
)

// shrink looks for a smaller plan by which the cell fails too, and keeps it.
func (m *matrix) shrink(t *testing.T, c *cell) {
	m.mu.Lock()
	m.smaller++
	enough := m.smaller > shrunk
	m.mu.Unlock()
	if len(c.plan.Rules) == 0 || enough {
		return
	}
	tries := 0
	small := smaller(c.plan, func(p Plan) bool {
		if tries++; tries > shrinking {
			return false
		}
		again := m.newCell(c.fault, c.load, 0)
		again.plan, again.lab, again.p, again.nodes, again.out = p, c.lab, c.p, c.nodes, fmt.Sprint(c.out, "-smaller-", tries)
		again.make(t, m.twins[c.load.name])
		again.whole(t)
		return len(again.problems) > 0 || !again.fault.must.holds(again.judged(m.twins[c.load.name]))
	})
	text, err := json.MarshalIndent(small, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(c.p.Dir, c.out+"-smallest.json"), text, 0o644)
	}
	t.Logf("the smallest plan found that fails: %v (%v)", small.Rules, err)
}

// smaller finds a plan of fewer rules and smaller shares that still fails.
func smaller(p Plan, fails func(Plan) bool) Plan {
	for i := 0; i < len(p.Rules) && len(p.Rules) > 1; {
		without := Plan{p.Seed, slices.Delete(slices.Clone(p.Rules), i, i+1)}
		if fails(without) {
			p = without
		} else {
			i++
		}
	}
	const least = 0.005
	for i := range p.Rules {
		for p.Rules[i].Share >= 2*least {
			less := Plan{p.Seed, slices.Clone(p.Rules)}
			less.Rules[i].Share /= 2
			if !fails(less) {
				break
			}
			p = less
		}
	}
	return p
}

// What was found is made smaller as far as it still fails.
func TestFailuresAreMadeSmaller(t *testing.T) {
	plan := Plan{Seed: 3, Rules: []Rule{{Do: Status(500), Share: 0.4}, {Do: Drop(), Share: 0.32}, {Do: Cut(), Share: 0.1}}}
	got := smaller(plan, func(p Plan) bool {
		return slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Do == Drop() && r.Share >= 0.07 })
	})
	if len(got.Rules) != 1 || got.Rules[0].Do != Drop() || got.Rules[0].Share != 0.08 || plan.Rules[1].Share != 0.32 {
		t.Errorf("smallest %v of %v", got.Rules, plan.Rules)
	}
}

// chosen returns the loads that a fault is made on, and how often, in this run of the
// matrix.
func (m *matrix) chosen(f fault) (on []load, times int) {
	names, times := f.short, max(f.times[0], 1)
	if m.whole {
		names, times = f.on, max(f.times[1], 1)
	}
	fault, of := os.Getenv(faultVariable), os.Getenv(loadVariable)
	if fault != "" || of != "" {
		names = f.on
	}
	for _, l := range loads() {
		if slices.Contains(names, l.name) && strings.Contains(f.name, fault) && strings.Contains(l.name, of) {
			on = append(on, l)
		}
	}
	return on, times
}

// The standing matrix: faults by loads, each beside its unfaulted twin.
func TestMatrix(t *testing.T) {
	size := os.Getenv(sizeVariable)
	if size == "" {
		t.Skip("make faults-core runs its short part, make faults the whole")
	}
	t.Setenv(ring.Variable, "1") // whoever asks for the matrix asks for its labs
	m := &matrix{whole: size == "whole", labs: make(map[bool]*sharedLab), twins: make(map[string]*cell), tallies: make(map[string]*tally), awaited: make(map[string]awaited), healed: tally{verdicts: make(map[verdict]int)}}
	var err error
	if m.seed, err = strconv.ParseUint(os.Getenv(seedVariable), 10, 64); err != nil {
		t.Fatalf("%s: %v", seedVariable, err)
	}
	within, err := time.ParseDuration(os.Getenv(withinVariable))
	if err != nil {
		t.Fatalf("%s: %v", withinVariable, err)
	}
	m.until = time.Now().Add(within)
	t.Logf("seed %d", m.seed)
	used := make(map[string]load)
	for _, f := range table() {
		on, _ := m.chosen(f)
		for _, l := range on {
			used[l.name] = l
		}
	}
	for _, l := range used {
		if l.api && m.labs[l.virt] == nil {
			m.labs[l.virt] = newLab(t, l.virt)
		}
	}
	t.Run("twins", func(t *testing.T) {
		for _, l := range used {
			t.Run(l.name, func(t *testing.T) {
				t.Parallel()
				c := m.newCell(fault{name: "twin", must: healed}, l, 0)
				m.take(t, c)
				c.start(t)
				c.end()
				c.whole(t)
				m.mu.Lock()
				m.twins[l.name] = c
				m.mu.Unlock()
				if len(c.problems) > 0 || c.got.Code != process.ExitPass && !c.busy() {
					t.Fatalf("without a fault: exit code %d, %q\n%s", c.got.Code, c.problems, c.said())
				}
				t.Logf("exit code %d after %v", c.got.Code, c.took.Round(time.Millisecond))
			})
		}
	})
	if t.Failed() {
		return
	}
	m.beside(t)
	for _, f := range table() {
		if on, _ := m.chosen(f); f.alone && len(on) > 0 {
			t.Run(f.name, func(t *testing.T) { m.together(t, f, on) })
		}
	}
	m.summary(t)
}

// beside makes the cells that do not meet each other, several at once.
func (m *matrix) beside(t *testing.T) {
	t.Run("beside", func(t *testing.T) {
		for _, f := range table() {
			if f.alone {
				continue
			}
			on, times := m.chosen(f)
			for _, l := range on {
				for n := range times {
					t.Run(fmt.Sprint(f.name, "/", l.name, "/", n), func(t *testing.T) {
						t.Parallel()
						m.over(t)
						c := m.newCell(f, l, n)
						m.take(t, c)
						c.make(t, m.twins[l.name])
						m.judge(t, c)
					})
				}
			}
		}
	})
}

// together makes the cells of a fault that all runs of a lab meet: they are under
// way when it happens.
func (m *matrix) together(t *testing.T, f fault, on []load) {
	m.over(t)
	var cells []*cell
	for _, l := range on {
		c := m.newCell(f, l, 0)
		m.take(t, c)
		c.start(t)
		cells = append(cells, c)
	}
	byLab := make(map[*sharedLab][]*cell)
	for _, c := range cells {
		byLab[c.lab] = append(byLab[c.lab], c)
	}
	var labs sync.WaitGroup
	for _, of := range byLab {
		labs.Go(func() {
			undo := func() {}
			for _, c := range of {
				c.before = !c.await()
			}
			// While another run came to its moment one may have ended.
			for _, c := range of {
				c.before = c.before || c.run.Ended()
			}
			if slices.ContainsFunc(of, func(c *cell) bool { return !c.before }) {
				undo = f.act(of[0])
			}
			for _, c := range of {
				c.end()
			}
			undo()
			if err := of[0].lab.works(t.Context()); err != nil {
				of[0].problem("after it the lab does not work: %v", err)
			}
		})
	}
	labs.Wait()
	for _, c := range cells {
		t.Run(c.load.name, func(t *testing.T) { m.judge(t, c) })
	}
}

// works waits until the lab takes a namespace and removes it again: whose server was
// away looks for it again after pauses that have grown meanwhile.
func (l *sharedLab) works(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	const name = "matrix-works"
	spaces := l.client.CoreV1().Namespaces()
	for {
		_, err := spaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err == nil || apierrors.IsAlreadyExists(err) {
			err = spaces.Delete(ctx, name, metav1.DeleteOptions{})
		}
		for err == nil {
			if _, err = spaces.Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
				return nil
			}
			time.Sleep(200 * time.Millisecond)
		}
		if ctx.Err() != nil {
			return err
		}
		time.Sleep(time.Second)
	}
}

// inTime judges how many runs ended before the moment of their fault, in each row and
// in all rows.
func (m *matrix) inTime(t *testing.T) {
	var all awaited
	for _, row := range slices.Sorted(maps.Keys(m.awaited)) {
		a := m.awaited[row]
		all.cells += a.cells
		all.before += a.before
		t.Logf("%s: %v", row, a)
		if a.tooMany() {
			t.Errorf("%s: %v, more than 1 in 4", row, a)
		}
	}
	if all.tooMany() {
		t.Errorf("of all rows %v, more than 1 in 4", all)
	}
}

// summary judges what is judged over all cells, and writes the table.
func (m *matrix) summary(t *testing.T) {
	n, busy := 0, 0
	for _, x := range m.tallies {
		for v, times := range x.verdicts {
			if n += times; v == notJudged {
				busy += times
			}
		}
	}
	judged := -m.healed.verdicts[notJudged]
	for _, times := range m.healed.verdicts {
		judged += times
	}
	other := judged - m.healed.verdicts[same]
	t.Logf("seed %d: %d runs, %d not made because the time was over, %d not judged because the machine was busy; of %d whose fault a client can heal %d ended as the twin", m.seed, n, m.unmade, busy, judged, judged-other)
	m.inTime(t)
	if os.Getenv(faultVariable) != "" || os.Getenv(loadVariable) != "" {
		return
	}
	if 20*other > judged {
		t.Errorf("%d of %d runs did not end as the twin although a client can heal their fault, more than 1 in 20: %v", other, judged, m.healed.verdicts)
	}
	if 2*busy > n {
		t.Skipf("%d of %d runs were not judged: the machine was too busy for a table, or to decide", busy, n)
	}
	if file := os.Getenv(outputVariable); file != "" {
		if err := os.WriteFile(file, []byte(m.page()), 0o644); err != nil {
			t.Error(err)
		}
	}
}
