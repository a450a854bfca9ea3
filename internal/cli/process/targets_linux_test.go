package process

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"

	"plimsoll.dev/plimsoll/internal/system/kubernetes"
)

var update = flag.Bool("update", false, "write what targets declare again")

// On other systems the program reads the declarations of the targets of this machine from a file.
func TestOtherSystemsKnowTheTargetsOfThisMachine(test *testing.T) {
	var want []declaredTarget
	for _, p := range ofThisMachine() {
		t := declaredTarget{Target: p.Declare()}
		if t.Settings != nil {
			_, t.OfClusters = t.Settings().(*kubernetes.Settings)
			if t.Settings = nil; !t.OfClusters {
				test.Errorf("%s has settings of its own, which declared.json cannot hold", t.Name)
			}
		}
		want = append(want, t)
	}
	if *update {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		e.SetIndent("", "\t")
		if err := e.Encode(want); err != nil {
			test.Fatal(err)
		}
		if err := os.WriteFile("declared.json", text.Bytes(), 0o644); err != nil {
			test.Fatal(err)
		}
	}
	text, err := os.ReadFile("declared.json")
	if err != nil {
		test.Fatal(err)
	}
	var got []declaredTarget
	if err := json.Unmarshal(text, &got); err != nil {
		test.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		test.Error("declared.json is not what the targets declare; run with -update and look at the difference")
	}
}
