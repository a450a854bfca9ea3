package io

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"gonum.org/v1/gonum/stat"

	"plimsoll.dev/plimsoll/internal/lab/room"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
	"plimsoll.dev/plimsoll/internal/system/storage/smallfiles"
)

// instance is the load. Its volumes stay from one step to the next.
type instance struct {
	*session
	local.Rig[settings]

	arm    string
	ground ground // nil before there are volumes
	filled map[string]bool
	beside *database // nil without pgbench

	unfollow func() // the places of the ground
}

// Describe implements system.Target.
func (i *instance) Describe(context.Context) (record.Environment, error) {
	one := i.arms[""]
	e := record.Environment{Start: i.Rec.Clock.Start(), Target: naming(), Fidelity: local.Fidelity()}
	notes := []string{"the files are real; one process for each volume creates, reads and deletes them, and at a fixed rate latencies count from when an operation was due"}
	if one.small == nil {
		notes = []string{
			"the IO is real and is made by fio; its latencies have fio's resolution, 1 part in 128 and at least 1 µs",
			"fio counts latencies from submission; at a fixed rate what an IO waited before it, since it was due by fio's schedule, is added to them",
		}
	}
	below := one.paths
	if one.gluster != nil {
		below = []string{i.Room.Dir}
	}
	maker, user := "fio", proc.Least()
	if one.small != nil {
		maker, user = "the program of small files", proc.Self()
	}
	e.Facts = []record.Fact{
		record.RunsAs(maker, user.String()), record.Version("fio", one.binary.Version), local.FileSystem(below...),
		record.Placement("what makes the load, the volumes and this program share all processors"),
	}
	if !one.job.Direct {
		notes = append(notes, "IO is buffered: reads may come from memory, and writes be done before they are on the drive")
	}
	if one.gluster != nil {
		notes = append(notes, fmt.Sprintf("the volumes are real ones of a GlusterFS %s of the run's own; its storage servers are namespaces of this machine, and the network between them is a bridge of it", gluster.Version()))
		e.Facts = append(e.Facts, record.Version("glusterfs", gluster.Version()))
	}
	if one.postgres != "" {
		e.Facts = append(e.Facts, record.Version("PostgreSQL", filepath.Base(filepath.Dir(one.postgres))))
	}
	e.Fidelity.Notes = notes
	return e, nil
}

// start makes the volumes for a level, fills their files, and starts an fio on each.
func (i *instance) start(ctx context.Context, one settings, level *system.Level) (local.Load, error) {
	level.Value = math.Floor(level.Value + 1e-9)
	axis := i.axis()
	one = one.along(axis, level.Value)
	if err := one.check(axis); err != nil {
		return nil, err
	}
	if i.ground != nil && i.arm != level.Arm {
		if err := i.Close(ctx); err != nil {
			return nil, err
		}
	}
	if i.ground == nil {
		g, err := i.newGround(ctx, one)
		if err != nil {
			return nil, err
		}
		i.arm, i.ground, i.filled = level.Arm, g, make(map[string]bool)
		noun, places := g.places()
		i.unfollow = local.FollowPlaces(i.Rec, noun, places)
	}
	if one.postgres != "" && (i.beside == nil || i.beside.Ended()) {
		dir, err := i.ground.volume(ctx, 0)
		if err != nil {
			return nil, err
		}
		if i.beside, err = startDatabase(ctx, i.ground, dir, one.postgres, i.Run); err != nil {
			return nil, err
		}
	}
	l := &load{beside: i.beside, settings: one, session: i.session, ground: i.ground, rec: i.Rec, every: i.every()}
	numbers := make([]int, one.volumes)
	for n := range numbers {
		numbers[n] = n
	}
	err := l.prepare(ctx, numbers, i.filled)
	if err == nil {
		err = l.begin(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, l.End())
	}
	return l, nil
}

func (i *instance) newGround(ctx context.Context, one settings) (ground, error) {
	if one.gluster != nil {
		return newGlusterfs(ctx, i.session, *one.gluster)
	}
	return newDirectories(i.session, one.paths)
}

