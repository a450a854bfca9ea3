package size

import "testing"

func TestParse(t *testing.T) {
	for _, c := range []struct {
		why, text string
		want      int64
		ok        bool
	}{
		{"bytes", "4096", 4096, true},
		{"a binary unit", "4KiB", 4096, true},
		{"a decimal unit", "4kB", 4000, true},
		{"as Kubernetes writes it", "512Ki", 512 << 10, true},
		{"a part of a unit", "1.5 MiB", 3 << 19, true},
		{"a part of a byte", "1.5", 0, false},
		{"thousandths", "5m", 0, false},
		{"the most", "1GiB", 1 << 30, true},
		{"more than that", "2GiB", 0, false},
		{"more than a number holds", "999999999999GiB", 0, false},
		{"no number", "four", 0, false},
		{"a unit that there is not", "4pages", 0, false},
		{"below 0", "-1", 0, false},
	} {
		if got, err := Parse(c.text, 1<<30); got != c.want || (err == nil) != c.ok {
			t.Errorf("%s: %d, %v", c.why, got, err)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1 << 30: "1 GiB", 1536: "1536 B", 4096: "4 KiB"} {
		if got := Text(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}
