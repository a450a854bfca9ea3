// Package documents makes kube-burner's documents from the record of a run, with its names, keys and
// types. A figure that was not reached is null, where kube-burner would leave it out or write 0.
package documents

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/writeall"
)

// File holds, in a run directory, the Configuration.
const File = "kube-burner.json"

// Configuration holds the parts of a configuration that its documents need.
type Configuration struct {
	UUID     string         `json:"uuid"`
	Version  string         `json:"version"`            // of the program
	Metadata map[string]any `json:"metadata,omitempty"` // of the user's, for each document
	Jobs     []Job          `json:"jobs"`
	Places   []Place        `json:"places"`
}

// Job describes a job for its documents.
type Job struct {
	Name   string         `json:"name"`
	Config map[string]any `json:"config"`
	// Measured lists its measurements; Skip leaves out its documents.
	Measured []string      `json:"measured"`
	Skip     bool          `json:"skip"`
	Pause    time.Duration `json:"pause"` // counts for the job: its documents end after it
}

// Place says where documents go: below the working directory, unless the user named the directory.
type Place struct {
	Directory string `json:"directory"`
	Tarball   string `json:"tarball,omitempty"` // "" for none
	// Named says that the user named Directory on the command line, which a record cannot say.
	Named bool `json:"-"`
}

func (p Place) files(below string, list []Document) (files []writeall.File, err error) {
	for _, d := range list {
		f := writeall.File{In: below, Name: filepath.Join(p.Directory, d.Name()), Mode: 0o600}
		if p.Named {
			f.In, f.Name = p.Directory, d.Name()
		}
		if filepath.Base(d.Name()) != d.Name() {
			err = fmt.Errorf("the job %q cannot be a part of a file's name, because it has a %q", d.Job, filepath.Separator)
		} else {
			f.Data, err = json.Marshal(d.Items)
		}
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", d.Name(), err)
		}
		f.Data = append(f.Data, '\n')
		files = append(files, f)
	}
	return files, nil
}

// Of returns the Configuration of a run.
func Of(c *kubeburner.Config, version string, metadata map[string]any) Configuration {
	of := Configuration{UUID: c.UUID, Version: version, Metadata: metadata, Jobs: []Job{}, Places: []Place{}}
	for i := range c.Jobs {
		j := &c.Jobs[i]
		made := Job{Name: j.Name, Config: j.Summary(), Measured: c.Measured(j), Skip: j.SkipIndexing}
		if j.MetricsClosing != "afterJob" {
			made.Pause = j.JobPause
		}
		of.Jobs = append(of.Jobs, made)
	}
	for _, e := range c.MetricsEndpoints {
		if x := e.Indexer; x.Type == "local" {
			p := Place{Directory: x.MetricsDirectory}
			if x.CreateTarball {
				p.Tarball = x.TarballName
			}
			of.Places = append(of.Places, p)
		}
	}
	return of
}

// Document holds the array in one file.
type Document struct {
	Metric string
	Job    string // "" for all jobs
	Items  []any
}

// Name returns the file's name.
func (d Document) Name() string { return strings.TrimSuffix(d.Metric+"-"+d.Job, "-") + ".json" }

// Read reads the Configuration of a run. Without one the error is fs.ErrNotExist.
func Read(dir record.Dir) (Configuration, error) {
	var c Configuration
	err := dir.ReadJSON(File, &c)
	return c, err
}

// Make makes the documents of a judged run. It reads the whole history.
func Make(dir record.Dir, c Configuration) ([]Document, error) {
	environment, err := dir.Environment()
	if errors.Is(err, fs.ErrNotExist) { // the run was killed before
		environment, err = &record.Environment{}, nil
	}
	if err != nil {
		return nil, err
	}
	var judged result.Result
	if err := dir.ReadJSON(record.ResultFile, &judged); err != nil {
		return nil, err
	}
	f := newFold()
	f.start = environment.Start
	if environment.Kind != nil { // on simulated nodes no service answers
		for _, m := range environment.Kind.Milestones {
			if m.There {
				f.there[m.Of] = m.Name
			}
		}
	}
	// A damaged history is used as far as possible; the result has the warning.
	if _, err := record.ReadHistory(dir, f.add); err != nil {
		if _, damaged := errors.AsType[*record.DamagedError](err); !damaged {
			return nil, err
		}
	}
	jobs := f.all()
	m := maker{Configuration: c, start: environment.Start, steps: judged.Steps}
	m.Metadata = metadata(c.Metadata, environment)
	var list []Document
	summary := Document{Metric: "jobSummary"}
	for _, job := range c.Jobs {
		of := jobs[job.Name]
		if of == nil || job.Skip {
			continue
		}
		summary.Items = append(summary.Items, m.summary(job, of))
		list = append(list, m.measured(job, of)...)
	}
	if len(summary.Items) > 0 {
		list = append(list, summary)
	}
	return list, nil
}