// every returns the interval of fio's reports: the length of a window.
func (i *instance) every() time.Duration {
	return min(max(time.Duration(i.Plan.Hold)/10, 100*time.Millisecond), time.Second)
}

const (
	filledAtOnce = 4       // bounds the files that are filled in parallel
	leastFill    = 1 << 20 // least rate of filling a file, in bytes per second, after fillBound
	fillBound    = time.Minute
	startBound   = time.Minute      // bounds the time until fio does IO
	endBound     = 5 * time.Second  // bounds the end of a killed fio
	driveTime    = 10 * time.Second // bounds the measurement of the drive alone, driveTick is its interval
	driveTick    = time.Second
	// driveSteady bounds the differences of the rates in the last driveTicks: caches speed up the first.
	driveSteady = 0.1
	driveTicks  = 3
	driveDepth  = 64                     // bounds the depth of that measurement
	linkTime    = 500 * time.Millisecond // duration of the measurement of the link
)

// prepare makes a step's volumes and files, and measures drive and link. A volume that cannot be filled counts as
// failed.
func (l *load) prepare(ctx context.Context, numbers []int, filled map[string]bool) error {
	for _, n := range numbers {
		dir, err := l.ground.volume(ctx, n)
		if err != nil {
			return err
		}
		l.volumes = append(l.volumes, &volume{name: fmt.Sprintf("volume-%d", n+1), n: n, dir: dir})
	}
	if l.small == nil && l.raw == "" && l.job.Reads() {
		if err := l.fill(ctx, filled); err != nil {
			return err
		}
	}
	if !l.drive {
		return nil
	}
	if err := l.measureDrive(ctx); err != nil {
		return fmt.Errorf("measure the drive: %w", err)
	}
	var err error
	l.link, l.copies, err = l.ground.link(linkTime)
	return err
}

// begin starts an fio on each volume, and returns once they do IO.
func (l *load) begin(ctx context.Context) error {
	for _, v := range l.volumes {
		if v.failed != "" {
			continue
		}
		var err error
		if v.proc, err = l.spawn(v, l.every); err != nil {
			return err
		}
	}
	for _, v := range l.volumes {
		if v.proc == nil {
			continue
		}
		if l.goesFirst() {
			v.proc.Prefer()
		}
		dir := v.dir
		if l.small == nil {
			dir = here
		}
		text, err := l.text(v.n, dir, l.every)
		if err == nil {
			err = v.proc.Feed(text)
		}
		if err != nil {
			return err
		}
	}
	return wait(ctx, startBound, func() bool {
		for _, v := range l.volumes {
			if v.proc != nil && !v.proc.Ended() {
				if r, _ := v.proc.Last(); r.Ran == 0 {
					return false
				}
			}
		}
		return true
	})
}

// goesFirst reports whether fio's threads have priority: at a fixed rate, or with processors to spare.
func (s settings) goesFirst() bool {
	return s.rate > 0 || s.small == nil && s.raw == "" && s.volumes < runtime.NumCPU()
}

// spawn starts an fio in a volume, which waits for its job; for small files it starts this program.
func (l *load) spawn(v *volume, every time.Duration) (*fio.Process, error) {
	if l.small != nil {
		return fio.Start(l.ground.command("/", l.session.Executable, "component", smallfiles.Component), proc.Self(), l.ground.start)
	}
	return fio.Start(l.ground.command(v.dir, l.binary.Path, fio.Args(every)...), proc.Least(), l.ground.start)
}

// wait waits until something holds, or the bound is over; the end of ctx is an error.
func wait(ctx context.Context, bound time.Duration, holds func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	over := time.NewTimer(bound)
	defer over.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over.C:
			return nil
		case <-tick.C:
		}
	}
	return nil
}

// here names the volume of an fio from within: the process may lack the right to use another name.
const here = "."

