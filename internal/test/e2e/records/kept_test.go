package records_test

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/cli/experiment"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/record/upgrade"
	"plimsoll.dev/plimsoll/internal/report/text"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/golden"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Records of every kind of experiment are judged and shown as they were: the whole
// result, the text, and what the page is drawn from. An early version has made five
// of them (old-...). The environment of four is a list of facts (facts-...), as it is
// written today; the others have a form before that. testdata/records holds the
// records, testdata/kept what comes of them.
func TestKeptRecords(t *testing.T) {
	t.Parallel()
	const records = 26
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
			check("result.json", strings.ReplaceAll(got.Stdout, dir, "DIR")+e2e.WithoutWaiting(got.Stderr))
			text := e2e.Transcript(t, dir, "analyze", dir)
			if !record.IsGrid(dir) { // a grid has nothing to explain
				text += e2e.Transcript(t, dir, "analyze", dir, "--explain")
			}
			check("text.txt", text)
			if text := checkAsRecorded(t, record.Dir(dir)); text != "" {
				check("check.txt", text)
			}
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
				in, err := filepath.Rel(dir, filepath.Dir(path))
				if err != nil {
					return err
				}
				data, err := dataIn(page)
				check(filepath.Join(in, "page.json"), data)
				check(filepath.Join(in, "page.txt"), wordsOf(page))
				return err
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

// checkAsRecorded is how a check would show the findings and the ceilings that a
// run has put on record, "" where it has none.
func checkAsRecorded(t *testing.T, dir record.Dir) string {
	t.Helper()
	env, err := upgrade.Environment(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && env.Ceilings == nil {
		return ""
	} else if err != nil {
		t.Fatal(err)
	}
	w, err := experiment.LoadWorkload(env.Ceilings.Workload)
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	if err := text.Write(&said, view.Check(ceiling.Check{Kind: w.Target.Kind, Target: ceiling.CheckTarget{Kind: env.Target.Kind, Private: env.Target.Private}, Findings: env.Findings, Table: *env.Ceilings})); err != nil {
		t.Fatal(err)
	}
	return said.String()
}

var (
	dataElement   = regexp.MustCompile(`(?s)<script type="application/json" id="run">(.*?)</script>`)
	packedElement = regexp.MustCompile(`<script type="application/octet-stream" id="packed">([^<]*)</script>`)
	listOfNumbers = regexp.MustCompile(`\[[-\d\s,.e+]+\]`)
	blanks        = regexp.MustCompile(`\s+`)

	unread = regexp.MustCompile(`(?s)<(script|style|svg)\b.*?</(script|style|svg)>`)
	block  = regexp.MustCompile(`</?(address|article|aside|button|caption|details|div|dd|dl|dt|fieldset|figcaption|figure|footer|h[1-6]|header|label|legend|li|main|nav|ol|option|p|pre|section|select|summary|table|tbody|tfoot|thead|title|tr|ul)\b[^>]*>`)
	cell   = regexp.MustCompile(`</t[dh]>`)
	tag    = regexp.MustCompile(`<[^>]*>`)
)

// wordsOf is what can be read on a page without its charts, a line for each row
// and paragraph.
func wordsOf(page []byte) string {
	text := unread.ReplaceAllString(string(page), "")
	text = cell.ReplaceAllString(block.ReplaceAllString(text, "\n"), " | ")
	text = html.UnescapeString(tag.ReplaceAllString(text, " "))
	var lines strings.Builder
	for line := range strings.Lines(text) {
		if words := strings.Join(strings.Fields(line), " "); words != "" {
			lines.WriteString(words + "\n")
		}
	}
	return lines.String()
}

// dataIn is what a page is drawn from, but for the result, which is kept beside
// it. Of the table of all objects it is the digest.
func dataIn(page []byte) (string, error) {
	element, packed := dataElement.FindSubmatch(page), packedElement.FindSubmatch(page)
	if element == nil || packed == nil {
		return "", fmt.Errorf("the page has no data")
	}
	var parts map[string]any
	numbers := json.NewDecoder(bytes.NewReader(element[1]))
	numbers.UseNumber()
	if err := numbers.Decode(&parts); err != nil {
		return "", err
	}
	delete(parts, "result")
	if len(packed[1]) > 0 {
		table, err := io.ReadAll(flate.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(packed[1]))))
		if err != nil {
			return "", err
		}
		parts["packed"] = fmt.Sprintf("%d bytes, SHA-256 %x", len(table), sha256.Sum256(table))
	}
	text, err := json.MarshalIndent(parts, "", " ")
	if err != nil {
		return "", err
	}
	text = listOfNumbers.ReplaceAllFunc(text, func(list []byte) []byte { return blanks.ReplaceAll(list, nil) })
	return string(text) + "\n", nil
}