type maker struct {
	Configuration
	start time.Time
	steps []result.Step
}

// measured returns the documents of a job's measurements.
func (m *maker) measured(job Job, of *jobFold) (list []Document) {
	for _, measurement := range job.Measured {
		t, _ := kubeburner.MeasureOf(measurement)
		if objects := m.objects(t, job.Name, of.of(t.Kind)); len(objects) > 0 {
			list = append(list, Document{t.Document + "Measurement", job.Name, objects}, Document{t.Document + "QuantilesMeasurement", job.Name, m.quantiles(t, job.Name, of)})
		}
	}
	return list
}

func (m *maker) at(t record.Micros) string {
	return m.start.Add(t.Duration()).UTC().Format(time.RFC3339Nano)
}

// objects returns the documents of a job's objects, with times null where not reached.
func (m *maker) objects(t kubeburner.Measure, job string, of []*object) (list []any) {
	for _, p := range of {
		namespace, name, _ := strings.Cut(strings.TrimPrefix(p.name, t.Kind+"/"), "/")
		d := map[string]any{"timestamp": m.at(p.zero), "metricName": t.Document + "Measurement", "uuid": m.UUID, "jobName": job, "metadata": m.Metadata}
		if p.slot != nil {
			d["namespace"] = namespace
		} else {
			name = namespace // of a node
		}
		if p.slot != nil && !t.Unnumbered {
			d["jobIteration"], d["replica"] = p.slot.iteration, p.slot.replica
		}
		if p.zero == never {
			d["timestamp"] = m.at(0)
		}
		for _, key := range t.Names {
			d[key] = name
		}
		if t.Node != "" {
			d[t.Node] = p.node
		}
		for _, milestone := range t.Milestones {
			if !t.Nanoseconds || p.on(milestone) {
				d[milestone.Key] = whole(p.latency(milestone) / per(t))
			}
		}
		for i, key := range t.Told {
			if d[key] = unknown; i < len(p.told) && p.told[i] != "" {
				d[key] = p.told[i]
			}
			if key == nodeLabels && i < len(p.told) {
				d[key] = json.RawMessage(cmp.Or(p.told[i], "{}"))
			}
		}
		if p.resized != "" {
			d["resizedCapacity"] = p.resized
		}
		list = append(list, d)
	}
	return list
}

const (
	unknown    = "unknown" // stands for a value that an object does not have
	nodeLabels = "labels"  // key of all labels of a node, which are on record as JSON
)

