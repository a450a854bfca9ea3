package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
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

// Schema names the format of experiment files.
const Schema = "plimsoll/experiment/v1"

// ExperimentKind names the question that a plan asks.
type ExperimentKind string

// The kinds of experiments.
const (
	Limit ExperimentKind = "limit" // how far?
	Sweep ExperimentKind = "sweep" // how does it behave along the axis?
	AB    ExperimentKind = "ab"    // is the change better, worse, equivalent?
	Run   ExperimentKind = "run"   // does one level hold?
)

// Plan holds an experiment file.
type Plan struct {
	Schema   string         `yaml:"schema"`
	Name     string         `yaml:"name,omitempty" flag:"name" takes:"NAME" help:"the plan's name in records, by which --baseline and 'plimsoll runs' know it again (default the workload's)"`
	Workload string         `yaml:"workload"` // the name of a built-in one, or a path
	Params   Params         `yaml:"params,omitempty" flag:"set"`
	Target   strictyaml.Raw `yaml:"target,omitempty"` // holds the target's own settings as the file has them
	Axis     Axis           `yaml:"axis,omitempty"`
	Arms     []Arm          `yaml:"arms,omitempty" flag:"arm"`
	// Vary lists values by key; Cells combines them, and each cell becomes a search or a sweep of its own.
	Vary strictyaml.Ordered[[]string] `yaml:"vary,omitempty"`
	// Repeat counts repetitions or blocks. Until ends a range of blocks early.
	Repeat      Repeat                       `yaml:"repeat,omitempty" flag:"repeat" takes:"N" help:"runs of each arm at each level: N, or a range A..B that ends once --until is met (default 4..30)"`
	Until       Until                        `yaml:"until,omitempty" flag:"until" takes:"decided" help:"what ends a range of runs: decided, or notWorse (default decided)"`
	Seed        uint64                       `yaml:"seed,omitempty" flag:"seed" help:"seed of all random choices (default a random one, which is recorded)"`
	Pace        Pace                         `yaml:"pace,omitempty" flag:"pace" help:"requests per second, or max (default the target's: on kubernetes max in a lab, 20 elsewhere)"`
	Hold        Duration                     `yaml:"hold,omitempty" flag:"hold" takes:"duration" help:"how long a level is held (default the workload's)"`
	HoldMax     Duration                     `yaml:"holdMax,omitempty" flag:"hold-max" takes:"duration" help:"longest hold of a step that is made again because its hold does not tell whether the backlog grows (default five holds)"`
	StepTimeout Duration                     `yaml:"stepTimeout,omitempty" flag:"step-timeout" takes:"duration" range:">0" needed:"" help:"how long objects are followed after the last one was created (default 5m)"`
	Budget      Duration                     `yaml:"budget,omitempty" flag:"budget" takes:"duration" range:"0s.." help:"time after which no step begins; the result is the best range so far (default none)"`
	Goals       strictyaml.Ordered[[]string] `yaml:"goals,omitempty" flag:"goal"`
	// Require names the goal that decides the exit code, or is RequireAll; "" stands for the headline.
	Require      string   `yaml:"require,omitempty" flag:"require" takes:"all|NAME" help:"which goals the exit code follows: all|NAME (default the headline, which is the first)"`
	Primary      *Primary `yaml:"primary,omitempty"`
	Guards       Guards   `yaml:"guards,omitempty" flag:"guard"`
	GuardQueries []string `yaml:"guardQueries,omitempty" flag:"guard-query" takes:"objective" help:"end a step once metrics are not as this objective wants them: \"query 'PROMQL' OP VALUE\"; may be repeated"`
	// Fresh names what a step clears before it begins: FreshObjects, or the target's word for its system.
	Fresh        string      `yaml:"fresh,omitempty" flag:"fresh"`
	NormalEvents bool        `yaml:"normalEvents,omitempty" flag:"normal-events" help:"also record the cluster's events of type Normal"`
	Scrape       Scrape      `yaml:"scrape,omitempty" flag:"scrape" takes:"duration" help:"how often the metrics are read that the target publishes, a duration, for 'plimsoll query'; 0 is never (default 5s)"`
	MaxSeries    int         `yaml:"maxSeries,omitempty" flag:"max-series" range:"0.." help:"how many series of metrics are kept (default 300000)"`
	Prometheus   *Prometheus `yaml:"prometheus,omitempty"`
	// Published lists figures of others, which reports show beside the run's own.
	Published []Published `yaml:"published,omitempty"`
	// Signatures lists failures to look for besides the built-in ones; they replace those of the same name.
	Signatures []signature.Signature `yaml:"signatures,omitempty"`
	AsRun      *AsRun                `yaml:"asRun,omitempty"` // holds what the program adds to the copy that a run keeps
	Kind       ExperimentKind        `yaml:"-"`               // follows from the rest; Default fills it in
	// Own holds the target's own settings once ReadTarget has read Target; nil for a target without any.
	Own settings.Own `yaml:"-"`

	positions *strictyaml.Positions
}

