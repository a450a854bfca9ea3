package io

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
	"plimsoll.dev/plimsoll/internal/system/storage/smallfiles"
	"plimsoll.dev/plimsoll/internal/text/size"
)

type settings struct {
	binary   fio.Binary
	job      fio.Job          // without directory, depth and rate
	raw      string           // the user's job file, "" for none
	small    *smallfiles.Spec // instead of a job, without directory and rate; nil for a job
	volumes  int
	depth    int
	rate     int // IOs per second in all, 0 for as many as possible
	paths    []string
	gluster  *gluster.Settings // nil where there are paths
	postgres string            // directory of PostgreSQL's programs for pgbench on the first volume, "" for none
	drive    bool              // measure the drive before each step
}

const (
	mostVolumes = 2000
	mostDepth   = 4096
	mostRate    = 100_000_000
)

// settingsOf reads settings from parameters. It reads files, but starts nothing.
func settingsOf(p workload.Params, small bool, given map[string]string) (s settings, err error) {
	s = settings{
		job: fio.Job{
			Pattern: p.Get("rw"), ReadPercent: int(p.Int("mix")), Block: p.Bytes("blockSize"), Size: p.Bytes("size"), Direct: p.Flag("direct"),
			Engine: p.Get("engine"), Fsync: int(p.Int("fsync")), Verify: p.Get("verify") == "crc",
		},
		volumes: int(p.Int("volumes")), depth: int(p.Int("depth")), rate: int(p.Int("rate")), drive: p.Flag("drive"),
	}
	if small {
		s.job = fio.Job{}
		s.small = &smallfiles.Spec{Workers: int(p.Int("workers")), Files: int(p.Int("files")), Size: p.Bytes("size"), Fsync: p.Flag("fsync")}
		s.depth = s.small.Workers
	}
	j := &s.job
	switch {
	case small:
	case j.Check() != nil:
		return s, system.ParamMistake("rw", "", "rw and engine: %w", j.Check())
	case j.Block > j.Size:
		return s, system.ParamMistake("blockSize", "for example blockSize=4KiB and size=64MiB", "an IO has at most the bytes of the file (%s), not %s", size.Text(j.Size), size.Text(j.Block))
	case j.Direct && j.Block%512 != 0:
		return s, system.ParamMistake("blockSize", "a multiple of 512, or direct=false", "direct IO is done in sectors, and %d is not a multiple of 512 bytes", j.Block)
	case j.Verify && j.Size%j.Block != 0:
		return s, system.ParamMistake("size", "a multiple of blockSize", "a checksum is kept for each block: size %s is not a multiple of blockSize %s", size.Text(j.Size), size.Text(j.Block))
	case j.Reads() && j.Writes() && (j.ReadPercent < 1 || j.ReadPercent > 99):
		return s, system.ParamMistake("mix", "rw=read or rw=write for one alone", "%d is not a percentage from 1 to 99", j.ReadPercent)
	}
	for _, path := range strings.Split(p.Get("path"), "+") {
		if path == "" {
			continue
		}
		if path, err = s.checkPath(path); err != nil {
			return s, err
		}
		s.paths = append(s.paths, path)
	}
	if p.Get("beside") == "pgbench" {
		if s.postgres, err = findPostgres(); err != nil {
			return s, err
		}
	}
	if file := p.Get("job"); file != "" {
		if err := s.readJob(file, p); err != nil {
			return s, err
		}
	}
	return s, s.glusterOf(p, given)
}

// pathHint says what the parameter path takes.
const pathHint = "give directories that can be written to, such as path=/mnt/a+/mnt/b"

// checkPath checks that volumes can be made in a directory, makes it absolute, and makes nothing.
func (s *settings) checkPath(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", system.ParamMistake("path", pathHint, "%w", err)
	}
	info, err := os.Stat(absolute)
	switch {
	case err != nil:
		return "", system.ParamMistake("path", pathHint, "%w", err)
	case !info.IsDir():
		return "", system.ParamMistake("path", pathHint, "%s is not a directory", absolute)
	}
	if err := unix.Access(absolute, unix.W_OK|unix.X_OK); err != nil {
		return "", system.ParamMistake("path", pathHint, "write to %s: %w", absolute, err)
	}
	return absolute, nil
}

