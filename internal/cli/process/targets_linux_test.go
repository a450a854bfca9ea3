package process

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan/workload"
)

var update = flag.Bool("update", false, "write what targets declare again")

// On other systems the program reads what the targets of this machine declare from a file.
func TestOtherSystemsKnowTheTargetsOfThisMachine(t *testing.T) {
	var want []workload.Target
	for _, p := range ofThisMachine() {
		want = append(want, p.Declare())
	}
	if *update {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		e.SetIndent("", "\t")
		if err := e.Encode(want); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("declared.json", text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("declared.json")
	if err != nil {
		t.Fatal(err)
	}
	var got []workload.Target
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("declared.json is not what the targets declare; run with -update and look at the difference")
	}
}
