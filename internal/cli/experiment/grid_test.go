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
