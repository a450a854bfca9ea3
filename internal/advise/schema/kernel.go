package schema

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed sysctl-keys.txt
var sysctlKeys string

// Range says what the kernel accepts for a key.
type Range struct {
	Numbers   int // how many; 0 is unknown
	Low, High int64
}

// Kernel holds the known settings of the kernel.
type Kernel struct {
	Known    map[string]Range    // with * for the names of interfaces
	Families map[string][]string // keys by what they begin with, such as net
	Roots    []string            // the keys of Families
	Removed  map[string]string   // keys that are gone, with what to do instead
}

// NewKernel reads the table.
func NewKernel() *Kernel {
	f := &Kernel{Known: make(map[string]Range), Families: make(map[string][]string), Removed: make(map[string]string)}
	for line := range strings.Lines(sysctlKeys) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if key, instead, ok := strings.Cut(line, ": "); ok {
			f.Removed[key] = instead
			continue
		}
		var r Range
		line, bounds, _ := strings.Cut(line, " ")
		if bounds != "" {
			_, _ = fmt.Sscan(bounds, &r.Numbers, &r.Low, &r.High) // a test reads this file of ours
		}
		f.Known[line] = r
		family, _, _ := strings.Cut(line, ".")
		if f.Families[family] == nil {
			f.Roots = append(f.Roots, family)
		}
		f.Families[family] = append(f.Families[family], line)
	}
	return f
}
