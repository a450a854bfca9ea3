package record

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Fact is a property of the place and the time of a run. Targets declare theirs as facts without a value.
type Fact struct {
	Name    string  `json:"name"`           // key for compare's --arm-is; the part before a colon stands for all such names
	What    string  `json:"what,omitempty"` // in words
	Value   string  `json:"value,omitempty"`
	Unit    string  `json:"unit,omitempty"`   // of a number; B for bytes
	Within  string  `json:"within,omitempty"` // largest difference of equal numbers: 2% of the larger, or 1 of the unit; or ""
	Bearing Bearing `json:"bearing"`
}

// Bearing says what a difference between two runs means for their comparison.
type Bearing string

// What a difference can mean.
const (
	Refuses    Bearing = "refuses"    // it could be the cause of any other difference
	MayExplain Bearing = "mayExplain" // it may explain a part of it
	Noted      Bearing = "noted"      // the reader should know it
)

// Version returns the version of a program as a fact.
func Version(program, version string) Fact {
	return Fact{Name: "runtime:" + strings.ReplaceAll(program, " ", "-"), What: "version of " + program, Value: version, Bearing: Refuses}
}

// Versions returns the versions of several programs.
func Versions(of map[string]string) []Fact {
	var list []Fact
	for _, program := range slices.Sorted(maps.Keys(of)) {
		list = append(list, Version(program, of[program]))
	}
	return list
}

// RunsAs says which user ran a program.
func RunsAs(program, user string) Fact {
	return Fact{Name: "user:" + strings.ReplaceAll(program, " ", "-"), What: "user that " + program + " runs as", Value: user, Bearing: Noted}
}

// Placement says who had which processors of this machine.
func Placement(how string) Fact {
	return Fact{Name: "isolation:placement", What: "who had which processors", Value: how, Bearing: Refuses}
}

// Host describes the machine that this program ran on.
type Host struct {
	CPUs                         int
	MemoryBytes                  int64
	Kernel, Cgroup               string
	Sharing, Priority, Placement string // of its processors
}

// Facts returns the machine's facts. A program on another machine is another thing, even if it is
// simulated: its times pass on that machine's processors. Beside a target elsewhere the machine only
// sends requests, and a run in which it was too slow for that is invalid.
func (h Host) Facts(elsewhere bool) []Fact {
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	list := []Fact{
		{Name: "host:cpus", What: "processors of plimsoll's machine", Value: number(int64(h.CPUs)), Bearing: Refuses},
		// Firmware and kernel keep a varying part of it.
		{Name: "host:memory", What: "memory of plimsoll's machine", Value: number(h.MemoryBytes), Unit: "B", Within: "2%", Bearing: Refuses},
		{Name: "kernel", What: "kernel of plimsoll's machine", Value: h.Kernel, Bearing: Refuses},
		{Name: "cgroup", What: "control groups of plimsoll's machine", Value: h.Cgroup, Bearing: Refuses},
		{Name: "isolation", What: "how that machine's processors were shared", Value: h.Sharing, Bearing: Refuses},
		{Name: "isolation:priority", What: "priority of plimsoll on that machine", Value: h.Priority, Bearing: MayExplain},
		Placement(h.Placement),
	}
	for i := range list {
		if f := &list[i]; elsewhere {
			f.Bearing = Noted
			if f.Name == "kernel" || f.Name == "cgroup" { // the target has its own
				f.Name = "host:" + f.Name
			}
		}
	}
	return list
}

// MachineFact reports whether a fact of that name describes a machine, and not the software there.
func MachineFact(name string) bool {
	group, _, _ := strings.Cut(name, ":")
	return slices.Contains([]string{"host", "kernel", "cgroup", "isolation", "os", "filesystem"}, group) || strings.HasSuffix(group, "-shape")
}

// OnRecord returns the facts that have a value.
func OnRecord(list []Fact) []Fact {
	return slices.DeleteFunc(slices.Clone(list), func(f Fact) bool { return f.Value == "" })
}

