package process

import "testing"

func TestCommandLineIsWhatAShellReads(t *testing.T) {
	got := CommandLine([]string{"limit", "node-density", "--slo", "Ready p99 <= 5s", "--set", "image=it's"})
	if want := `plimsoll limit node-density --slo 'Ready p99 <= 5s' --set 'image=it'\''s'`; got != want {
		t.Errorf("commandLine = %s, want %s", got, want)
	}
}
