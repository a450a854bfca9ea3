package words

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
)

func TestFigures(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Seconds(0.000123), "123 µs"}, {Seconds(0.00123), "1.23 ms"}, {Seconds(0.123), "123 ms"}, {Seconds(1.234), "1.23 s"}, {Seconds(123.4), "123.4 s"},
		{Number(110), "110"}, {Number(12.5), "12.5"}, {Number(1e6), "1000000"},
		{Bytes(0), "0 B"}, {Bytes(1536), "1.5 KiB"}, {Bytes(1010 << 10), "1010 KiB"}, {Bytes(256 << 30), "256 GiB"},
		{Span(12), "12.0 s"}, {Span(124), "2 min 4 s"}, {Span(3 * 3600), "3 h 0 min"},
		{Count(999), "999"}, {Count(1234567), "1\u202f234\u202f567"},
		{Sentence("übel."), "Übel."},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

func TestPlusMinus(t *testing.T) {
	f := func(x float64) *float64 { return &x }
	for _, tt := range []struct {
		value, hi *float64
		unit      string
		want      string
	}{
		{nil, nil, "s", "-"},
		{f(0.020548), f(0.02311), "s", "20.5 ± 2.6 ms"},
		{f(0.00021), f(0.000225), "s", "210 ± 15 µs"},
		{f(2.05), f(2.17), "s", "2.05 ± 0.12 s"},
		{f(2.05), nil, "s", "2.05 s"},
		{f(50), f(50), "", "50"},
		{f(2001.5), f(2013.2), "", "2002 ± 12"},
		{f(3 << 20), f(3.5 * (1 << 20)), "B", "3.00 ± 0.50 MiB"},
	} {
		if got := PlusMinus(result.Interval{Value: tt.value, Hi: tt.hi}, tt.unit); got != tt.want {
			t.Errorf("%v up to %v: %q, want %q", tt.value, tt.hi, got, tt.want)
		}
	}
}