// Prometheus names a server that the run queries for what it scraped. A plan never holds its credentials.
type Prometheus struct {
	URL string `yaml:"url" flag:"prometheus"` // holds its address, or OpenShift
	// Match selects series to read besides those of the objectives.
	Match []string `yaml:"match,omitempty" flag:"prometheus-match"`
}

// OpenShift stands for the Prometheus of the OpenShift cluster under load.
const OpenShift = "openshift"

// RequireAll makes every goal count for the exit code.
const RequireAll = "all"

// FreshObjects makes a step that begins from empty remove the objects of the load first.
const FreshObjects = "objects"

// Renews reports whether the target makes its system again for such a step.
func (p *Plan) Renews() bool { return p.Fresh != "" && p.Fresh != FreshObjects }

// Axis says what a run raises, and how.
type Axis struct {
	Name   string    `yaml:"name,omitempty" flag:"axis" help:"what is raised; 'plimsoll workloads show WORKLOAD' lists the axes"`
	Search *Search   `yaml:"search,omitempty"`
	Levels []float64 `yaml:"levels,omitempty" flag:"levels" example:"100,200,300" help:"the levels, separated by commas (default of a sweep the workload's, if it has any)"`
	Level  *float64  `yaml:"level,omitempty" flag:"level" example:"60" help:"the level at which the arms are run (default the first level of a search)"`
	Life   Duration  `yaml:"life,omitempty" flag:"life" takes:"duration" help:"on an axis of arrivals per second, how long each object stays once it is ready; the warm-up lasts as long (default the workload's)"`
}

// Search bounds the levels among which a run looks for the load line.
type Search struct {
	From       float64 `yaml:"from,omitempty" flag:"from" unit:"level" range:">0" needed:"" help:"first level (default the workload's)"`
	Step       float64 `yaml:"step,omitempty" flag:"step" unit:"level" range:">0" needed:"" help:"distance between levels while raising (default the workload's)"`
	Max        float64 `yaml:"max,omitempty" flag:"max" unit:"level" range:">0" needed:"" help:"highest level that is tried (default the workload's)"`
	Resolution float64 `yaml:"resolution,omitempty" flag:"resolution" unit:"level" range:">0" needed:"" help:"how precise the answer is (default the workload's)"`
	Confirm    Confirm `yaml:"confirm,omitempty" flag:"confirm" takes:"N" help:"confirmations that must pass: N, or N/M for N of M (default 3)"`
}

// Arm holds one side of a comparison; the first is the baseline.
type Arm struct {
	Name   string `yaml:"name"`
	Params Params `yaml:"params,omitempty"`
}

