package objects

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
)

// shape has a key of each kind that an object's type can have.
type shape struct {
	Text     string             `json:"text"`
	Flag     bool               `json:"flag"`
	Whole    int32              `json:"whole"`
	Unsigned uint8              `json:"unsigned"`
	Number   float64            `json:"number"`
	Size     resource.Quantity  `json:"size"`
	Port     intstr.IntOrString `json:"port"`
	Time     metav1.Time        `json:"time"`
	Wait     metav1.Duration    `json:"wait"`
	Data     []byte             `json:"data"`
	Mode     string             `json:"mode" values:"Always Never"`
	Level    int32              `json:"level" range:"-1 0 10 20"`
	List     []int32            `json:"list"`
	Map      map[string]string  `json:"map"`
	Inner    innerShape         `json:"inner"`
}

type innerShape struct {
	Depth  int32 `json:"depth"`
	Deeper struct {
		Bottom bool `json:"bottom"`
	} `json:"deeper"`
}

func fitsShape(out *report.Report, root reading.Value) {
	Fits(out, root, "the shape", reflect.TypeFor[shape]())
}

func TestShapes(t *testing.T) { shapes().check(t) }

// shapes hold documents that do not fit their type.
func shapes() table {
	return table{"a.shape", []row{
		{
			why:   "the server wants a text, and YAML reads a number or a word for true",
			fires: "text: 5\nmap: {a: yes}\n",
			want: `a.shape:1:7: error: text wants text, found the number 5 [wrong-type]
a.shape:2:10: error: a wants text, found yes, which Kubernetes reads as true [wrong-type]`,
			but:  "in quotes both are texts; a key without a value says nothing",
			near: "text: \"5\"\nmap: {a: 'yes', b: }\n",
		},
		{
			why:   "a text in quotes is no number and no word for true",
			fires: "flag: \"true\"\nwhole: \"5\"\nnumber: \"1.5\"\n",
			want: `a.shape:1:7: error: flag wants true or false, found the text "true" [wrong-type]
a.shape:2:8: error: whole wants a whole number, found the text "5" [wrong-type]
a.shape:3:9: error: number wants a number, found the text "1.5" [wrong-type]`,
			but:  "without quotes they are; a template fills in any",
			near: "flag: true\nwhole: 5\nnumber: 1.5\nlevel: ${LEVEL}\n",
		},
		{
			why:   "a number does not fit into its type",
			fires: "whole: 2147483648\nunsigned: -1\nlist: [1.5, 1e300, 9223372036854775808]\n---\nunsigned: 256\n",
			want: `a.shape:1:8: error: whole wants a whole number, found the number 2147483648 [wrong-type]
a.shape:2:11: error: unsigned wants a whole number that is not negative, found the number -1 [wrong-type]
a.shape:3:8: error: list[0] wants a whole number, found the number 1.5 [wrong-type]
a.shape:3:13: error: list[1] wants a whole number, found the number 1e300 [wrong-type]
a.shape:3:20: error: list[2] wants a whole number, found the number 9223372036854775808 [wrong-type]
a.shape:5:11: error: unsigned wants a whole number that is not negative, found the number 256 [wrong-type]`,
			but:  "these are the largest that fit, and 2.0 is a whole number",
			near: "whole: 2147483647\nunsigned: 255\nlist: [2.0]\n",
		},
		{
			why:   "a list, a mapping and a scalar are three things",
			fires: "list: 1\nmap: [a]\ninner: a\ntext: {a: b}\nsize: [1]\n",
			want: `a.shape:1:7: error: list wants a list, found the number 1 [wrong-type]
a.shape:2:6: error: map wants a mapping, found a list [wrong-type]
a.shape:3:8: error: inner wants a mapping, found the text "a" [wrong-type]
a.shape:4:7: error: text wants text, found a mapping [wrong-type]
a.shape:5:7: error: size wants a quantity such as 500m or 4Gi, found a list [wrong-type]`,
			but:  "each is what its type wants",
			near: "list: [1]\nmap: {a: b}\ninner: {}\ntext: a\nsize: 1\n",
		},
		{
			why:   "times, durations and ports have forms of their own",
			fires: "time: yesterday\nwait: 10\nport: true\n",
			want: `a.shape:1:7: error: time wants a time such as 2026-01-31T10:00:00Z, found the text "yesterday" [wrong-type]
a.shape:2:7: error: wait wants a duration such as 10s, found the number 10 [wrong-type]
a.shape:3:7: error: port wants a whole number or a text, found true [wrong-type]`,
			but:  "these are their forms",
			near: "time: \"2026-01-31T10:00:00Z\"\nwait: 1m30s\nport: http\n",
		},
		{
			why:   "Kubernetes does not know the unit",
			fires: "size: 4GB\n",
			want:  `a.shape:1:7: error: size is no quantity: "4GB" [bad-quantity]`,
			but:   "G and Gi are units, and a number needs none",
			near:  "-- a.shape --\nsize: 4G\n-- b.shape --\nsize: 4.5Gi\n-- c.shape --\nsize: 4000000000\n",
		},
		{
			why:   "the server decodes the text from base64",
			fires: "data: hello!\n",
			want:  `a.shape:1:7: error: data wants text in base64 [wrong-type]`,
			but:   "base64 may be written over several lines",
			near:  "data: |\n  aGVs\n  bG8=\n",
		},
		{
			why:   "the text is not among those that the server takes",
			fires: "mode: always\n",
			want:  `a.shape:1:7: error: mode cannot be "always" [bad-value]`,
			but:   "it is written so; an empty text is the default; a template fills in a text",
			near:  "-- a.shape --\nmode: Always\n-- b.shape --\nmode: \"\"\n-- c.shape --\nmode: ${MODE}\n-- d.shape --\nmode: __MODE__\n",
		},
		{
			why:   "the number lies between two ranges",
			fires: "level: 5\n",
			want:  `a.shape:1:8: error: level cannot be 5 [bad-value]`,
			but:   "the bounds belong to their ranges",
			near:  "-- a.shape --\nlevel: -1\n-- b.shape --\nlevel: 0\n-- c.shape --\nlevel: 10\n-- d.shape --\nlevel: 20\n",
		},
		{
			why:   "the server minds capital letters in keys",
			fires: "Text: a\n",
			want:  `a.shape:1:1: error: the top of the shape has no field "Text": it is written text [unknown-field]`,
			but:   "keys of a mapping are free",
			near:  "text: a\nmap: {Text: a}\n",
		},
		{
			why:   "the server drops a key that it does not know",
			fires: "txet: a\ninner: {dept: 1}\n",
			want: `a.shape:1:1: error: the top of the shape has no field "txet" [unknown-field]
a.shape:2:9: error: inner has no field "dept" [unknown-field]`,
			but:  "a template fills in a key",
			near: "text: a\n${KEY}: a\ninner: {depth: 1}\n",
		},
		{
			why:   "the key stands above its mapping, or below it",
			fires: "bottom: true\ninner:\n  depth: 1\n  flag: true\n",
			want: `a.shape:1:1: error: the top of the shape has no field "bottom": it is a field of inner.deeper [wrong-level]
a.shape:4:3: error: inner has no field "flag": it is a field of the top [wrong-level]`,
			but:  "both stand where they belong",
			near: "flag: true\ninner:\n  depth: 1\n  deeper: {bottom: true}\n",
		},
		{
			why:   "a value tells whether its key stands at the wrong level",
			fires: "inner:\n  size: 1Gi\n  map: {a: b}\n  list: [1]\n  deeper: {depth: 1}\n---\ninner:\n  size: [1]\n  map: [a]\n  list: 5\n  flag: 3\n  deeper: {depth: a}\n",
			want: `a.shape:2:3: error: inner has no field "size": it is a field of the top [wrong-level]
a.shape:3:3: error: inner has no field "map": it is a field of the top [wrong-level]
a.shape:4:3: error: inner has no field "list": it is a field of the top [wrong-level]
a.shape:5:12: error: inner.deeper has no field "depth": it is a field of inner [wrong-level]
a.shape:8:3: error: inner has no field "size" [unknown-field]
a.shape:9:3: error: inner has no field "map" [unknown-field]
a.shape:10:3: error: inner has no field "list" [unknown-field]
a.shape:11:3: error: inner has no field "flag" [unknown-field]
a.shape:12:12: error: inner.deeper has no field "depth" [unknown-field]`,
			but:  "at their level they fit",
			near: "size: 1Gi\nmap: {a: b}\nlist: [1]\ninner: {depth: 1}\n",
		},
		{
			why:   "a value at the wrong level is looked at as if it stood where it belongs",
			fires: "inner:\n  level: 5\n",
			want:  `a.shape:2:3: error: inner has no field "level": it is a field of the top [wrong-level]`,
			but:   "at its level it has a value that is allowed",
			near:  "level: 10\n",
		},
		{
			why:   "the server refuses an object without a required field",
			fires: "-- a.yaml --\napiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: a}\nspec:\n  domain: {}\n",
			want:  `a.yaml:5:11: warning: spec.domain has no devices, which is required [missing-field]`,
			but:   "an empty mapping is there; the server writes the status",
			near:  "-- a.yaml --\napiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: a}\nspec:\n  domain: {devices: {}}\nstatus: {conditions: [{}]}\n",
		},
		{
			but:  "parameters of a template may bring the rest",
			near: "-- a.yaml --\napiVersion: template.openshift.io/v1\nkind: Template\nmetadata: {name: a}\nobjects:\n- apiVersion: kubevirt.io/v1\n  kind: VirtualMachineInstance\n  metadata: {name: a}\n  spec:\n    domain: {}\n",
		},
	}}
}
