package objects

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"

	"plimsoll.dev/plimsoll/internal/advise/lint/linttest"
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

func TestShapes(t *testing.T) { looks().Check(t, shapes()) }

// shapes hold documents that do not fit their type.
func shapes() linttest.Table {
	return linttest.Table{File: "a.shape", Rows: []linttest.Row{
		{
			Why:   "the server wants a text, and YAML reads a number or a word for true",
			Fires: "text: 5\nmap: {a: yes}\n",
			Want: `a.shape:1:7: error: text wants text, found the number 5 [wrong-type]
a.shape:2:10: error: a wants text, found yes, which Kubernetes reads as true [wrong-type]`,
			But:  "in quotes both are texts; a key without a value says nothing",
			Near: "text: \"5\"\nmap: {a: 'yes', b: }\n",
		},
		{
			Why:   "a text in quotes is not a number and no word for true",
			Fires: "flag: \"true\"\nwhole: \"5\"\nnumber: \"1.5\"\n",
			Want: `a.shape:1:7: error: flag wants true or false, found the text "true" [wrong-type]
a.shape:2:8: error: whole wants a whole number, found the text "5" [wrong-type]
a.shape:3:9: error: number wants a number, found the text "1.5" [wrong-type]`,
			But:  "without quotes they are; a template fills in any",
			Near: "flag: true\nwhole: 5\nnumber: 1.5\nlevel: ${LEVEL}\n",
		},
		{
			Why:   "a number does not fit into its type",
			Fires: "whole: 2147483648\nunsigned: -1\nlist: [1.5, 1e300, 9223372036854775808]\n---\nunsigned: 256\n",
			Want: `a.shape:1:8: error: whole wants a whole number, found the number 2147483648 [wrong-type]
a.shape:2:11: error: unsigned wants a whole number that is not negative, found the number -1 [wrong-type]
a.shape:3:8: error: list[0] wants a whole number, found the number 1.5 [wrong-type]
a.shape:3:13: error: list[1] wants a whole number, found the number 1e300 [wrong-type]
a.shape:3:20: error: list[2] wants a whole number, found the number 9223372036854775808 [wrong-type]
a.shape:5:11: error: unsigned wants a whole number that is not negative, found the number 256 [wrong-type]`,
			But:  "these are the largest that fit, and 2.0 is a whole number",
			Near: "whole: 2147483647\nunsigned: 255\nlist: [2.0]\n",
		},
		{
			Why:   "a list, a mapping and a scalar are three things",
			Fires: "list: 1\nmap: [a]\ninner: a\ntext: {a: b}\nsize: [1]\n",
			Want: `a.shape:1:7: error: list wants a list, found the number 1 [wrong-type]
a.shape:2:6: error: map wants a mapping, found a list [wrong-type]
a.shape:3:8: error: inner wants a mapping, found the text "a" [wrong-type]
a.shape:4:7: error: text wants text, found a mapping [wrong-type]
a.shape:5:7: error: size wants a quantity such as 500m or 4Gi, found a list [wrong-type]`,
			But:  "each is what its type wants",
			Near: "list: [1]\nmap: {a: b}\ninner: {}\ntext: a\nsize: 1\n",
		},
		{
			Why:   "times, durations and ports have forms of their own",
			Fires: "time: yesterday\nwait: 10\nport: true\n",
			Want: `a.shape:1:7: error: time wants a time such as 2026-01-31T10:00:00Z, found the text "yesterday" [wrong-type]
a.shape:2:7: error: wait wants a duration such as 10s, found the number 10 [wrong-type]
a.shape:3:7: error: port wants a whole number or a text, found true [wrong-type]`,
			But:  "these are their forms",
			Near: "time: \"2026-01-31T10:00:00Z\"\nwait: 1m30s\nport: http\n",
		},
		{
			Why:   "Kubernetes does not know the unit",
			Fires: "size: 4GB\n",
			Want:  `a.shape:1:7: error: size is not a quantity: "4GB" [bad-quantity]`,
			But:   "G and Gi are units, and a number needs none",
			Near:  "-- a.shape --\nsize: 4G\n-- b.shape --\nsize: 4.5Gi\n-- c.shape --\nsize: 4000000000\n",
		},
		{
			Why:   "the server decodes the text from base64",
			Fires: "data: hello!\n",
			Want:  `a.shape:1:7: error: data wants text in base64 [wrong-type]`,
			But:   "base64 may be written over several lines",
			Near:  "data: |\n  aGVs\n  bG8=\n",
		},
		{
			Why:   "the text is not among those that the server takes",
			Fires: "mode: always\n",
			Want:  `a.shape:1:7: error: mode cannot be "always" [bad-value]`,
			But:   "it is written so; an empty text is the default; a template fills in a text",
			Near:  "-- a.shape --\nmode: Always\n-- b.shape --\nmode: \"\"\n-- c.shape --\nmode: ${MODE}\n-- d.shape --\nmode: __MODE__\n",
		},
		{
			Why:   "the number lies between two ranges",
			Fires: "level: 5\n",
			Want:  `a.shape:1:8: error: level cannot be 5 [bad-value]`,
			But:   "the bounds belong to their ranges",
			Near:  "-- a.shape --\nlevel: -1\n-- b.shape --\nlevel: 0\n-- c.shape --\nlevel: 10\n-- d.shape --\nlevel: 20\n",
		},
		{
			Why:   "the server minds capital letters in keys",
			Fires: "Text: a\n",
			Want:  `a.shape:1:1: error: the top of the shape has no field "Text": it is written text [unknown-field]`,
			But:   "keys of a mapping are free",
			Near:  "text: a\nmap: {Text: a}\n",
		},
		{
			Why:   "the server drops a key that it does not know",
			Fires: "txet: a\ninner: {dept: 1}\n",
			Want: `a.shape:1:1: error: the top of the shape has no field "txet" [unknown-field]
a.shape:2:9: error: inner has no field "dept" [unknown-field]`,
			But:  "a template fills in a key",
			Near: "text: a\n${KEY}: a\ninner: {depth: 1}\n",
		},
		{
			Why:   "the key stands above its mapping, or below it",
			Fires: "bottom: true\ninner:\n  depth: 1\n  flag: true\n",
			Want: `a.shape:1:1: error: the top of the shape has no field "bottom": it is a field of inner.deeper [wrong-level]
a.shape:4:3: error: inner has no field "flag": it is a field of the top [wrong-level]`,
			But:  "both stand where they belong",
			Near: "flag: true\ninner:\n  depth: 1\n  deeper: {bottom: true}\n",
		},
		{
			Why:   "a value tells whether its key stands at the wrong level",
			Fires: "inner:\n  size: 1Gi\n  map: {a: b}\n  list: [1]\n  deeper: {depth: 1}\n---\ninner:\n  size: [1]\n  map: [a]\n  list: 5\n  flag: 3\n  deeper: {depth: a}\n",
			Want: `a.shape:2:3: error: inner has no field "size": it is a field of the top [wrong-level]
a.shape:3:3: error: inner has no field "map": it is a field of the top [wrong-level]
a.shape:4:3: error: inner has no field "list": it is a field of the top [wrong-level]
a.shape:5:12: error: inner.deeper has no field "depth": it is a field of inner [wrong-level]
a.shape:8:3: error: inner has no field "size" [unknown-field]
a.shape:9:3: error: inner has no field "map" [unknown-field]
a.shape:10:3: error: inner has no field "list" [unknown-field]
a.shape:11:3: error: inner has no field "flag" [unknown-field]
a.shape:12:12: error: inner.deeper has no field "depth" [unknown-field]`,
			But:  "at their level they fit",
			Near: "size: 1Gi\nmap: {a: b}\nlist: [1]\ninner: {depth: 1}\n",
		},
		{
			Why:   "a value at the wrong level is looked at as if it stood where it belongs",
			Fires: "inner:\n  level: 5\n",
			Want:  `a.shape:2:3: error: inner has no field "level": it is a field of the top [wrong-level]`,
			But:   "at its level it has a value that is allowed",
			Near:  "level: 10\n",
		},
		{
			Why:   "the server refuses an object without a required field",
			Fires: "-- a.yaml --\napiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: a}\nspec:\n  domain: {}\n",
			Want:  `a.yaml:5:11: warning: spec.domain has no devices, which is required [missing-field]`,
			But:   "an empty mapping is there; the server writes the status",
			Near:  "-- a.yaml --\napiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: a}\nspec:\n  domain: {devices: {}}\nstatus: {conditions: [{}]}\n",
		},
		{
			But:  "parameters of a template may bring the rest",
			Near: "-- a.yaml --\napiVersion: template.openshift.io/v1\nkind: Template\nmetadata: {name: a}\nobjects:\n- apiVersion: kubevirt.io/v1\n  kind: VirtualMachineInstance\n  metadata: {name: a}\n  spec:\n    domain: {}\n",
		},
	}}
}