// Primary names the metric that decides a comparison.
type Primary struct {
	Metric string `yaml:"metric" flag:"metric"`
	// Further lists metrics that decide with it; the judge divides Alpha among all of them.
	Further []string `yaml:"further,omitempty" json:",omitempty"`
	Margin  string   `yaml:"margin,omitempty" flag:"margin" default:"5%" help:"relative change that still counts as the same"`
	Alpha   float64  `yaml:"alpha,omitempty" flag:"alpha" default:"0.05" help:"error rate of the interval"`
}

// Metrics returns the metrics that decide, the primary first.
func (p Primary) Metrics() []string { return append([]string{p.Metric}, p.Further...) }

// Share returns the margin as a share: 0.05 for "5%".
func (p Primary) Share() (float64, error) {
	number, isPercent := strings.CutSuffix(p.Margin, "%")
	margin, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !isPercent || err != nil || !(margin > 0 && margin < 100) {
		return 0, fmt.Errorf("%q is not a margin: want a percentage above 0 and below 100, such as 5%%", p.Margin)
	}
	return margin / 100, nil
}

// AsRun holds what a run adds to its plan.
type AsRun struct {
	ID      string         `yaml:"id"`
	Kind    ExperimentKind `yaml:"kind"`
	Command string         `yaml:"command"`
	Version string         `yaml:"version"`
	Started string         `yaml:"started"`
	// Unit, Milestones and Arrived are the workload's: the judge then needs no workload.
	Unit       string   `yaml:"unit"`
	Milestones []string `yaml:"milestones"`
	Arrived    string   `yaml:"arrived"`
}

// Params holds values of the workload's parameters, as the plan writes them.
type Params map[string]string

// UnmarshalYAML reads the parameters. A key without a value leaves the default, an empty text replaces it.
func (p *Params) UnmarshalYAML(unmarshal func(any) error) error {
	texts, err := withValues[string](unmarshal)
	if err == nil {
		*p = texts
	}
	return err
}

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

// Hide replaces the values of secret parameters by placeholders.
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

// Confirm says how many of how many confirmations must pass. The zero value says nothing.
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

// Repeat holds a number of repetitions, or a range. The zero value says nothing.
type Repeat struct{ Least, Most int }

// Times returns a fixed number of repetitions.
func Times(n int) Repeat { return Repeat{n, n} }

// Fixed reports whether the plan fixes the number.
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

// MarshalYAML writes what UnmarshalText reads, a fixed number as a number.
func (r Repeat) MarshalYAML() (any, error) {
	if r.Fixed() {
		return r.Most, nil
	}
	return r.String(), nil
}

// String returns what UnmarshalText reads.
func (r Repeat) String() string {
	if r.Fixed() {
		return strconv.Itoa(r.Most)
	}
	return fmt.Sprintf("%d..%d", r.Least, r.Most)
}

// Until says what ends a comparison before its last block.
type Until string

// The ends of a comparison.
const (
	// UntilDecided goes on until every arm is better, worse or equivalent, or can no longer become so.
	UntilDecided  Until = "decided"
	UntilNotWorse Until = "notWorse" // also ends once every arm is no worse
)

// Pace bounds requests per second. The zero value says nothing; Max bounds only the requests in flight.
type Pace struct {
	PerSecond float64
	Max       bool
}

// IsZero reports whether the plan says nothing about its pace.
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

// slowest bounds the pace from below: a request each quarter of an hour.
const slowest = 0.001

// MarshalText writes what UnmarshalText reads.
func (p Pace) MarshalText() ([]byte, error) {
	if p.Max {
		return []byte("max"), nil
	}
	return strconv.AppendFloat(nil, p.PerSecond, 'g', -1, 64), nil
}

// Scrape says how often a run reads metrics, or never. The zero value says nothing.
type Scrape struct {
	Every Duration
	Never bool
}

// UnmarshalText reads a duration; 0 means never.
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

// IsZero reports whether the plan says nothing about metrics.
func (s Scrape) IsZero() bool { return s == Scrape{} }

// Bound holds the bound of a guard: a count or a percentage.
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

