package golden

import (
	"strings"
	"testing"
)

func TestADifferenceNamesItsLines(t *testing.T) {
	was := strings.Repeat("same\n", 100) + "one\n" + strings.Repeat("same\n", 100)
	const want = "--- the file\n+++ got\n@@ -100,3 +100,3 @@\n same\n-one\n+two\n same"
	if got := difference(was, strings.Replace(was, "one", "two", 1)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := difference("", strings.Repeat(strings.Repeat("x", 1000)+"\n", 100)); len(got) > 20_000 || !strings.Contains(got, "(1001 bytes)") || !strings.HasSuffix(got, "more lines") {
		t.Errorf("a large difference is shown in %d bytes:\n%s", len(got), got)
	}
}
