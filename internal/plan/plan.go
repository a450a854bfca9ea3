package plan

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/text/redact"
	"plimsoll.dev/plimsoll/internal/text/size"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Schema names the format of the file.
const Schema = "plimsoll/experiment/v1"

// ExperimentKind is the question that a plan asks.
type ExperimentKind string

// The kinds of plans.
const (
	Limit ExperimentKind = "limit" // how far?
	Sweep ExperimentKind = "sweep" // how does it behave along the axis?
	AB    ExperimentKind = "ab"    // is the change better, worse, equivalent?
	Run   ExperimentKind = "run"   // does one level hold?
)

// Plan is an experiment file.
type Plan struct {
	Schema   string `yaml:"schema"`
	Name     string `yaml:"name,omitempty"`
	Workload string `yaml:"workload"` // a built-in one's name, or a directory
	Params   Params `yaml:"params,omitempty" flag:"set"`
	// Target is what stands there, as it is written: the target's own settings.
	Target strictyaml.Raw `yaml:"target,omitempty"`
	Axis   Axis           `yaml:"axis,omitempty"`
	Arms   []Arm          `yaml:"arms,omitempty" flag:"arm"`
	// Vary are values by key; each combination is a search or a sweep of its
	// own. See Cells.
	Vary strictyaml.Ordered[[]string] `yaml:"vary,omitempty"`
	// Repeat is how often a sweep makes all levels, or how many blocks a comparison
	// has, and Until what ends one of a range of blocks before the most.
	Repeat Repeat `yaml:"repeat,omitempty" flag:"repeat" takes:"N" help:"runs of each arm at each level: N, or a range A..B that ends once --until is met (default 4..30)"`
	Until  Until  `yaml:"until,omitempty" flag:"until" takes:"decided" help:"what ends a range of runs: decided, or notWorse (default decided)"`
	Seed   uint64 `yaml:"seed,omitempty" flag:"seed" help:"seed of all random choices (default a random one, which is recorded)"`
	Pace   Pace   `yaml:"pace,omitempty" flag:"pace" help:"requests per second, or max (default the target's: on kubernetes max in a lab, 20 elsewhere)"`
	// Hold is how long a level is held once reached; 0 is the workload's own.
	Hold Duration `yaml:"hold,omitempty" flag:"hold" takes:"duration" help:"how long a level is held (default the workload's)"`
	// HoldMax is the longest hold of a step that is made again because its hold was
	// too short to tell whether its backlog grows; 0 is five holds.
	HoldMax     Duration `yaml:"holdMax,omitempty" flag:"hold-max" takes:"duration" help:"longest hold of a step that is made again because its hold does not tell whether the backlog grows (default five holds)"`
	StepTimeout Duration `yaml:"stepTimeout,omitempty" flag:"step-timeout" takes:"duration" range:">0" needed:"" help:"how long objects are followed after the last one was created (default 5m)"`
	// Budget is the time after which no step begins; 0 is none.
	Budget Duration                     `yaml:"budget,omitempty" flag:"budget" takes:"duration" range:"0s.." help:"time after which no step begins; the result is the best range so far (default none)"`
	Goals  strictyaml.Ordered[[]string] `yaml:"goals,omitempty" flag:"goal"`
	// Require names the goal that the exit code follows, or says RequireAll; ""
	// is the headline.
	Require string   `yaml:"require,omitempty" flag:"require" takes:"all|NAME" help:"which goals the exit code follows: all|NAME (default the headline, which is the first)"`
	Primary *Primary `yaml:"primary,omitempty"`
	Guards  Guards   `yaml:"guards,omitempty" flag:"guard"`
	// GuardQueries are objectives on queries: a step ends once one does not hold.
	GuardQueries []string `yaml:"guardQueries,omitempty" flag:"guard-query" takes:"objective" help:"end a step once metrics are not as this objective wants them: \"query 'PROMQL' OP VALUE\"; may be repeated"`
	// Fresh is what a step that begins from empty begins with: FreshObjects, or
	// the word by which the target makes its system again.
	Fresh string `yaml:"fresh,omitempty" flag:"fresh"`
	// NormalEvents records the cluster's events of type Normal too, and not
	// just those of type Warning.
	NormalEvents bool `yaml:"normalEvents,omitempty" flag:"normal-events" help:"also record the cluster's events of type Normal"`
	// Scrape is how often the metrics are read that the target publishes, 0 for
	// never, and MaxSeries how many series of them are kept, 0 for the default.
	Scrape    Scrape `yaml:"scrape,omitempty" flag:"scrape" takes:"duration" help:"how often the metrics are read that the target publishes, a duration, for 'plimsoll query'; 0 is never (default 5s)"`
	MaxSeries int    `yaml:"maxSeries,omitempty" flag:"max-series" range:"0.." help:"how many series of metrics are kept (default 300000)"`
	// Prometheus is asked for what it has scraped; nil for none.
	Prometheus *Prometheus `yaml:"prometheus,omitempty"`
	// Published are figures that others have published, to be shown beside
	// what is found.
	Published []Published `yaml:"published,omitempty"`

	// Signatures are failures that are looked for besides those that the
	// program knows by itself; one of the same name comes in its place.
	Signatures []signature.Signature `yaml:"signatures,omitempty"`

	// AsRun is written by the program into the copy that a run keeps.
	AsRun *AsRun `yaml:"asRun,omitempty"`

	// Kind follows from what the file says; see Default.
	Kind ExperimentKind `yaml:"-"`
	// Own holds the target's own settings, which ReadTarget reads from Target; nil
	// before that, and for a target without any.
	Own settings.Own `yaml:"-"`

	positions *strictyaml.Positions
}

