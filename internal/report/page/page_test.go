package page

import (
	"html/template"
	"strings"
	"testing"
)

func TestACellShowsFewFigures(t *testing.T) {
	for _, test := range []struct {
		all   int
		shown int
		why   string
	}{
		{1, 1, "one figure stands alone"},
		{5, 5, "folding one figure away saves nothing"},
		{6, 4, "the rest is folded"},
		{30, 4, "a long comparison has thirty runs"},
	} {
		list := strings.TrimSuffix(strings.Repeat("1.5\u00a0s, ", test.all), ", ")
		got := fold(list)
		if n := strings.Count(got.Shown, "1.5"); n != test.shown || n+len(got.Rest) != test.all {
			t.Errorf("%d figures: %d shown and %d folded, want %d shown: %s", test.all, n, len(got.Rest), test.shown, test.why)
		}
	}
	if got := fold(""); got.Shown != "" || len(got.Rest) > 0 {
		t.Errorf("no figures: %+v", got)
	}
}

func TestSoftTextIsEscaped(t *testing.T) {
	if got := soft(`kube-system/<b>&"`); got != template.HTML("kube-system/<wbr>&lt;b&gt;&amp;&#34;") {
		t.Errorf("got %s", got)
	}
	for _, text := range []string{"2 MiB/s", "<b>"} {
		if got := soft(text); got != text { // a string, which the template escapes
			t.Errorf("%q became %q", text, got)
		}
	}
}
