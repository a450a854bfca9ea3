package experiment

import (
	"math"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/text"
	"plimsoll.dev/plimsoll/internal/report/view"
)

// Each cell has a directory of its own, which a link can name.
func TestDirectoriesOfCells(t *testing.T) {
	long := "image=" + strings.Repeat("a", 300)
	seen := make(map[string]string)
	for _, name := range []string{"limit=20,places=2", "image=a:1", "image=a-1", "image=a/1", "image=a 1", "image=a#1", "image=ä1", long, long + "b", "x=.."} {
		dir := cellDir(name)
		if other, ok := seen[dir]; ok || len(dir) > 255 || strings.ContainsAny(dir, "/:# %?") {
			t.Errorf("%s is in %s, as is %q", name, dir, other)
		}
		seen[dir] = name
	}
	if dir := cellDir("limit=20,places=2"); dir != "limit=20,places=2" {
		t.Errorf("a plain name is changed: %s", dir)
	}
}

// A figure of a grid that is not finite is null in its result, and its text has
// the warning of it.
func TestAGridWarnsOfFiguresThatAreNotFinite(t *testing.T) {
	g := judge.Grid{Kind: "sweep", Margin: math.NaN()}
	if err := writeGrid(record.Dir(t.TempDir()), &g); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	if err := text.Write(&said, view.Grid(g, "d")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "warning: figures that are not finite are null") || !strings.Contains(said.String(), "margin") {
		t.Errorf("it says\n%s", said.String())
	}
}