// Text returns the value as people read it.
func (f Fact) Text() string {
	n, err := strconv.ParseFloat(f.Value, 64)
	switch {
	case f.Unit == "" || err != nil:
		return f.Value
	case f.Unit == "B":
		return strconv.FormatFloat(math.Round(10*n/(1<<30))/10, 'f', -1, 64) + " GiB"
	}
	return f.Value + " " + f.Unit
}

// same reports whether two values of a fact are equal within its tolerance.
func (f Fact) same(x, y string) bool {
	if x == y || f.Within == "" {
		return x == y
	}
	a, errA := strconv.ParseFloat(x, 64)
	b, errB := strconv.ParseFloat(y, 64)
	share, relative := strings.CutSuffix(f.Within, "%")
	within, errW := strconv.ParseFloat(share, 64)
	if relative {
		within *= max(math.Abs(a), math.Abs(b)) / 100
	}
	return errA == nil && errB == nil && errW == nil && math.Abs(a-b) <= within
}

// Places holds the places that were loaded, such as nodes: a row for those that are alike.
type Places struct {
	Place Noun       `json:"place"`
	Facts []Fact     `json:"facts"` // of each, without the values
	Rows  []PlaceRow `json:"rows"`
}

const mostPlaces = 1_000_000

// Check reports counts that no target has, and values that do not match the facts.
func (p *Places) Check() error {
	if p == nil {
		return nil
	}
	n := 0
	for i, row := range p.Rows {
		if row.Count < 0 || row.Count > mostPlaces-n {
			return fmt.Errorf("places.rows[%d].count: %d is not a number of places: want 0 to %d in all", i, row.Count, mostPlaces)
		}
		if n += row.Count; len(row.Values) != len(p.Facts) {
			return fmt.Errorf("places.rows[%d]: it has %d values of %d facts", i, len(row.Values), len(p.Facts))
		}
	}
	return nil
}

// PlaceRow holds places with the same values.
type PlaceRow struct {
	Count    int      `json:"count"`
	First    string   `json:"first"` // by name
	Last     string   `json:"last"`
	Fidelity Realness `json:"fidelity"`
	Values   []string `json:"values"` // of the facts, in their order
}

// Add takes in a place. Places come in the order of their names.
func (p *Places) Add(name string, fidelity Realness, values ...string) {
	i := slices.IndexFunc(p.Rows, func(r PlaceRow) bool { return r.Fidelity == fidelity && slices.Equal(r.Values, values) })
	if i < 0 {
		i = len(p.Rows)
		p.Rows = append(p.Rows, PlaceRow{First: name, Fidelity: fidelity, Values: values})
	}
	p.Rows[i].Count++
	p.Rows[i].Last = name
}

// Known is a fact with its values: one, or one of each place.
type Known struct {
	Fact
	values []string
}

// Known returns all facts of an environment, also of its places and those that follow; none without.
func (e *Environment) Known() []Known {
	if e == nil {
		return nil
	}
	var list []Known
	for _, f := range OnRecord(slices.Concat(e.target(), e.Facts, e.found())) {
		list = append(list, Known{f, []string{f.Value}})
	}
	if e.Places == nil {
		return list
	}
	for i, f := range e.Places.Facts {
		k := Known{Fact: f}
		for _, r := range e.Places.Rows {
			k.values = append(k.values, slices.Repeat(r.Values[i:i+1], r.Count)...)
		}
		slices.SortFunc(k.values, func(x, y string) int {
			a, errA := strconv.ParseFloat(x, 64)
			b, errB := strconv.ParseFloat(y, 64)
			if errA == nil && errB == nil {
				return cmp.Compare(a, b)
			}
			return cmp.Compare(x, y)
		})
		if slices.ContainsFunc(k.values, func(v string) bool { return v != "" }) {
			list = append(list, k)
		}
	}
	return list
}

// Value returns the value of a fact, "" where it is not on record.
func (e *Environment) Value(name string) string {
	if e == nil {
		return ""
	}
	i := slices.IndexFunc(e.Facts, func(f Fact) bool { return f.Name == name })
	if i < 0 {
		return ""
	}
	return e.Facts[i].Value
}