// String returns the bound as sentences write it.
func (b Bound) String() string {
	if b.Percent {
		return fmt.Sprintf("%g%%", b.Value)
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

// MarshalYAML writes a count as a number.
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

// Guards maps the measures that guards watch, which the target declares, to their bounds.
type Guards map[string]Bound

// UnmarshalYAML reads the guards. A key without a value says nothing, and an empty mapping leaves the defaults.
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

// Set reads the bound of one guard; Validate checks it against the target.
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

// Duration holds a time that files write as Go does.
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

// Load reads an experiment file; its mistakes are a *strictyaml.Error. Call Default and Validate next.
func Load(file string) (*Plan, error) {
	data, err := size.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the experiment: %w", err)
	}
	return Parse(file, data)
}

// These match the schema of a later format, and the version of the program that ran the plan.
var (
	laterSchema = regexp.MustCompile(`(?m)^schema: *["']?(plimsoll/experiment/v(?:[2-9]|[1-9][0-9]+))\b`)
	ranBy       = regexp.MustCompile(`(?ms)^asRun:.*?^ +version: *["']?([\w.+-]+)`)
)

// Parse reads the text of an experiment file.
func Parse(file string, data []byte) (*Plan, error) {
	p := new(Plan)
	positions, err := strictyaml.Decode(file, data, p)
	if found := laterSchema.FindSubmatch(data); found != nil { // what is new in it looks like mistakes
		problem := positions.OtherSchema(string(found[1]), Schema)
		problem.Hint = "it needs a later version of plimsoll"
		if by := ranBy.FindSubmatch(data); by != nil {
			problem.Hint = "it needs plimsoll " + string(by[1]) + ", which ran it"
		}
		return nil, strictyaml.Join([]strictyaml.Problem{problem})
	}
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

// ReadFlags reads flags into the plan, given in the form of a file.
func (p *Plan) ReadFlags(said strictyaml.Raw) error {
	p.positions = new(strictyaml.Positions)
	return said.Decode("", p, p.positions)
}

// Marshal writes the plan for Parse. It fails for a plan that no file can hold, before its run begins.
func (p *Plan) Marshal() ([]byte, error) {
	data, err := p.marshal(yaml.Indent(2), yaml.UseLiteralStyleIfMultiline(true))
	if err != nil {
		// Plain and literal style lose some texts, such as those with tabs. Quotes keep them.
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

// normalised returns the plan in a form that plans with the same meaning share.
func (p *Plan) normalised() Plan {
	said := withoutEmpty(reflect.ValueOf(*p)).Interface().(Plan)
	said.positions, said.Kind, said.Own = nil, "", nil
	said.Target = strictyaml.Text(p.Target.Meaning())
	return said
}

// withoutEmpty copies a value with nil for empty lists and maps.
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

// Certain returns the highest level that every run of the plan makes, 0 if the plan names none.
func (p *Plan) Certain() float64 {
	switch {
	case p.Axis.Search != nil:
		return p.Axis.Search.From
	case p.Axis.Level != nil:
		return *p.Axis.Level
	}
	return slices.Max(append(slices.Clone(p.Axis.Levels), 0))
}

// Levels returns the levels that the plan names; of a search, the first and the highest.
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

// Fingerprint identifies the conditions of a plan's steps, without budget, name and what chooses the steps.
func (p *Plan) Fingerprint() (string, error) {
	said := p.normalised()
	list := []any{
		said.Workload, said.Params, said.Target.String(), said.Axis.Name, said.Axis.Life, said.Arms, said.Repeat.Most, said.Seed,
		said.Pace, said.Hold, said.StepTimeout, said.Primary, said.Guards, said.NormalEvents, said.Fresh,
	}
	if len(said.GuardQueries) > 0 { // earlier versions had none
		list = append(list, said.GuardQueries)
	}
	text, err := json.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("fingerprint the experiment: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}