// probe makes a file in each directory as a run does, and removes it.
func (s *settings) probe(path string) error {
	dir, err := os.MkdirTemp(path, volumesPrefix)
	if err != nil {
		return system.ParamMistake("path", pathHint, "%w", err)
	}
	defer os.RemoveAll(dir)
	if !s.job.Direct {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, fio.FileName), os.O_CREATE|os.O_WRONLY|syscall.O_DIRECT, 0o600)
	if err != nil {
		return system.ParamMistake("direct", "direct=false", "the file system of %s does no direct IO: %w", path, err)
	}
	return f.Close()
}

func (s *settings) readJob(file string, p workload.Params) error {
	const hint = "give a file with jobs for fio"
	text, err := size.ReadFile(file)
	if err != nil {
		return system.ParamMistake("job", hint, "%w", err)
	}
	if _, err := fio.Raw(string(text), "/"); err != nil {
		why := hint
		if mistake, ok := errors.AsType[*fio.RawError](err); ok {
			why = cmp.Or(mistake.Hint, hint)
		}
		return system.ParamMistake("job", why, "%s: %w", file, err)
	}
	if s.rate > 0 {
		return system.ParamMistake("rate", "give it in the job, as rate_iops", "the job in %s says what is done", file)
	}
	s.raw = string(text)
	return nil
}

// along returns the settings at a level of an axis.
func (s settings) along(axis string, level float64) settings {
	switch n := int(math.Floor(level + 1e-9)); axis {
	case axisVolumes:
		s.volumes = n
	case axisDepth, axisWorkers:
		s.depth = n
	case axisRate, axisOperations:
		s.rate = n
	}
	return s
}

// check checks the settings that an axis may change.
func (s settings) check(axis string) error {
	kinds := 1
	if s.small == nil && s.job.Reads() && s.job.Writes() {
		kinds = 2
	}
	switch {
	case (s.small != nil) != slices.Contains([]string{axisWorkers, axisOperations}, axis):
		return system.Mistakef("", "the axis %s is of another workload of this target", axis)
	case s.volumes < 1 || s.volumes > mostVolumes:
		return system.ParamMistake("volumes", "", "there must be 1 to %d volumes, not %d", mostVolumes, s.volumes)
	case s.depth < 1 || s.depth > mostDepth:
		return system.ParamMistake("depth", "", "the depth must be 1 to %d, not %d", mostDepth, s.depth)
	case s.small == nil && s.depth > 1 && s.raw == "" && slices.Contains([]string{"psync", "sync", "mmap"}, s.job.Engine):
		return system.ParamMistake("depth", "engine=libaio, io_uring or posixaio", "the engine %s does one IO at a time, and the depth is %d", s.job.Engine, s.depth)
	case s.rate < 1 && slices.Contains([]string{axisRate, axisOperations}, axis):
		return system.ParamMistake("rate", "", "a rate below one operation a second is not possible")
	case s.rate < 0 || s.rate > mostRate:
		return system.ParamMistake("rate", "", "the rate must be at most %d IOs a second, not %d", mostRate, s.rate)
	case s.rate > 0 && s.rate < s.volumes*kinds:
		return system.ParamMistake("rate", fmt.Sprintf("at least %d", s.volumes*kinds), "%d IOs a second are not one of each kind for each of %d volumes", s.rate, s.volumes)
	case s.raw != "" && axis != axisVolumes:
		return system.ParamMistake("job", "--axis volumes", "the job says how deep and how fast it is, and the axis is %s", axis)
	}
	if s.rate > 0 && kinds == 2 {
		for n := range s.volumes {
			if reads, writes := s.of(n, "").Rates(); reads < 1 || writes < 1 {
				return system.ParamMistake("mix", "a higher rate, or a mix nearer to 50", "of %d IOs a second a volume has %d reads and %d writes: fio needs at least one of each", s.of(n, "").Rate, reads, writes)
			}
		}
	}
	return nil
}

// of returns the job of volume n, from 0, in a directory.
func (s settings) of(n int, dir string) fio.Job {
	j := s.job
	j.Dir, j.Depth, j.Seed = dir, s.depth, uint64(n)+1
	if s.rate > 0 {
		j.Rate = s.rate / s.volumes
		if n < s.rate%s.volumes {
			j.Rate++
		}
	}
	return j
}

// text returns the job of a volume's process.
func (s settings) text(n int, dir string, every time.Duration) (string, error) {
	switch {
	case s.small != nil:
		spec := *s.small
		spec.Dir, spec.Workers, spec.Rate, spec.Every, spec.Seed = dir, s.depth, float64(s.rate)/float64(s.volumes), every, uint64(n)+1
		text, err := json.Marshal(spec)
		return string(text), err
	case s.raw != "":
		return fio.Raw(s.raw, dir)
	}
	return s.of(n, dir).Text(), nil
}

