package keys

import (
	"encoding/json"
	"reflect"
	"testing"
)

// What earlier versions have written has the keys of today, and what has them
// stays as it is.
func TestKeysOfEarlierVersions(t *testing.T) {
	for _, c := range []struct {
		why       string
		of        func([]byte) ([]byte, error)
		was, want string
	}{
		{"a kind of today", Kind, `{"there":"Ready","charts":[],"metrics":[{"name":"x","of":{"source":"s","value":"v","fold":"mean"}}]}`, ""},
		{"names of a kind", Kind, `{"anew":true,"courses":[{}],"atOnce":{"from":"a"},"by":{"to":"b"}}`, `{"freshPerStep":true,"charts":[{}],"concurrent":{"from":"a"},"groupBy":{"to":"b"}}`},
		{"what a process used", Kind, `{"metrics":[{"name":"x","source":"s","figure":"cpu"},{"source":"s","figure":"memory"},{"source":"s","figure":"growth"}]}`,
			`{"metrics":[{"name":"x","of":{"source":"s","value":"cpuSeconds","fold":"difference"}},{"of":{"source":"s","value":"memoryBytes","fold":"most"}},{"of":{"source":"s","value":"memoryBytes","fold":"growth"}}]}`},
		{"requests for each second of CPU have a title", Kind, `{"metrics":[{"name":"x","source":"s","figure":"perCPU"}]}`,
			`{"metrics":[{"name":"x","title":"requests per s CPU second","of":{"source":"step","value":"done","fold":"last"},"per":{"source":"s","value":"cpuSeconds","fold":"difference"}}]}`},
		{"the rate", Kind, `{"metrics":[{"source":"","figure":"rate"}]}`, `{"metrics":[{"of":{"source":"step","value":"achievedRate","fold":"last"}}]}`},
		{"what was read last, and most", Kind, `{"metrics":[{"source":"s","figure":"seconds"},{"source":"s","figure":"told"},{"source":"s","figure":"most","value":"v"}]}`,
			`{"metrics":[{"of":{"source":"s","value":"seconds","fold":"last"}},{"of":{"source":"s","value":"value","fold":"last"}},{"of":{"source":"s","value":"v","fold":"most"}}]}`},
		{"a step of today", Step, `{"id":1,"metrics":{"x":1},"requests":{"done":1},"resources":{"s":{"cpuSeconds":1}}}`, ""},
		{"names of a step", Step, `{"told":{"x":1},"atOnce":{"most":1},"by":[{}]}`, `{"metrics":{"x":1},"concurrent":{"most":1},"groups":[{}]}`},
		{"requests to the API, before streams", Step, `{"requests":{"n":3}}`, `{"apiRequests":{"n":3}}`},
		{"a figure among those of a process is a metric", Step, `{"told":{"x":1},"resources":{"s":{"peakCPUs":null,"requestsPerCPUSecond":2}}}`,
			`{"metrics":{"x":1,"requestsPerCPUSecond":2},"resources":{"s":{"peakCPUs":null,"requestsPerCPUSecond":2}}}`},
	} {
		got, err := c.of([]byte(c.was))
		if c.want == "" {
			c.want = c.was
		}
		var is, want any
		if err == nil {
			err = json.Unmarshal(got, &is)
		}
		if json.Unmarshal([]byte(c.want), &want); err != nil || !reflect.DeepEqual(is, want) {
			t.Errorf("%s: %s, %v", c.why, got, err)
		}
	}
	for _, damaged := range []string{`[]`, `{"metrics":1}`, `{"metrics":[{"figure":"none"}]}`, `{"metrics":[{"figure":1}]}`} {
		if got, err := Kind([]byte(damaged)); err == nil {
			t.Errorf("%s: %s", damaged, got)
		}
	}
	for _, damaged := range []string{`[]`, `{"requests":1}`, `{"told":1,"resources":{"s":{"requestsPerCPUSecond":1}}}`, `{"resources":"requestsPerCPUSecond"}`} {
		if got, err := Step([]byte(damaged)); err == nil {
			t.Errorf("%s: %s", damaged, got)
		}
	}
}
