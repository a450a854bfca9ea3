package schema

import (
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubelet "k8s.io/kubelet/config/v1beta1"
	kubevirt "kubevirt.io/api/core/v1"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

//go:embed objects.txt
var objects string

// block is a line of the table with the deeper lines below it.
type block struct {
	words []string
	inner []*block
}

func blocksOf(text string) []*block {
	open := []*block{{}}
	for line := range strings.Lines(text) {
		b := &block{words: strings.Fields(line)}
		if len(b.words) == 0 || b.words[0] == "#" {
			continue
		}
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		open[depth].inner = append(open[depth].inner, b)
		open = append(open[:depth+1], b)
	}
	return open[0].inner
}

func (s *Schemas) readTable() {
	t := table{make(map[string]*block), make(map[string]reflect.Type)}
	for name, value := range map[string]any{
		"text": "", "bool": false, "number": 0.0, "int": 0, "int32": int32(0), "int64": int64(0), "uint": uint(0), "uint32": uint32(0), "uint64": uint64(0),
	} {
		t.types[name] = reflect.TypeOf(value)
	}
	t.types["any"] = reflect.TypeFor[any]()
	for _, value := range []any{
		metav1.ObjectMeta{}, metav1.LabelSelector{}, metav1.Duration{}, resource.Quantity{}, intstr.IntOrString{}, kubelet.KubeletConfiguration{},
		core.Affinity{}, core.LocalObjectReference{}, core.ResourceRequirements{}, core.Toleration{},
		kubevirt.ChangedBlockTrackingSelectors{}, kubevirt.CommonInstancetypesDeployment{}, kubevirt.EvictionStrategy(""), kubevirt.HypervisorConfiguration{},
		kubevirt.InstancetypeConfiguration{}, kubevirt.InterfaceBindingPlugin{}, kubevirt.KSMConfiguration{}, kubevirt.LiveUpdateConfiguration{},
		kubevirt.LogVerbosity{}, kubevirt.WorkloadUpdateMethod(""), cdi.DataImportCronSpec{}, cdi.FilesystemOverhead{},
	} {
		t.types[reflect.TypeOf(value).Name()] = reflect.TypeOf(value)
	}
	all := blocksOf(objects)
	for _, b := range all {
		switch name := b.words[0]; {
		case len(b.words) == 2: // a kind
		case strings.Contains(name, "/"):
			for _, of := range b.inner {
				s.values[name+"."+of.words[0]] = of.words[1:]
			}
		default:
			t.blocks[name] = b
		}
	}
	for _, b := range all {
		if len(b.words) == 2 {
			s.add(b.words[0], b.words[1], reflect.StructOf(append(t.fields(t.blocks["object"]), t.fields(b)...)))
		}
	}
}

type table struct {
	blocks map[string]*block
	types  map[string]reflect.Type // that need no block
}

func (t table) fields(b *block) (list []reflect.StructField) {
	for _, f := range b.inner {
		name, rest := f.words[0], append(f.words[1:], "")
		if name == "+" {
			list = append(list, t.fields(t.blocks[rest[0]])...)
			continue
		}
		tag := fmt.Sprintf("json:%q", name)
		if len(rest) > 2 {
			said := map[string]string{"=": "values", "in": "range"}[rest[1]]
			tag += fmt.Sprintf(" %s:%q", said, strings.Join(f.words[3:], " "))
		}
		list = append(list, reflect.StructField{Name: strings.ToUpper(name[:1]) + name[1:], Type: t.typeOf(rest[0], f), Tag: reflect.StructTag(tag)})
	}
	return list
}

// typeOf returns the type for a word, or else one made of the lines below.
func (t table) typeOf(word string, b *block) reflect.Type {
	if item, ok := strings.CutPrefix(word, "[]"); ok {
		return reflect.SliceOf(t.typeOf(item, b))
	}
	if value, ok := strings.CutPrefix(word, "map:"); ok {
		return reflect.MapOf(reflect.TypeFor[string](), t.typeOf(value, b))
	}
	if known := t.types[word]; known != nil {
		return known
	}
	if word != "" {
		if b = t.blocks[word]; b == nil {
			panic("schema: objects.txt has no type " + word) // any test finds this
		}
	}
	return reflect.StructOf(t.fields(b))
}

//go:embed words.txt
var words string

// Words returns the names that a program knows: of "cloud-init", "ceph-pool" or "ceph-exporter".
func Words(of string) (list []string) {
	for _, line := range wordsOf(of) {
		list = append(list, line.words...)
	}
	return list
}

// Hints returns advice about words: removed keys for "ignition-2", invalid FIELD=VALUE pairs for "values".
func Hints(of string) map[string]string {
	hints := make(map[string]string)
	for _, line := range wordsOf(of) {
		hints[line.words[0]] = strings.Join(line.words[1:], " ")
	}
	return hints
}

func wordsOf(name string) []*block {
	all := blocksOf(words)
	return all[slices.IndexFunc(all, func(b *block) bool { return b.words[0] == name })].inner
}

//go:embed sysctl-keys.txt
var sysctlKeys string

// Range says what the kernel accepts for a key.
type Range struct {
	Numbers   int // how many; 0 is unknown
	Low, High int64
}

// Kernel holds the known settings of the kernel.
type Kernel struct {
	Known    map[string]Range    // with * for the names of interfaces
	Families map[string][]string // keys by what they begin with, such as net
	Roots    []string            // the keys of Families
	Removed  map[string]string   // keys that are gone, with what to do instead
}

// NewKernel reads the table.
func NewKernel() *Kernel {
	f := &Kernel{Known: make(map[string]Range), Families: make(map[string][]string), Removed: make(map[string]string)}
	for line := range strings.Lines(sysctlKeys) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if key, instead, ok := strings.Cut(line, ": "); ok {
			f.Removed[key] = instead
			continue
		}
		var r Range
		line, bounds, _ := strings.Cut(line, " ")
		if bounds != "" {
			_, _ = fmt.Sscan(bounds, &r.Numbers, &r.Low, &r.High) // a test reads this file of ours
		}
		f.Known[line] = r
		family, _, _ := strings.Cut(line, ".")
		if f.Families[family] == nil {
			f.Roots = append(f.Roots, family)
		}
		f.Families[family] = append(f.Families[family], line)
	}
	return f
}
