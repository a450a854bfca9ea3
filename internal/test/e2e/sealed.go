package e2e

import (
	"encoding/json"
	"os"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

// Sealed makes a directory with a result.json of this text, as a run writes it: with its sum.
func Sealed(t *testing.T, dir, text string) {
	t.Helper()
	var result map[string]any
	if err := json.Unmarshal([]byte(text), &result); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := record.Dir(dir).WriteResult(result, nil); err != nil {
		t.Fatal(err)
	}
}