// quantile is a milestone's document over a job's objects. Objects without it make figures null.
type quantile struct {
	Name      string         `json:"quantileName"`
	UUID      string         `json:"uuid"`
	P99       *int64         `json:"P99"`
	P95       *int64         `json:"P95"`
	P50       *int64         `json:"P50"`
	Min       *int64         `json:"min"`
	Max       *int64         `json:"max"`
	Avg       *int64         `json:"avg"`
	Timestamp string         `json:"timestamp"`
	Metric    string         `json:"metricName"`
	Job       string         `json:"jobName"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

func (m *maker) quantiles(t kubeburner.Measure, job string, of *jobFold) (list []any) {
	objects := of.of(t.Kind)
	for _, milestone := range t.Milestones {
		if milestone.Quantile == "" {
			continue
		}
		var values []float64
		sum := 0.0
		n := max(of.units[t.Kind], len(objects))
		if milestone.On != "" {
			n = 0
		}
		for _, p := range objects {
			if milestone.On != "" && p.on(milestone) {
				n++
			}
			if latency := p.latency(milestone) / per(t); !math.IsInf(latency, 0) {
				values = append(values, latency)
				sum += latency
			}
		}
		if n == 0 && t.Nanoseconds {
			continue
		}
		s := stats.NewSample(values, n-len(values))
		mean := math.Inf(1)
		if len(values) == n {
			mean = sum / float64(n)
		}
		list = append(list, quantile{
			Name: milestone.Quantile, UUID: m.UUID, P99: whole(s.Quantile(0.99)), P95: whole(s.Quantile(0.95)), P50: whole(s.Quantile(0.5)),
			Min: whole(s.Quantile(1 / float64(max(n, 1)))), Max: whole(s.Quantile(1)), Avg: whole(mean),
			Timestamp: m.at(of.ended), Metric: t.Document + "QuantilesMeasurement", Job: job, Metadata: m.Metadata,
		})
	}
	return list
}

// per returns the microseconds of a measurement's unit.
func per(t kubeburner.Measure) float64 {
	if t.Nanoseconds {
		return 1.0 / 1000
	}
	return 1000
}

func whole(x float64) *int64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return new(int64(math.Round(x)))
}

// metadata adds kube-burner's facts of the cluster to the user's.
func metadata(users map[string]any, environment *record.Environment) map[string]any {
	d := map[string]any{}
	maps.Copy(d, users)
	for _, f := range environment.Facts {
		if f.Name == "kubernetes" && f.Value != "" {
			d["k8sVersion"] = f.Value
		}
	}
	if p := environment.Places; p != nil {
		nodes := 0
		for _, row := range p.Rows {
			nodes += row.Count
		}
		d["totalNodes"] = nodes
	}
	return d
}

// summary returns the document of a job, which has the metadata beside its own keys.
func (m *maker) summary(job Job, of *jobFold) map[string]any {
	end := of.ended + record.MicrosOf(job.Pause)
	d := maps.Clone(m.Metadata)
	var why []string
	passed := len(of.steps) > 0
	for _, s := range m.steps {
		if of.steps[s.ID] && s.Verdict != slo.Pass {
			passed, why = false, append(why, string(s.Verdict)+": "+s.VerdictWhy)
		}
	}
	if len(why) > 0 {
		d["executionErrors"] = strings.Join(why, "; ")
	}
	maps.Copy(d, map[string]any{
		"timestamp": m.at(of.began), "endTimestamp": m.at(end), "elapsedTime": math.Round((end-of.began).Seconds()*1000) / 1000, "uuid": m.UUID, "metricName": "jobSummary",
		"jobConfig": job.Config, "version": "plimsoll " + m.Version, "passed": passed,
	})
	return d
}

// Write writes documents below a directory or to the user's place, replaces old ones, and counts files.
func Write(below string, to Place, list []Document) (int, error) {
	files, err := to.files(below, list)
	if err != nil {
		return 0, err
	}
	if to.Tarball != "" {
		packed, err := tarball(files)
		if err == nil {
			err = replaceable(below, to.Tarball)
		}
		if err != nil {
			return 0, fmt.Errorf("write %s: %w", to.Tarball, err)
		}
		files = append(files, writeall.File{In: below, Name: to.Tarball, Data: packed, Mode: 0o600})
	}
	return len(files), writeall.Files(files, true)
}

// replaceable refuses an existing file that is not a tarball: a configuration may name any file.
func replaceable(below, tarball string) error {
	f, err := os.OpenInRoot(below, tarball)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := gzip.NewReader(f); err != nil {
		return fmt.Errorf("a file that is not a tarball has that name: %w", fs.ErrExist)
	}
	return nil
}

func tarball(files []writeall.File) ([]byte, error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zip)
	for _, f := range files {
		if err := archive.WriteHeader(&tar.Header{Name: filepath.Base(f.Name), Size: int64(len(f.Data)), Mode: int64(f.Mode), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.Data); err != nil {
			return nil, err
		}
	}
	err := cmp.Or(archive.Close(), zip.Close())
	return packed.Bytes(), err
}