// Prometheus is one that is asked for what it has scraped. What tells it who asks is
// never part of a plan.
type Prometheus struct {
	// URL is where it is, or OpenShift.
	URL string `yaml:"url" flag:"prometheus"`
	// Match are selectors of series that are asked for, besides those of objectives.
	Match []string `yaml:"match,omitempty" flag:"prometheus-match"`
}

// OpenShift stands for the Prometheus of the OpenShift cluster that is loaded.
const OpenShift = "openshift"

// RequireAll lets the exit code follow every goal: the worst of them.
const RequireAll = "all"

// FreshObjects lets a step that begins from empty begin once the objects of the
// load are removed.
const FreshObjects = "objects"

// Renews reports whether the system is made again for such a step.
func (p *Plan) Renews() bool { return p.Fresh != "" && p.Fresh != FreshObjects }

// Axis is what is raised, and how.
type Axis struct {
	Name   string    `yaml:"name,omitempty" flag:"axis" help:"what is raised; 'plimsoll workloads show WORKLOAD' lists the axes"`
	Search *Search   `yaml:"search,omitempty"`
	Levels []float64 `yaml:"levels,omitempty" flag:"levels" example:"100,200,300" help:"the levels, separated by commas (default of a sweep the workload's, if it has any)"`
	Level  *float64  `yaml:"level,omitempty" flag:"level" example:"60" help:"the level at which the arms are run (default the first level of a search)"`
	// Life is how long after it was ready an object is removed on an axis of
	// arrivals per second; such a step's warm-up lasts as long. 0 is the
	// workload's own.
	Life Duration `yaml:"life,omitempty" flag:"life" takes:"duration" help:"on an axis of arrivals per second, how long each object stays once it is ready; the warm-up lasts as long (default the workload's)"`
}

// Search is the range in which the load line is looked for.
type Search struct {
	From       float64 `yaml:"from,omitempty" flag:"from" unit:"level" range:">0" needed:"" help:"first level (default the workload's)"`
	Step       float64 `yaml:"step,omitempty" flag:"step" unit:"level" range:">0" needed:"" help:"distance between levels while raising (default the workload's)"`
	Max        float64 `yaml:"max,omitempty" flag:"max" unit:"level" range:">0" needed:"" help:"highest level that is tried (default the workload's)"`
	Resolution float64 `yaml:"resolution,omitempty" flag:"resolution" unit:"level" range:">0" needed:"" help:"how precise the answer is (default the workload's)"`
	Confirm    Confirm `yaml:"confirm,omitempty" flag:"confirm" takes:"N" help:"confirmations that must pass: N, or N/M for N of M (default 3)"`
}

// Arm is one of the things that are compared; the first is the baseline.
type Arm struct {
	Name   string `yaml:"name"`
	Params Params `yaml:"params,omitempty"`
}

// Primary is the metric that decides a comparison.
type Primary struct {
	Metric string `yaml:"metric" flag:"metric"`
	// Further are metrics that decide with it: each of all of them is judged at Alpha
	// by how many they are.
	Further []string `yaml:"further,omitempty" json:",omitempty"`
	Margin  string   `yaml:"margin,omitempty" flag:"margin" default:"5%" help:"relative change that still counts as the same"`
	Alpha   float64  `yaml:"alpha,omitempty" flag:"alpha" default:"0.05" help:"error rate of the interval"`
}

