package houserules

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every row of a source document that is cited anywhere, such as V17, is
// explained on the page that ships with the program.
func TestCitedSourcesAreExplained(t *testing.T) {
	const root = "../../.."
	page, err := os.ReadFile(filepath.Join(root, "docs", "tables", "sources.md"))
	if err != nil {
		t.Fatal(err)
	}
	explained := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^\| ([CRDV]\d+) \| \S.* \|$`).FindAllStringSubmatch(string(page), -1) {
		if explained[m[1]] {
			t.Errorf("%s is explained twice", m[1])
		}
		explained[m[1]] = true
	}
	row := regexp.MustCompile(`\b[CRDV][1-9][0-9]?\b`)
	cited := make(map[string]bool)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"node_modules", "assets", "bin", "built"}, d.Name())):
			return filepath.SkipDir
		case d.IsDir() || !slices.Contains([]string{".go", ".md", ".yaml", ".yml", ".txtar", ".txt", ".ts", ".sh"}, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, code := range row.FindAllString(string(text), -1) {
			if cited[code] = true; !explained[code] {
				t.Errorf("%s cites %s, and docs/tables/sources.md does not explain it: add its row", strings.TrimPrefix(path, root+"/"), code)
			}
		}
		return nil
	})
	if err != nil || len(cited) < 50 {
		t.Fatalf("%d rows are cited, %v", len(cited), err)
	}
}
