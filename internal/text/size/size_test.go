package size

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		why, text string
		want      int64
		refused   string // what the error says besides the text; "" for no error
	}{
		{"bytes", "4096", 4096, ""},
		{"bytes with their letter", "100B", 100, ""},
		{"a binary unit", "4KiB", 4096, ""},
		{"a decimal unit", "4kB", 4000, ""},
		{"as Kubernetes writes it", "512Ki", 512 << 10, ""},
		{"as people write the same", "512MiB", 512 << 20, ""},
		{"a larger unit", "1Gi", 1 << 30, ""},
		{"Kubernetes' decimal unit", "500M", 500_000_000, ""},
		{"a drive's decimal unit", "500MB", 500_000_000, ""},
		{"a part of a unit", "0.5GiB", 1 << 29, ""},
		{"a space before the unit", "1.5 MiB", 3 << 19, ""},
		{"spaces around it", " 4Ki ", 4096, ""},
		{"small letters", "4g", 0, "more than 1 GiB"},
		{"a part of a byte", "1.5", 0, "bytes are whole"},
		{"thousandths", "5m", 0, "want bytes such as 4096"},
		{"the most", "1GiB", 1 << 30, ""},
		{"more than that", "2GiB", 0, "2GiB is more than 1 GiB"},
		{"more than a number holds", "999999999999GiB", 0, "more than 1 GiB"},
		{"no number", "four", 0, "want bytes such as 4096"},
		{"nothing", "", 0, "want bytes such as 4096"},
		{"a unit that there is not", "4pages", 0, "want bytes such as 4096"},
		{"below 0", "-1", 0, "want bytes such as 4096"},
		{"two numbers", "1.2.3Gi", 0, "want bytes such as 4096"},
	} {
		got, err := Parse(c.text, 1<<30)
		if got != c.want || (err == nil) != (c.refused == "") {
			t.Errorf("%s: %q is %d, %v", c.why, c.text, got, err)
		}
		if err != nil && (!strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%s: %q is refused with %q, want %q", c.why, c.text, err, c.refused)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1 << 30: "1 GiB", 1536: "1536 B", 4096: "4 KiB", 5 << 60: "5 EiB"} {
		if got := Text(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

// What is read as a flag is written so that it reads the same.
func FuzzBytes(f *testing.F) {
	for _, s := range []string{"512Mi", "512MiB", "1.5GiB", "500MB", "100", "0", "much", "1e9", "1024Pi", "0.3Ki"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var b, again Bytes
		if b.UnmarshalText([]byte(text)) != nil {
			if b != 0 {
				t.Errorf("%q is refused, and %d", text, b)
			}
			return
		}
		if b < 0 {
			t.Errorf("%q is %d bytes", text, b)
		}
		if written, err := b.MarshalText(); err != nil || again.UnmarshalText(written) != nil || again != b {
			t.Errorf("%q is %d, written as %q, which is %d", text, b, written, again)
		}
	})
}
