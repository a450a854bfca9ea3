package records_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/golden"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// largestResult is the size in bytes up to which a result is kept whole. Of a larger
// one its text is kept.
const largestResult = 100_000

// Records of every kind of experiment are judged and shown as they were: the result and
// the text. The environment of four is a list of facts (facts-...), as it is written
// today; the others have a form before that. testdata/records holds the records,
// testdata/kept the results and texts. What a page says is tested by its sections, in
// report and report/view; here each record makes a page whose data can be read.
func TestKeptRecords(t *testing.T) {
	t.Parallel()
	const records = 19
	kept, err := os.ReadDir("testdata/records")
	if err != nil || len(kept) < records {
		t.Fatal(kept, err)
	}
	for _, of := range kept {
		t.Run(of.Name(), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "run")
			if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata/records", of.Name()))); err != nil {
				t.Fatal(err)
			}
			results := filepath.Join("kept", of.Name())
			if *update {
				if err := os.RemoveAll(filepath.Join("testdata", results)); err != nil {
					t.Fatal(err)
				}
			}
			made := make(map[string]bool)
			check := func(file, got string) {
				t.Helper()
				made[filepath.Join("testdata", results, file)] = true
				golden.Check(t, *update, filepath.Join(results, file), []byte(got))
			}
			got := e2e.Command(t, nil, "analyze", dir, "-o", "json")
			if result := strings.ReplaceAll(got.Stdout, dir, "DIR") + e2e.WithoutWaiting(got.Stderr); len(result) <= largestResult {
				check("result.json", result)
			} else if got.Code == process.ExitUsage || got.Code == process.ExitCouldNotRun {
				t.Errorf("exit code %d\n%s", got.Code, got.Stderr)
			}
			text := e2e.Transcript(t, dir, "analyze", dir)
			if !record.IsGrid(dir) { // a grid has nothing to explain
				text += e2e.Transcript(t, dir, "analyze", dir, "--explain")
			}
			check("text.txt", text)
			if got := e2e.Command(t, nil, "report", dir); got.Code != 0 {
				t.Fatal(got.Stderr)
			}
			err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.Name() != record.ReportFile {
					return err
				}
				page, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				return readable(page)
			})
			if err != nil {
				t.Error(err)
			}
			filepath.WalkDir(filepath.Join("testdata", results), func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() && !made[path] {
					t.Errorf("%s is kept, and nothing of its name is made any more", path)
				}
				return err
			})
		})
	}
}

var (
	dataElement   = regexp.MustCompile(`(?s)<script type="application/json" id="run">(.*?)</script>`)
	packedElement = regexp.MustCompile(`<script type="application/octet-stream" id="packed">([^<]*)</script>`)
)

// readable returns an error if the data that a page is drawn from cannot be read.
func readable(page []byte) error {
	element, packed := dataElement.FindSubmatch(page), packedElement.FindSubmatch(page)
	if element == nil || packed == nil {
		return errors.New("the page has no data")
	}
	var parts map[string]any
	if err := json.Unmarshal(element[1], &parts); err != nil {
		return err
	}
	if parts["result"] == nil {
		return errors.New("the page has no result")
	}
	_, err := io.Copy(io.Discard, flate.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(packed[1]))))
	if len(packed[1]) > 0 && err != nil {
		return fmt.Errorf("the table of objects: %w", err)
	}
	return nil
}