// fill writes the missing files of volumes.
func (l *load) fill(ctx context.Context, filled map[string]bool) error {
	places := make(chan struct{}, filledAtOnce)
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for _, v := range l.volumes {
		if filled[v.dir] {
			continue
		}
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			job := l.of(v.n, here)
			job.Fill = true
			p, err := l.spawn(v, 0)
			if err == nil {
				err = p.Feed(job.Text())
			}
			if err == nil {
				err = wait(ctx, fillBound+time.Duration(job.Size/leastFill)*time.Second, p.Ended)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				failed = errors.Join(failed, fmt.Errorf("fill %s: %w", v.name, err))
			case p.Ended():
				if v.failed, v.why = p.Failure(false); v.failed == "" {
					filled[v.dir] = true
				}
			default:
				v.failed, v.why = record.FailedTimeout, "the volume's file was not filled in time"
			}
			if p != nil {
				failed = errors.Join(failed, l.put(v, p))
			}
		})
	}
	all.Wait()
	return failed
}

// put kills a process, and aborts the mount in which it hangs.
func (l *load) put(v *volume, p *fio.Process) error {
	if p.Ended() {
		return nil
	}
	p.KillAll()
	_ = wait(context.Background(), endBound, p.Ended)
	if p.Ended() {
		return nil
	}
	err := l.ground.abort(v.n)
	_ = wait(context.Background(), endBound, p.Ended)
	if !p.Ended() {
		l.rec.Emit(&record.Note{About: l.rec.Step(), Text: fmt.Sprintf("fio (process %d) hangs in %s and cannot be ended: %v", p.PID(), v.name, err)})
	}
	return nil
}

// measureDrive runs one fio with the job on the file system below, with all depths and no rate.
func (l *load) measureDrive(ctx context.Context) error {
	base, err := os.MkdirTemp(l.ground.below(), "drive-")
	if err != nil {
		return err
	}
	defer room.RemoveBounded(base)
	below := &directories{session: l.session}
	user := proc.Least()
	if err := user.Give(base); err != nil {
		return err
	}
	job := l.job
	job.Dir, job.Depth, job.Verify, job.Fsync = here, min(l.settings.depth*len(l.volumes), driveDepth), false, 0
	if l.raw != "" {
		job.Pattern, job.Depth = "readwrite", driveDepth
	}
	var rates []float64
	do := func(job fio.Job, bound time.Duration) error {
		p, err := fio.Start(below.command(base, l.binary.Path, fio.Args(driveTick)...), user, below.start)
		if err == nil {
			err = p.Feed(job.Text())
		}
		rates = nil
		if err == nil {
			var last fio.Report
			err = wait(ctx, bound, func() bool {
				for _, r := range p.Take() {
					if long := r.Ran - last.Ran; long > driveTick/2 {
						rates, last = append(rates, float64(bytesOf(r)-bytesOf(last))/long.Seconds()), r
					}
				}
				return p.Ended() || !job.Fill && steady(rates) > 0
			})
			p.Interrupt()
			_ = wait(context.Background(), endBound, p.Ended)
			p.KillAll()
		}
		return err
	}
	if job.Reads() {
		fill := job
		fill.Fill = true
		if err := do(fill, fillBound); err != nil {
			return err
		}
	}
	if err := do(job, driveTime); err != nil {
		return err
	}
	l.alone = steady(rates)
	return nil
}

func bytesOf(r fio.Report) int64 { return r.Sides[fio.Read].Bytes + r.Sides[fio.Write].Bytes }

// steady returns the rate on which the last rates agree, 0 where they do not.
func steady(rates []float64) float64 {
	if len(rates) <= driveTicks { // the first one includes the start
		return 0
	}
	last := rates[len(rates)-driveTicks:]
	if low, high := slices.Min(last), slices.Max(last); low <= 0 || high > low*(1+driveSteady) {
		return 0
	}
	return stat.Mean(last, nil)
}

// Close implements system.Instance: it ends the load and removes the volumes.
func (i *instance) Close(ctx context.Context) error {
	err := i.Reset(ctx)
	if i.beside != nil {
		i.beside.stop()
		i.beside = nil
	}
	if i.ground != nil {
		i.unfollow()
		err = errors.Join(err, i.ground.close())
		i.ground = nil
	}
	return err
}