// rates returns the operations per second of each kind on a volume.
func (s settings) rates(n int) map[string]float64 {
	rates := make(map[string]float64)
	switch {
	case s.rate == 0:
	case s.small != nil:
		for _, name := range smallfiles.Operations() {
			rates[name] = float64(s.rate) / float64(s.volumes*len(smallfiles.Operations()))
		}
	default:
		reads, writes := s.of(n, "").Rates()
		rates[fio.Read], rates[fio.Write] = float64(reads), float64(writes)
	}
	return rates
}

// maker returns what makes the load.
func (s settings) maker() string {
	if s.small != nil {
		return fileOperations().Generator
	}
	return operations().Generator
}

// main returns the component that counts undone operations.
func (s settings) main() string {
	switch {
	case s.small != nil:
		return fio.Create
	case s.job.Reads():
		return fio.Read
	}
	return fio.Write
}

// jobText returns fio's job for some directory.
func (s settings) jobText() (string, error) {
	text, err := s.text(0, os.TempDir(), time.Second)
	return text, s.refused(err)
}

func (s settings) refused(err error) error {
	switch {
	case err != nil && s.raw != "":
		return system.ParamMistake("job", "", "%w", err)
	case err != nil:
		return system.ParamMistake("engine", "another engine, or another fio: --set fio=PATH", "%w", err)
	}
	return nil
}

// Axes of IO.
const (
	axisVolumes    = "volumes"
	axisDepth      = "depth"
	axisRate       = "rate"
	axisWorkers    = "workers" // of small files, as is the next
	axisOperations = "operations"
)

// Sources of readings beside the windows.
const (
	sourceFio          = "fio"
	sourceDrive        = "drive" // its device
	sourceThroughput   = "throughput"
	sourceDriveAlone   = "drive alone"
	sourceShare        = "share of the drive"
	sourceLinkAlone    = "link alone"
	sourceLinkShare    = "share of the link"
	sourceSpread       = "spread"
	sourcePgbench      = "pgbench"
	sourceTransactions = "transactions" // Of pgbench in the hold
	sourceTransaction  = "transaction latency"
)

func operations() record.ObjectKind {
	reported := func(name, unit, help, source string, lessIsWorse bool) record.Metric {
		return record.Metric{Name: name, Unit: unit, Help: help, LessIsWorse: lessIsWorse, Of: record.Fold{Source: source, Value: "value", Fold: record.FoldLast}}
	}
	k := fio.Operations()
	k.Place = record.Noun{One: "volume", Many: "volumes"}
	k.Metrics = append(k.Metrics,
		reported("drive alone", "B/s", "bytes per second of one fio on the file system below the volumes, right before the step", sourceDriveAlone, true),
		reported("share of the drive", "%", "throughput as a share of that of the drive alone", sourceShare, true),
		reported("link alone", "Gbit/s", "what one connection by TCP carries from a storage server of the run's own GlusterFS to its client, right before the step", sourceLinkAlone, true),
		reported("share of the link", "%", "what crossed that link as a share of it; what is written crosses it once for each replica", sourceLinkShare, true),
		reported("finish spread", "s", "by how much earlier the fastest volume had done what the slowest one did in the hold", sourceSpread, false),
		reported("transactions", "/s", "transactions per second of pgbench beside the IO", sourceTransactions, true),
		reported("transaction latency", "s", "mean latency of these", sourceTransaction, false),
	)
	k.Charts = []record.Chart{
		{Title: "Drive: share of the time busy", Source: sourceDrive, Values: []record.Value{{Key: "busy", Name: "drive"}}},
		{Title: "pgbench: transactions per second", Source: sourcePgbench, Values: []record.Value{{Key: "transactionsPerSecond", Name: "transactions"}}},
	}
	k.Bounds = append(k.Bounds, record.Bound{Name: "drive", What: "the drive: its device was busy", Source: sourceDrive, Value: "busy", Full: 0.9})
	return k
}

func fileOperations() record.ObjectKind {
	k := operations()
	k.Object, k.Generator, k.Bounds = record.Noun{One: "operation", Many: "operations"}, "the process that works on the files", k.Bounds[1:]
	k.Metrics[0].Help = "operations completed per second"
	return k
}
