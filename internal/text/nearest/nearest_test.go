package nearest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

func TestWord(t *testing.T) {
	verbs := []string{"limit", "sweep", "ab", "run", "lab", "lint"}
	keys := []string{"jobIterations", "iterationsPerNamespace", "qps", "burst", "namespace", "namespacedIterations"}
	for _, c := range []struct {
		why, word string
		known     []string
		want      string
	}{
		{"a letter left out", "limt", verbs, "limit"},
		{"neighbours swapped count once", "limti", verbs, "limit"},
		{"a letter too many", "sweeep", verbs, "sweep"},
		{"case alone is a misspelling", "JobIterations", keys, "jobIterations"},
		{"known as written is itself", "qps", keys, "qps"},
		{"nothing close is no hint", "frobnicate", verbs, ""},
		{"an empty word has no neighbour", "", verbs, ""},
		{"no known words, no hint", "limit", nil, ""},
		{"two edits in a long word", "jobIteratons", keys, "jobIterations"},
		{"two edits in three letters is another word", "xyz", keys, ""},
		{"one edit in two letters is allowed", "as", verbs, "ab"},
		{"an abbreviation", "iter", keys, "iterationsPerNamespace"},
		{"an ambiguous abbreviation is no hint", "name", keys, ""},
		{"surrounding space is not an edit", " lint ", verbs, "lint"},
		{"equally close: the first known", "lt", []string{"lat", "lit"}, "lat"},
	} {
		got, ok := Word(c.word, c.known)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s: Word(%q) = %q, %v; want %q", c.why, c.word, got, ok, c.want)
		}
	}
}

// slowDistance returns the textbook recursion of the same distance.
func slowDistance(a, b []rune) int {
	if len(a) == 0 {
		return len(b)
	}
	if len(b) == 0 {
		return len(a)
	}
	cost := 1
	if a[len(a)-1] == b[len(b)-1] {
		cost = 0
	}
	d := min(
		slowDistance(a[:len(a)-1], b)+1,
		slowDistance(a, b[:len(b)-1])+1,
		slowDistance(a[:len(a)-1], b[:len(b)-1])+cost,
	)
	if len(a) > 1 && len(b) > 1 && a[len(a)-1] == b[len(b)-2] && a[len(a)-2] == b[len(b)-1] {
		d = min(d, slowDistance(a[:len(a)-2], b[:len(b)-2])+1)
	}
	return d
}

func TestDistanceEqualsItsSlowTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func() []rune {
		w := make([]rune, random.IntN(7))
		for i := range w {
			w[i] = rune('a' + random.IntN(3))
		}
		return w
	}
	for range 3000 {
		a, b, limit := word(), word(), 1+random.IntN(8)
		want := min(slowDistance(a, b), limit)
		if got := distance(a, b, limit); got != want {
			t.Fatalf("distance(%q, %q, %d) = %d, want %d", string(a), string(b), limit, got, want)
		}
	}
}

// A directory is suggested only if it fits.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"first-run", "first-ran"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	fits := func(path string) bool { return filepath.Base(path) == "first-ran" }
	if got := Directory(filepath.Join(dir, "first-rum"), fits); got != `did you mean "first-ran"?` {
		t.Errorf("the hint is %q", got)
	}
	if got := Directory(filepath.Join(dir, "first-rum"), func(string) bool { return false }); got != "" {
		t.Errorf("the hint is %q, and nothing fits", got)
	}
}
