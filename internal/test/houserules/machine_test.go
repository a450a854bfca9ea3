package houserules

import (
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/lab/telemetry"
)

// valuesOfThisMachine returns what only this machine has, by what it is. A value of
// few letters, such as the host name vm, stands in texts by chance and is left out.
func valuesOfThisMachine(t *testing.T) map[string]string {
	t.Helper()
	values := map[string]string{"kernel": telemetry.Host().Kernel}
	if name, err := os.Hostname(); err == nil {
		values["host name"] = name
	}
	if who, err := user.Current(); err == nil && who.Uid != "0" {
		values["user"], values["home"] = who.Username, who.HomeDir
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if model := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(text); model != nil {
			values["processor"] = string(model[1])
		}
	}
	for _, file := range []string{"/etc/machine-id", "/proc/sys/kernel/random/boot_id"} {
		if text, err := os.ReadFile(file); err == nil {
			values[file] = strings.TrimSpace(string(text))
		}
	}
	const letters = 6
	for what, value := range values {
		if len(value) < letters {
			delete(values, what)
		}
	}
	return values
}

// What a test expects holds on every machine. Records, which tests read and do not
// expect, come from some machine.
func TestGoldenFilesNameNoMachine(t *testing.T) {
	values := valuesOfThisMachine(t)
	if len(values) == 0 {
		t.Skip("this machine tells nothing of itself")
	}
	files := 0
	err := filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(p, "/testdata/") || strings.Contains(p, "/testdata/records/") {
			return err
		}
		text, err := os.ReadFile(p)
		files++
		for what, value := range values {
			if strings.Contains(string(text), value) {
				t.Errorf("%s holds this machine's %s, %q: replace it in the test before it compares", strings.TrimPrefix(p, "../"), what, value)
			}
		}
		return err
	})
	if err != nil || files < 100 {
		t.Errorf("%d files, %v", files, err)
	}
}

// mostFixtures bounds the bytes of all files below folders named testdata.
const mostFixtures = 2_500_000

func TestFixturesAreSmall(t *testing.T) {
	total := int64(0)
	err := filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(p, "/testdata/") {
			return err
		}
		info, err := d.Info()
		total += info.Size()
		return err
	})
	if err != nil || total > mostFixtures {
		t.Errorf("testdata has %d bytes, at most %d are allowed: keep one small record of a kind, and test a table by its sections (%v)", total, mostFixtures, err)
	}
}