// Metrics are those that decide, the primary first.
func (p Primary) Metrics() []string { return append([]string{p.Metric}, p.Further...) }

// Share is the margin as a share: 0.05 of "5%".
func (p Primary) Share() (float64, error) {
	number, isPercent := strings.CutSuffix(p.Margin, "%")
	margin, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !isPercent || err != nil || !(margin > 0 && margin < 100) {
		return 0, fmt.Errorf("%q is not a margin: want a percentage above 0 and below 100, such as 5%%", p.Margin)
	}
	return margin / 100, nil
}

// AsRun is what a run adds to its plan.
type AsRun struct {
	ID      string         `yaml:"id"`
	Kind    ExperimentKind `yaml:"kind"`
	Command string         `yaml:"command"`
	Version string         `yaml:"version"`
	Started string         `yaml:"started"`
	// Unit, Milestones and Arrived are the workload's, so that the record can
	// be judged without it.
	Unit       string   `yaml:"unit"`
	Milestones []string `yaml:"milestones"`
	Arrived    string   `yaml:"arrived"`
}

// Params are values of the workload's parameters, as they are written.
type Params map[string]string

// UnmarshalYAML reads the parameters. A key without a value says nothing, and
// the parameter keeps its default; the empty text is a value.
func (p *Params) UnmarshalYAML(unmarshal func(any) error) error {
	texts, err := withValues[string](unmarshal)
	if err == nil {
		*p = texts
	}
	return err
}

// withValues reads the keys of a mapping that have a value.
func withValues[V any](unmarshal func(any) error) (map[string]V, error) {
	var read map[string]*V
	if err := unmarshal(&read); err != nil {
		return nil, err
	}
	values := make(map[string]V, len(read))
	for key, value := range read {
		if value != nil {
			values[key] = *value
		}
	}
	return values, nil
}

// Hide puts what stands for them in the place of all values of parameters that are
// secret.
func (p *Plan) Hide(w *workload.Workload, secrets *redact.Secrets) error {
	sets := []Params{p.Params}
	for _, arm := range p.Arms {
		sets = append(sets, arm.Params)
	}
	for _, params := range sets {
		for name, value := range params {
			var err error
			if params[name], err = w.Hide(secrets, name, value); err != nil {
				return err
			}
		}
	}
	for i, key := range p.Vary {
		for j, value := range key.Value {
			stands, err := w.Hide(secrets, key.Key, value)
			if err != nil {
				return err
			}
			p.Vary[i].Value[j] = stands
		}
	}
	return nil
}

// Confirm says how many of how many confirmations must pass. The zero value is
// not given.
type Confirm struct{ Need, Of int }

