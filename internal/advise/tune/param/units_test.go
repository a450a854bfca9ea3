package param

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseRate(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Rate
		why  string
	}{
		{"50Gbit", 50e9, "the document's bond"},
		{"50000Mb/s", 50e9, "as the document's formula writes it"},
		{"50Gbps", 50e9, "per second by letters"},
		{"10GbE", 10e9, "Ethernet"},
		{"2x25GbE", 50e9, "two links of a bond"},
		{"1.25GB/s", 10e9, "bytes are eight bits"},
		{"1000Mbit/s", 1e9, ""},
		{"1Gibit", 1 << 30, "binary"},
		{"100kbit", 1e5, ""},
		{"9600bit/s", 9600, "no multiplier"},
		{" 1 Gbit ", 1e9, "spaces"},
	} {
		got, err := ParseRate(tt.text)
		if err != nil || math.Abs(float64(got-tt.want)) > 1 {
			t.Errorf("ParseRate(%q) = %v, %v; want %v (%s)", tt.text, float64(got), err, float64(tt.want), tt.why)
		}
	}
	for text, part := range map[string]string{
		"50":       "no unit",
		"":         "not a speed",
		"fast":     "not a speed",
		"50Gbt":    `did you mean "Gbit"`,
		"0Gbit":    "faster than 0",
		"-5Gbit":   "not a speed",
		"0x25GbE":  "no bond",
		"1.5x1GbE": "no bond",
		"5Gi":      "unknown unit",
		"1e99Gbit": "unknown unit",
	} {
		if _, err := ParseRate(text); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("ParseRate(%q): %v, want %q", text, err, part)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"32Gi": 32 << 30, "32GiB": 32 << 30, "4G": 4e9, "512KB": 512_000, "512Ki": 512 << 10, "512k": 512_000,
		"16384": 16384, "0": 0, "1.5Gi": 3 << 29, "100B": 100, "384GB": 384e9,
	} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "Gi", "4Gx", "1.5", "-1", "5m", "99999Pi", "4 Gi B"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", text, got)
		}
	}
}

func TestParseOthers(t *testing.T) {
	if d, err := ParseDelay("0.208ms"); err != nil || d != 208*time.Microsecond {
		t.Errorf("0.208ms: %v %v", d, err)
	}
	for text, part := range map[string]string{"0.208": "write 0.208ms", "0s": "above zero", "-1s": "above zero", "soon": "with a unit"} {
		if _, err := ParseDelay(text); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("ParseDelay(%q): %v", text, err)
		}
	}
	for text, want := range map[string]int64{"21,400": 21400, "3000": 3000, "0": 0, "1,000,000": 1000000} {
		if n, err := ParseCount(text); err != nil || n != want {
			t.Errorf("ParseCount(%q) = %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"21,40", ",400", "1,0000", "1.5", "-1", "", "9999999999"} {
		if n, err := ParseCount(text); err == nil {
			t.Errorf("ParseCount(%q) = %d, want an error", text, n)
		}
	}
	for text, want := range map[string]float64{"85%": 0.85, "0.85": 0.85, "100%": 1, "1": 1} {
		if f, err := ParsePercent(text); err != nil || math.Abs(float64(f)-want) > 1e-12 {
			t.Errorf("ParsePercent(%q) = %v, %v", text, f, err)
		}
	}
	if _, err := ParsePercent("85"); err == nil || !strings.Contains(err.Error(), "85%") {
		t.Errorf("85 as a share: %v", err)
	}
	for text, want := range map[string]float64{"500m": 0.5, "2": 2, "1.5": 1.5} {
		if f, err := ParseCores(text); err != nil || f != want {
			t.Errorf("ParseCores(%q) = %v, %v", text, f, err)
		}
	}
	if _, err := ParseCores("2 cores"); err == nil {
		t.Error("2 cores were read")
	}
	for text, part := range map[string]string{
		"10.130.0.0/14": "the range is 10.128.0.0/14", "10.128.0.0": "10.128.0.0/14", "ten": "such as", "10.128.0.0/33": "such as", "::ffff:10.0.0.0/104": "IPv4 range itself",
	} {
		if _, err := ParsePrefix(text); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("ParsePrefix(%q): %v, want %q", text, err, part)
		}
	}
}

func FuzzUnits(f *testing.F) {
	for _, s := range []string{"50Gbit", "2x25GbE", "0.208ms", "32Gi", "512KB", "21,400", "85%", "500m", "10.128.0.0/14", "fd01::/48", "i", "Gi", "9e9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := ParseRate(s); err == nil {
			if r <= 0 || math.IsNaN(float64(r)) || math.IsInf(float64(r), 0) {
				t.Errorf("ParseRate(%q) = %v", s, float64(r))
			}
			// What is printed can be read, and means the same.
			if again, err := ParseRate(strings.ReplaceAll(r.String(), " ", "")); err != nil || math.Abs(float64(again-r)) > float64(r)*1e-9 {
				t.Errorf("ParseRate(%q) prints as %q, which reads as %v, %v", s, r, float64(again), err)
			}
		}
		if b, err := ParseBytes(s); err == nil && b < 0 {
			t.Errorf("ParseBytes(%q) = %d", s, b)
		}
		if d, err := ParseDelay(s); err == nil && d <= 0 {
			t.Errorf("ParseDelay(%q) = %v", s, d)
		}
		if n, err := ParseCount(s); err == nil && n < 0 {
			t.Errorf("ParseCount(%q) = %d", s, n)
		}
		if p, err := ParsePercent(s); err == nil && !(p >= 0) {
			t.Errorf("ParsePercent(%q) = %v", s, p)
		}
		if c, err := ParseCores(s); err == nil && !(c >= 0) {
			t.Errorf("ParseCores(%q) = %v", s, c)
		}
		if p, err := ParsePrefix(s); err == nil && p != p.Masked() {
			t.Errorf("ParsePrefix(%q) = %v", s, p)
		}
	})
}