// Same reports whether two have the same values, those of places in order and as far as both have them.
func (k Known) Same(other Known) bool {
	n := min(len(k.values), len(other.values))
	for i := range n {
		if !k.same(k.values[i*len(k.values)/n], other.values[i*len(other.values)/n]) {
			return false
		}
	}
	return n > 0 || len(k.values) == len(other.values)
}

// Text returns the value as people read it, or each with its share, the most frequent first.
func (k Known) Text() string {
	count := make(map[string]int)
	for _, v := range k.values {
		f := k.Fact
		f.Value = cmp.Or(v, "not on record")
		count[f.Text()]++
	}
	texts := slices.Sorted(maps.Keys(count))
	slices.SortStableFunc(texts, func(x, y string) int { return cmp.Compare(count[y], count[x]) })
	if len(texts) == 1 {
		return texts[0]
	}
	const most = 4
	var parts []string
	for i, text := range texts {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(texts)-most))
			break
		}
		parts = append(parts, fmt.Sprintf("%s on %.0f%%", text, 100*float64(count[text])/float64(len(k.values))))
	}
	return strings.Join(parts, ", ")
}

// Declared returns the facts that follow from every environment.
func Declared() []Fact { return slices.Concat(new(Environment).target(), new(Environment).found()) }

// target returns facts about the target. Private systems live as long as a run, and have one name.
func (e *Environment) target() []Fact {
	name := e.Target.Name
	if e.Target.Private {
		name = "private"
	}
	list := []Fact{
		{Name: "target", What: "what was loaded: a lab, a cluster, or another target", Value: e.Target.Kind, Bearing: Refuses},
		{Name: "target-name", What: "which of several alike targets", Value: name, Bearing: Noted},
	}
	for _, part := range e.Fidelity.Parts() {
		list = append(list, Fact{
			Name: "fidelity:" + strings.ReplaceAll(part.Part, " ", "-"), What: part.Part + " of the target: real, simulated or none",
			Value: string(part.Is), Bearing: Refuses,
		})
	}
	return list
}

// found returns the problems known before any load, and the ceiling that binds first.
func (e *Environment) found() []Fact {
	var problems []string
	for _, f := range e.Findings {
		if f.Severity == SeverityOK || f.What == "clock" || f.What == "rights" {
			continue
		}
		problems = append(problems, fmt.Sprintf("%s: %s", f.What, f.Severity))
	}
	slices.Sort(problems)
	health, binding := strings.Join(slices.Compact(problems), ", "), ""
	if health == "" && e.Findings != nil {
		health = "nothing wrong"
	}
	if e.Ceilings != nil {
		binding = "none known"
		if b := e.Ceilings.Binding(); b != nil && b.Level != nil {
			binding = fmt.Sprintf("%s at %s", b.Name, strconv.FormatFloat(*b.Level, 'g', 10, 64))
		}
	}
	return []Fact{
		{Name: "health", What: "problems of the target before any load", Value: health, Bearing: Refuses},
		{Name: "ceilings", What: "the ceiling known before any load that binds first", Value: binding, Bearing: Noted},
	}
}

// Build identifies a build of the program.
type Build struct {
	Version      string `json:"version"`
	Commit       string `json:"commit,omitempty"`   // "": unknown, as of a build outside of a checkout
	Modified     bool   `json:"modified,omitempty"` // the checkout had changes beside the commit
	Date         string `json:"date,omitempty"`     // of the commit, RFC 3339
	Go           string `json:"go"`
	ControlPlane string `json:"kubernetes"` // version of the Kubernetes that is compiled in
	Platform     string `json:"platform"`   // such as linux/amd64
}

// String returns the build in a line.
func (b Build) String() string {
	commit := "development build"
	if b.Commit != "" {
		commit = "commit " + b.Commit[:min(len(b.Commit), 12)]
		if b.Modified {
			commit += " with changes"
		}
		commit += " of " + b.Date
	}
	return "plimsoll " + b.Version + " (" + commit + "), Kubernetes " + b.ControlPlane + ", " + b.Go + ", " + b.Platform
}