// UnmarshalText reads "3" or "4/5".
func (c *Confirm) UnmarshalText(text []byte) error {
	need, of, both := strings.Cut(string(text), "/")
	n, err := strconv.Atoi(strings.TrimSpace(need))
	m := n
	if err == nil && both {
		m, err = strconv.Atoi(strings.TrimSpace(of))
	}
	if err != nil || n < 1 || m < n || m > mostRuns {
		return fmt.Errorf("%q is not a number of confirmations: want N, or N/M with 1 <= N <= M <= %d", text, mostRuns)
	}
	*c = Confirm{n, m}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (c Confirm) MarshalText() ([]byte, error) {
	if c.Need == c.Of {
		return []byte(strconv.Itoa(c.Need)), nil
	}
	return fmt.Appendf(nil, "%d/%d", c.Need, c.Of), nil
}

// Repeat is a number of repetitions, or a range of them. The zero value is not given.
type Repeat struct{ Least, Most int }

// Times is a number of repetitions that is fixed.
func Times(n int) Repeat { return Repeat{n, n} }

// Fixed reports whether the number is known before.
func (r Repeat) Fixed() bool { return r.Least == r.Most }

// UnmarshalText reads "5" or "4..30".
func (r *Repeat) UnmarshalText(text []byte) error {
	least, most, both := strings.Cut(string(text), "..")
	n, err := strconv.Atoi(strings.TrimSpace(least))
	m := n
	if err == nil && both {
		m, err = strconv.Atoi(strings.TrimSpace(most))
	}
	if err != nil || both && m <= n {
		return fmt.Errorf("%q is not a number of repetitions: want N, or a range such as 4..30", text)
	}
	*r = Repeat{n, m}
	return nil
}

// MarshalYAML writes what UnmarshalText reads: one number as the number that it is.
func (r Repeat) MarshalYAML() (any, error) {
	if r.Fixed() {
		return r.Most, nil
	}
	return r.String(), nil
}

// String is as UnmarshalText reads it.
func (r Repeat) String() string {
	if r.Fixed() {
		return strconv.Itoa(r.Most)
	}
	return fmt.Sprintf("%d..%d", r.Least, r.Most)
}

// Until says what ends a comparison of a range of blocks before the most of them.
type Until string

// What ends one.
const (
	// UntilDecided goes on until an arm is better, worse or equivalent, or has no
	// chance to be.
	UntilDecided Until = "decided"
	// UntilNotWorse ends as well once an arm is not worse.
	UntilNotWorse Until = "notWorse"
)

// Pace bounds requests per second. The zero value is not given, Max is no
// bound but that of requests in flight.
type Pace struct {
	PerSecond float64
	Max       bool
}

// IsZero reports whether no pace was given.
func (p Pace) IsZero() bool { return !p.Max && p.PerSecond == 0 }

// UnmarshalText reads "max" or a number.
func (p *Pace) UnmarshalText(text []byte) error {
	if string(text) == "max" {
		*p = Pace{Max: true}
		return nil
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(string(text), "/s"), 64)
	if err != nil || !(v >= slowest) || math.IsInf(v, 0) {
		return fmt.Errorf("%q is not a pace: want requests per second, at least %g, or max", text, slowest)
	}
	*p = Pace{PerSecond: v}
	return nil
}

// slowest is the slowest pace: a request each quarter of an hour.
const slowest = 0.001

// MarshalText writes what UnmarshalText reads.
func (p Pace) MarshalText() ([]byte, error) {
	if p.Max {
		return []byte("max"), nil
	}
	return strconv.AppendFloat(nil, p.PerSecond, 'g', -1, 64), nil
}

// Scrape is how often metrics are read, or never. The zero value is not given.
type Scrape struct {
	Every Duration
	Never bool
}

// UnmarshalText reads a duration, which is 0 for never.
func (s *Scrape) UnmarshalText(text []byte) error {
	var every Duration
	if string(text) != "0" {
		if err := every.UnmarshalText(text); err != nil {
			return err
		}
	}
	*s = Scrape{every, every == 0}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (s Scrape) MarshalText() ([]byte, error) { return s.Every.MarshalText() }

// IsZero reports whether it was not given.
func (s Scrape) IsZero() bool { return s == Scrape{} }

// Bound is a guard's bound: a count, or a percentage written with its sign.
type Bound struct {
	Value   float64
	Percent bool
}

// UnmarshalText reads "1" or "5%".
func (b *Bound) UnmarshalText(text []byte) error {
	number, percent := strings.CutSuffix(string(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) {
		return fmt.Errorf("%q is not a bound: want a number above 0, or a percentage", text)
	}
	*b = Bound{v, percent}
	return nil
}

// String is the bound as a sentence has it.
func (b Bound) String() string {
	if b.Percent {
		return fmt.Sprintf("%g %%", b.Value)
	}
	return fmt.Sprintf("%g", b.Value)
}

// MarshalText writes what UnmarshalText reads.
func (b Bound) MarshalText() ([]byte, error) {
	text := strconv.AppendFloat(nil, b.Value, 'g', -1, 64)
	if b.Percent {
		text = append(text, '%')
	}
	return text, nil
}

// MarshalYAML writes a count as the number that it is.
func (b Bound) MarshalYAML() (any, error) {
	switch {
	case b.Percent:
		text, err := b.MarshalText()
		return string(text), err
	case b.Value == math.Trunc(b.Value) && b.Value < 1<<53:
		return int64(b.Value), nil
	}
	return b.Value, nil
}

// Guards are bounds by the name of the measure that a guard watches; the
// target of the workload declares them.
type Guards map[string]Bound

// UnmarshalYAML reads the guards. A key without a value says nothing, and
// neither do guards without a key: what is loaded then has its own.
func (g *Guards) UnmarshalYAML(unmarshal func(any) error) error {
	bounds, err := withValues[Bound](unmarshal)
	if err == nil {
		*g = nil
	}
	if len(bounds) > 0 {
		*g = bounds
	}
	return err
}

// Set reads the bound of one guard. Whether there is such a guard, and whether
// its bound is a percentage, Validate tells.
func (g *Guards) Set(name, text string) error {
	var bound Bound
	if err := bound.UnmarshalText([]byte(text)); err != nil {
		return err
	}
	if *g == nil {
		*g = make(Guards)
	}
	(*g)[name] = bound
	return nil
}

// Duration is a time.Duration that is written as people write it.
type Duration time.Duration

// UnmarshalText reads a Go duration such as "10s".
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration: want one such as 10s or 5m", text)
	}
	if v < 0 {
		return fmt.Errorf("%q is negative", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Load reads an experiment file. What is wrong with it is a *strictyaml.Error;
// a file that does not exist is fs.ErrNotExist. Default and Validate come after.
func Load(file string) (*Plan, error) {
	data, err := size.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the experiment: %w", err)
	}
	return Parse(file, data)
}

// Parse reads the text of an experiment file.
func Parse(file string, data []byte) (*Plan, error) {
	p := new(Plan)
	positions, err := strictyaml.Decode(file, data, p)
	if err != nil {
		return nil, err
	}
	p.positions = positions
	if p.Schema != Schema {
		return nil, strictyaml.Join([]strictyaml.Problem{positions.OtherSchema(p.Schema, Schema)})
	}
	if v := p.validator(); !v.counts() {
		return nil, strictyaml.Join(v.Problems)
	}
	if p.Workload == "" {
		v := p.validator()
		v.Add("workload", "for example workload: node-density", "the experiment names no workload")
		return nil, strictyaml.Join(v.Problems)
	}
	if err := p.checkRecorded(); err != nil {
		return nil, err
	}
	return p, nil
}

// ReadFlags reads what flags say into the plan, in the form that a file has.
func (p *Plan) ReadFlags(said strictyaml.Raw) error {
	p.positions = new(strictyaml.Positions)
	return said.Decode("", p, p.positions)
}

// Marshal writes the plan as a file that Parse reads, back into the same plan.
// A plan of which that cannot be said is an error: a run whose record nobody
// can read is not begun.
func (p *Plan) Marshal() ([]byte, error) {
	data, err := p.marshal(yaml.Indent(2), yaml.UseLiteralStyleIfMultiline(true))
	if err != nil {
		// Plain and literal style lose some texts, such as those with tabs.
		// With every text in quotes the file is less to look at.
		data, err = p.marshal(yaml.JSON())
	}
	return data, err
}

func (p *Plan) marshal(style ...yaml.EncodeOption) ([]byte, error) {
	data, err := yaml.MarshalWithOptions(p, style...)
	if err != nil {
		return nil, fmt.Errorf("write the experiment: %w", err)
	}
	back, err := Parse("", data)
	if err != nil {
		return nil, fmt.Errorf("the experiment cannot be written: %w", err)
	}
	if !reflect.DeepEqual(p.normalised(), back.normalised()) {
		return nil, errors.New("the experiment cannot be written: it holds text that is not UTF-8")
	}
	return data, nil
}

// normalised is what the plan says, however it came to say it.
func (p *Plan) normalised() Plan {
	said := withoutEmpty(reflect.ValueOf(*p)).Interface().(Plan)
	said.positions, said.Kind, said.Own = nil, "", nil
	said.Target = strictyaml.Text(p.Target.Meaning())
	return said
}

// withoutEmpty is a copy of a value in which lists and maps that are empty are
// nil: what is empty says nothing.
func withoutEmpty(v reflect.Value) reflect.Value {
	said := reflect.New(v.Type()).Elem()
	switch kind := v.Kind(); {
	case kind == reflect.Struct:
		said.Set(v)
		for f, value := range v.Fields() {
			if f.IsExported() {
				said.FieldByIndex(f.Index).Set(withoutEmpty(value))
			}
		}
	case kind == reflect.Pointer && !v.IsNil():
		said.Set(reflect.New(v.Type().Elem()))
		said.Elem().Set(withoutEmpty(v.Elem()))
	case kind == reflect.Slice:
		for i := range v.Len() {
			said.Set(reflect.Append(said, withoutEmpty(v.Index(i))))
		}
	case kind != reflect.Map || v.Len() > 0:
		said.Set(v)
	}
	return said
}

// Certain returns the highest level that is made whatever comes of those before it, 0
// where the plan names none.
func (p *Plan) Certain() float64 {
	switch {
	case p.Axis.Search != nil:
		return p.Axis.Search.From
	case p.Axis.Level != nil:
		return *p.Axis.Level
	}
	return slices.Max(append(slices.Clone(p.Axis.Levels), 0))
}

// Levels are those that the plan names: of a sweep, a level, or the first and
// the highest of a search.
func (p *Plan) Levels() []float64 {
	all := slices.Clone(p.Axis.Levels)
	if p.Axis.Level != nil {
		all = append(all, *p.Axis.Level)
	}
	if search := p.Axis.Search; search != nil {
		all = append(all, search.From, search.Max)
	}
	return all
}
