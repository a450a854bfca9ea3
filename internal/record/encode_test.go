package record

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// What cannot be written as a number is null and named, and nothing else is
// changed.
func TestNothingKeepsAResultFromBeingWritten(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	type inner struct {
		Plain   float64  `json:"plain"`
		Pointer *float64 `json:"pointer,omitempty"`
		hidden  float64
	}
	type result struct {
		Inner    inner              `json:"inner"`
		List     []inner            `json:"list,omitempty"`
		Pair     [2]float64         `json:"pair"`
		Map      map[string]float64 `json:"map,omitempty"`
		Any      any                `json:"any,omitempty"`
		Text     string             `json:"text,omitempty"`
		Skipped  float64            `json:"-"`
		Warnings Warnings           `json:"warnings"`
	}
	const warned = `"warnings":[{"kind":"notFinite","text":"figures that are not finite are null: the measurements do not give them","count":`
	for _, tt := range []struct {
		why  string
		v    any
		want string
	}{
		{"all is finite: as ever, with what is not written", result{Inner: inner{1, new(2.0), nan}, Skipped: inf}, `{"inner":{"plain":1,"pointer":2},"pair":[0,0],"warnings":null}`},
		{"a plain figure and one behind a pointer", result{Inner: inner{Plain: inf, Pointer: new(-inf)}}, `{"inner":{"plain":null,"pointer":null},"pair":[0,0],` + warned + `2,"places":["inner.plain","inner.pointer"]}]}`},
		{"in a list", result{List: []inner{{}, {Plain: nan}}}, `{"inner":{"plain":0},"list":[{"plain":0},{"plain":null}],"pair":[0,0],` + warned + `1,"places":["list[1].plain"]}]}`},
		{"in a pair", result{Pair: [2]float64{1, nan}}, `{"inner":{"plain":0},"pair":[1,null],` + warned + `1,"places":["pair[1]"]}]}`},
		{"in a map, whose order is that of its keys", result{Map: map[string]float64{"b": inf, "a": nan, "c": 1}}, `{"inner":{"plain":0},"pair":[0,0],"map":{"a":null,"b":null,"c":1},` + warned + `2,"places":["map.a","map.b"]}]}`},
		{"of any type", result{Any: []any{nan, "x"}}, `{"inner":{"plain":0},"pair":[0,0],"any":[null,"x"],` + warned + `1,"places":["any[0]"]}]}`},
		{"a text that looks like what stands for it, and <", result{Inner: inner{Plain: inf}, Text: "-1.7976931348623157e+308<"}, `{"inner":{"plain":null},"pair":[0,0],"text":"-1.7976931348623157e+308\u003c",` + warned + `1,"places":["inner.plain"]}]}`},
		{"within another", struct {
			result
			Record string `json:"record"`
		}{result{}, "r"}, `{"inner":{"plain":0},"pair":[0,0],"warnings":null,"record":"r"}`},
		{"no struct has no warnings", []float64{1, inf}, `[1,null]`},
	} {
		got, err := Encode(tt.v, "")
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %v\n got %s\nwant %s", tt.why, err, got, tt.want)
		}
	}

	r := &result{Inner: inner{Plain: inf}, Warnings: Warnings{{Kind: WarningNote, Text: "x", Count: 1}}}
	for range 2 { // written, then printed
		data, err := Encode(r, "  ")
		var read result
		if err == nil {
			err = json.Unmarshal(data, &read)
		}
		if err != nil || len(read.Warnings) != 2 || len(r.Warnings) != 2 || !strings.Contains(string(data), "\n    \"plain\": null") {
			t.Errorf("%v, %v, %s", err, r.Warnings, data)
		}
	}
	if !math.IsInf(r.Inner.Plain, 1) {
		t.Error("the result itself was changed")
	}
	if _, err := Encode(make(chan int), ""); err == nil {
		t.Error("a channel was encoded")
	}
}
