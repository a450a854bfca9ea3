package survey

import (
	"fmt"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

// What is found in each of many namespaces is one finding.
func TestFindingsOfManyPlacesAreOne(t *testing.T) {
	l := &Assessment{}
	l.Found(record.SeverityWarning, "workload", "", "forbidden")
	for i := range 50 {
		l.foundIn(fmt.Sprint("ns-", i), "forbidden")
		l.foundIn(fmt.Sprint("ns-", i), "the server said 500")
	}
	if len(l.Findings) != 3 || len(l.Findings[0].Places) != 0 || len(l.Findings[1].Places) != 50 || len(l.Findings[2].Places) != 50 {
		t.Errorf("%+v", l.Findings)
	}
}
