package cli

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

var updateKept = flag.Bool("update-kept", false, "accept what the kept records are judged to")

// Records that were made by an earlier version: a search on simulated nodes, a
// search of a rate, a comparison on a real node, a run that was killed, and the
// same run resumed. They are judged as they were when they were made: what a
// result said then it says now. It may say more.
func TestKeptRecordsAreJudgedAsTheyWere(t *testing.T) {
	dirs, err := filepath.Glob("testdata/records/*")
	if err != nil || len(dirs) < 5 {
		t.Fatal(dirs, err)
	}
	for _, kept := range dirs {
		t.Run(filepath.Base(kept), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "run")
			if err := os.CopyFS(dir, os.DirFS(kept)); err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := record.Dir(kept).ReadJSON(record.ResultFile, &want); err != nil {
				t.Fatal(err)
			}
			got := command(t, nil, "analyze", dir, "-o", "json")
			if got.code != int(want["exitCode"].(float64)) {
				t.Errorf("exit code %d, was %v: %s", got.code, want["exitCode"], got.stderr)
			}
			var now map[string]any
			if err := json.Unmarshal([]byte(got.stdout), &now); err != nil {
				t.Fatal(err)
			}
			delete(now, "record") // the test's own directory
			if *updateKept {
				text, err := json.Marshal(now)
				if err == nil {
					err = os.WriteFile(filepath.Join(kept, record.ResultFile), append(text, '\n'), 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			differences := compareKept("", want, now)
			for _, d := range differences[:min(len(differences), 20)] {
				t.Error(d)
			}
			if n := len(differences); n > 20 {
				t.Errorf("and %d more", n-20)
			}
		})
	}
}

// compareKept lists what was said at a path and is no longer.
func compareKept(path string, was, now any) []string {
	switch w := was.(type) {
	case map[string]any:
		n, ok := now.(map[string]any)
		if !ok {
			break
		}
		var list []string
		for key, value := range w {
			if _, there := n[key]; !there {
				list = append(list, fmt.Sprintf("%s.%s is gone, it was %v", path, key, value))
				continue
			}
			list = append(list, compareKept(path+"."+key, value, n[key])...)
		}
		slices.Sort(list)
		return list
	case []any:
		n, ok := now.([]any)
		if !ok || len(n) != len(w) {
			break
		}
		var list []string
		for i := range w {
			list = append(list, compareKept(fmt.Sprintf("%s[%d]", path, i), w[i], n[i])...)
		}
		return list
	default:
		if was == now {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s is %v, it was %v", path, now, was)}
}
