package host

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

// SoftnetCPU counts a CPU's received packets since the host's start, or between two readings, by 32 bits.
type SoftnetCPU struct {
	CPU       int
	Processed uint32 // column 1: packets
	Dropped   uint32 // column 2: packets that found the backlog queue full
	Squeezed  uint32 // column 3: polls that ended with work left, without budget or time
}

// ParseSoftnet reads /proc/net/softnet_stat. Column 13 is the CPU since Linux 5.10; before, rows are in
// order.
func ParseSoftnet(data []byte) ([]SoftnetCPU, error) {
	var list []SoftnetCPU
	numbered := true
	seen := map[int]bool{}
	for i, line := range strings.Split(string(bytes.TrimRight(data, "\n")), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		const least, most = 9, 32
		if len(fields) < least || len(fields) > most {
			return nil, fmt.Errorf("line %d: %d columns: want %d or more of eight hexadecimal digits", i+1, len(fields), least)
		}
		var values [most]uint32
		for j, f := range fields {
			v, err := strconv.ParseUint(f, 16, 32)
			if err != nil || len(f) != 8 {
				return nil, fmt.Errorf("line %d, column %d: %q is not a number of eight hexadecimal digits", i+1, j+1, f)
			}
			values[j] = uint32(v)
		}
		row := SoftnetCPU{CPU: len(list), Processed: values[0], Dropped: values[1], Squeezed: values[2]}
		if len(fields) >= 13 && values[12] < 1<<16 && !seen[int(values[12])] {
			row.CPU = int(values[12])
			seen[row.CPU] = true
		} else {
			numbered = false
		}
		list = append(list, row)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("it is empty: want a row for each CPU")
	}
	if !numbered { // all rows or none
		for i := range list {
			list[i].CPU = i
		}
	}
	return list, nil
}

// GrowSoftnet returns the difference of two readings, or an error if counters went back.
func GrowSoftnet(before, after []SoftnetCPU) ([]SoftnetCPU, error) {
	first := map[int]SoftnetCPU{}
	for _, c := range before {
		first[c.CPU] = c
	}
	var list []SoftnetCPU
	for _, b := range after {
		a, ok := first[b.CPU]
		if !ok {
			continue // it came online in between
		}
		g := SoftnetCPU{b.CPU, b.Processed - a.Processed, b.Dropped - a.Dropped, b.Squeezed - a.Squeezed}
		// No host counts half of the range between two readings: the counter went back.
		for _, d := range []uint32{g.Processed, g.Dropped, g.Squeezed} {
			if d >= 1<<31 {
				return nil, fmt.Errorf("the counters of CPU %d went back: the host was started between the readings, or they are the wrong way round", b.CPU)
			}
		}
		list = append(list, g)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the two readings have no CPU in common")
	}
	return list, nil
}

// perSecond writes a count, with its rate if the interval is known.
func perSecond(n uint64, interval time.Duration) string {
	if interval <= 0 {
		return "+" + param.Grouped(int64(n))
	}
	return fmt.Sprintf("+%s in %v (%.3g/s)", param.Grouped(int64(n)), interval, float64(n)/interval.Seconds())
}
