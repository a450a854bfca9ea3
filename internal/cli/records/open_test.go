package records

import (
	"strings"
	"testing"
)

// Each cell has a directory of its own, which a link can name.
func TestDirectoriesOfCells(t *testing.T) {
	long := "image=" + strings.Repeat("a", 300)
	seen := make(map[string]string)
	for _, name := range []string{"limit=20,places=2", "image=a:1", "image=a-1", "image=a/1", "image=a 1", "image=a#1", "image=ä1", long, long + "b", "x=.."} {
		dir := CellDir(name)
		if other, ok := seen[dir]; ok || len(dir) > 255 || strings.ContainsAny(dir, "/:# %?") {
			t.Errorf("%s is in %s, as is %q", name, dir, other)
		}
		seen[dir] = name
	}
	if dir := CellDir("limit=20,places=2"); dir != "limit=20,places=2" {
		t.Errorf("a plain name is changed: %s", dir)
	}
}
