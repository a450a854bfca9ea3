// Package size answers: how many bytes does a text such as 4KiB stand for?
package size

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

var form = regexp.MustCompile(`^([0-9]+\.?[0-9]*)[ ]*(?:([kKMGTPgtp])(i?)B?|B)?$`)

// Parse reads a number of bytes: 4KiB, 32Gi, 1.5Ti, 512kB, 4G, or a bare number.
// Units with an i are binary, others decimal, as in Kubernetes. More than most is
// an error.
func Parse(text string, most int64) (int64, error) {
	m := form.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, fmt.Errorf("%q is no size: want one such as 32Gi, 4KiB, 512kB or 4096", text)
	}
	value, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no size: %w", text, err)
	}
	base := 1000.0
	if m[3] != "" {
		base = 1024
	}
	n := value
	if m[2] != "" {
		n *= math.Pow(base, float64(strings.Index("kmgtp", strings.ToLower(m[2]))+1))
	}
	switch {
	case m[2] == "" && n != math.Trunc(n):
		return 0, fmt.Errorf("%q is no size: bytes are whole", text)
	case n > float64(most):
		return 0, fmt.Errorf("%s is more than %s", text, Text(most))
	}
	return int64(math.Round(n)), nil
}

// Text writes a number of bytes, in the largest binary unit that gives a whole
// number.
func Text(n int64) string {
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"EiB", 1 << 60}, {"PiB", 1 << 50}, {"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d %s", n/u.bytes, u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}
