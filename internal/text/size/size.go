// Package size answers: how many bytes does a text such as 4KiB stand for?
package size

import (
	"fmt"
	"regexp"
	"strconv"
)

var form = regexp.MustCompile(`^([0-9]{1,12})(B|kB|MB|GB|KiB|MiB|GiB)?$`)

// Parse reads a number of bytes, such as 4KiB. More than most is an error.
func Parse(text string, most int64) (int64, error) {
	m := form.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is not a size such as 4KiB, 4kB or 4096", text)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size: %w", text, err)
	}
	unit := map[string]int64{"": 1, "B": 1, "kB": 1000, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[m[2]]
	if n > most/unit {
		return 0, fmt.Errorf("%s is more than %s", text, Text(most))
	}
	return n * unit, nil
}

// Text writes a number of bytes, in the largest binary unit that gives a whole
// number.
func Text(n int64) string {
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d %s", n/u.bytes, u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}
