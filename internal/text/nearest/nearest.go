// Package nearest answers one question: which known word did the user mean?
// It serves every hint of the form "did you mean ...?".
package nearest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Word returns the known word closest to what was written, for a hint about a
// misspelling. ok is false when none is close enough to be worth suggesting:
// a hint that guesses wildly is worse than none. Case is ignored, equally
// close words are settled by their order in known, and a word that is known
// as written is returned as it is.
//
// Closeness is the Damerau-Levenshtein distance in its restricted form
// ("optimal string alignment"): insertions, deletions, substitutions and swaps
// of neighbours, no part edited twice. At most one edit per three characters
// of the word, and never fewer than one, is a misspelling; a known word that
// the written one abbreviates ("iter" for "iterations") comes after those.
func Word(word string, known []string) (near string, ok bool) {
	written := []rune(strings.ToLower(strings.TrimSpace(word)))
	if len(written) == 0 {
		return "", false
	}
	best := max(1, len(written)/3) + 1
	for _, candidate := range known {
		if candidate == word {
			return candidate, true
		}
		d := distance(written, []rune(strings.ToLower(candidate)), best)
		if d < best {
			near, best, ok = candidate, d, true
		}
	}
	if ok {
		return near, true
	}
	return abbreviated(string(written), known)
}

// abbreviated finds the one known word that begins with what was written. Of
// two such words neither is suggested.
func abbreviated(written string, known []string) (string, bool) {
	const shortest = 3 // fewer letters begin too many words
	if len(written) < shortest {
		return "", false
	}
	found := ""
	for _, candidate := range known {
		if strings.HasPrefix(strings.ToLower(candidate), written) {
			if found != "" {
				return "", false
			}
			found = candidate
		}
	}
	return found, found != ""
}

// distance counts the edits between a and b; it gives up and returns limit
// once they are limit or more.
func distance(a, b []rune, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	// Three rows of the usual table: a swap looks two rows back.
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		// A later row can undercut this one by a swap only, which costs 1.
		if least > limit {
			return limit
		}
		before, above, row = above, row, before
	}
	return min(above[len(b)], limit)
}

// Hint returns the hint for a word that is unknown, and otherwise where no known
// word is near.
func Hint(word string, known []string, otherwise string) string {
	if near, ok := Word(word, known); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return otherwise
}

// OneOf returns the hint for a word that must be one of those known.
func OneOf(word string, known []string) string {
	if len(known) == 0 {
		return "there is none"
	}
	return Hint(word, known, "there is: "+strings.Join(known, ", "))
}

// File returns the hint for a missing file: the file beside it with the nearest name, or "".
func File(file string) string { return Directory(file, func(string) bool { return true }) }

// Directory returns the hint for a missing directory: the one beside it with the nearest name
// that fits accepts, or "".
func Directory(file string, fits func(path string) bool) string {
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range entries {
		if e.Name() == filepath.Base(file) {
			return "" // it is there: its name is not what is wrong
		}
		if fits(filepath.Join(filepath.Dir(file), e.Name())) {
			names = append(names, e.Name())
		}
	}
	return Hint(filepath.Base(file), names, "")
}
