// Package schema says what an object of a kind can hold. It reads the published types of KubeVirt and its
// neighbours by reflection. For objects of OpenShift and its operators it makes types of the same form from a
// table, objects.txt: JSON tags name the keys, "values" lists the allowed texts of a field, "range" the
// bounds of numbers.
package schema

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	core "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	kubelet "k8s.io/kubelet/config/v1beta1"
	clone "kubevirt.io/api/clone/v1beta1"
	kubevirt "kubevirt.io/api/core/v1"
	instancetype "kubevirt.io/api/instancetype/v1beta1"
	migrations "kubevirt.io/api/migrations/v1alpha1"
	pool "kubevirt.io/api/pool/v1beta1"
	snapshot "kubevirt.io/api/snapshot/v1beta1"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// published lists the published types of each group, besides Kubernetes' own (see Builtin).
func published() map[string][]any {
	return map[string][]any{
		"kubevirt.io": {
			kubevirt.VirtualMachine{}, kubevirt.VirtualMachineInstance{}, kubevirt.VirtualMachineInstanceReplicaSet{},
			kubevirt.VirtualMachineInstanceMigration{}, kubevirt.VirtualMachineInstancePreset{}, kubevirt.KubeVirt{},
		},
		"cdi.kubevirt.io": {cdi.DataVolume{}, cdi.DataSource{}, cdi.DataImportCron{}, cdi.StorageProfile{}, cdi.CDI{}},
		"instancetype.kubevirt.io": {
			instancetype.VirtualMachineInstancetype{}, instancetype.VirtualMachineClusterInstancetype{},
			instancetype.VirtualMachinePreference{}, instancetype.VirtualMachineClusterPreference{},
		},
		"migrations.kubevirt.io": {migrations.MigrationPolicy{}},
		"pool.kubevirt.io":       {pool.VirtualMachinePool{}},
		"clone.kubevirt.io":      {clone.VirtualMachineClone{}},
		"snapshot.kubevirt.io":   {snapshot.VirtualMachineSnapshot{}, snapshot.VirtualMachineRestore{}},
		"kubelet.config.k8s.io":  {kubelet.KubeletConfiguration{}},
	}
}

// Field is a key that an object can hold.
type Field struct {
	Name     string
	Type     reflect.Type
	Values   []string // the allowed texts, if not any
	Bounds   string   // of a number, in pairs; "" for none
	Required bool     // an object without it is refused
}

// Fields lists the keys of a struct, in its order.
type Fields []Field

// Get returns the field with a name.
func (f Fields) Get(name string) (field Field, ok bool) {
	if i := f.index(name); i >= 0 {
		return f[i], true
	}
	return field, false
}

func (f Fields) index(name string) int {
	return slices.IndexFunc(f, func(one Field) bool { return one.Name == name })
}

// Names returns the names of all fields.
func (f Fields) Names() []string {
	names := make([]string, len(f))
	for i, field := range f {
		names[i] = field.Name
	}
	return names
}

func (f Fields) with(one Field) Fields {
	if i := f.index(one.Name); i >= 0 {
		f[i] = one
		return f
	}
	return append(f, one)
}

// Schemas holds all known types. It caches their fields, so that only one goroutine may use it.
type Schemas struct {
	fields map[reflect.Type]Fields
	kinds  map[string]map[string]reflect.Type // by group, or group and version, and name
	values map[string][]string                // of PACKAGE.TYPE and PACKAGE.STRUCT.KEY
}

// New reads the table.
func New() *Schemas {
	s := &Schemas{fields: make(map[reflect.Type]Fields), kinds: make(map[string]map[string]reflect.Type), values: make(map[string][]string)}
	for group, kinds := range published() {
		for _, kind := range kinds {
			s.add(group, reflect.TypeOf(kind).Name(), reflect.TypeOf(kind))
		}
	}
	s.readTable()
	return s
}

func (s *Schemas) add(group, kind string, t reflect.Type) {
	if s.kinds[group] == nil {
		s.kinds[group] = make(map[string]reflect.Type)
	}
	s.kinds[group][kind] = t
}

// Kind returns the type of a kind's objects, of any version if that makes no difference, or nil.
func (s *Schemas) Kind(apiVersion, kind string) reflect.Type {
	if t := s.kinds[apiVersion][kind]; t != nil {
		return t
	}
	group, _, _ := strings.Cut(apiVersion, "/")
	return s.kinds[group][kind]
}

// Builtin returns the type of one of Kubernetes' own kinds, or nil. Its fields are known; which of them an
// object must have is left to the API server.
func (s *Schemas) Builtin(apiVersion, kind string) reflect.Type {
	return scheme.Scheme.AllKnownTypes()[schema.FromAPIVersionAndKind(apiVersion, kind)]
}

// Spec is the specification of a kind.
type Spec struct {
	Kind string
	Type reflect.Type
}

// Specs returns the specifications of all kinds with a name in lower case, by group.
func (s *Schemas) Specs(name string) (list []Spec) {
	for _, group := range slices.Sorted(maps.Keys(s.kinds)) {
		for kind, t := range s.kinds[group] {
			if f, ok := t.FieldByName("Spec"); ok && strings.ToLower(kind) == name {
				list = append(list, Spec{kind, f.Type})
			}
		}
	}
	return list
}

// Values returns the allowed texts of a named type; nil is any.
func (s *Schemas) Values(t reflect.Type) []string { return s.values[t.PkgPath()+"."+t.Name()] }

// Of lists the keys of a struct in the order of its fields.
func (s *Schemas) Of(t reflect.Type) (set Fields) {
	if known, ok := s.fields[t]; ok {
		return known
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case inner.Kind() == reflect.Struct && name == "" && (f.Anonymous || strings.Contains(rest, "inline")):
			for _, field := range s.Of(inner) {
				set = set.with(field)
			}
			continue
		case name == "":
			name = f.Name
		}
		values := s.values[t.PkgPath()+"."+t.Name()+"."+name]
		if tag := f.Tag.Get("values"); tag != "" {
			values = strings.Fields(tag)
		}
		set = set.with(Field{name, f.Type, values, f.Tag.Get("range"), requires(t, name, rest)})
	}
	s.fields[t] = set
	return set
}

// requires reports whether a published type requires a key: not if it omits empty values.
func requires(t reflect.Type, key, options string) bool {
	switch {
	case strings.Contains(options, "omit") || slices.Contains([]string{"status", "apiGroup", "mediatedDeviceTypes"}, key):
		return false
	case t == reflect.TypeFor[kubevirt.Machine](), t == reflect.TypeFor[cdi.TLSSecurityProfile]():
		return false
	}
	return t == reflect.TypeFor[metav1.LabelSelectorRequirement]() || strings.HasPrefix(t.PkgPath(), "kubevirt.io/") || strings.HasPrefix(t.PkgPath(), "k8s.io/api/")
}

// Leaf names in words the value of a type that is not a plain struct, list or map.
type Leaf string

// The kinds of leaves.
const (
	NoLeaf      Leaf = ""
	Anything    Leaf = "anything"
	Quantity    Leaf = "a quantity such as 500m or 4Gi"
	IntOrString Leaf = "a whole number or a text"
	TimeStamp   Leaf = "a time"
	Duration    Leaf = "a duration such as 10s"
	Bytes64     Leaf = "text in base64"
)

// LeafOf returns how a type is read.
func LeafOf(t reflect.Type) Leaf {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return Quantity
	case reflect.TypeFor[intstr.IntOrString]():
		return IntOrString
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return TimeStamp
	case reflect.TypeFor[metav1.Duration]():
		return Duration
	case reflect.TypeFor[[]byte]():
		return Bytes64
	case reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.FieldsV1](), reflect.TypeFor[json.RawMessage](),
		reflect.TypeFor[apiextensions.JSON](), reflect.TypeFor[apiextensions.JSONSchemaProps](), reflect.TypeFor[runtime.Unknown]():
		return Anything
	}
	if t.Kind() == reflect.Interface {
		return Anything
	}
	if t.Kind() == reflect.Struct && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		// It decodes itself in an unknown way. KubeVirt's types only set defaults.
		if f, ok := t.FieldByName("Quantity"); ok && f.Anonymous {
			return Quantity
		}
		if !strings.HasPrefix(t.PkgPath(), "kubevirt.io/api/") {
			return Anything
		}
	}
	return NoLeaf
}

// Definition returns the schema of a kind as a resource definition has it, or nil for an unknown kind.
func Definition(apiVersion, kind string) *apiextensions.JSONSchemaProps {
	s := New()
	t := s.Kind(apiVersion, kind)
	if t == nil {
		return nil
	}
	d := s.definition(t)
	d.Properties["metadata"] = apiextensions.JSONSchemaProps{Type: "object"} // the server knows its fields
	return &d
}

func (s *Schemas) definition(t reflect.Type) (d apiextensions.JSONSchemaProps) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch LeafOf(t) {
	case NoLeaf:
	case Anything:
		return apiextensions.JSONSchemaProps{XPreserveUnknownFields: new(true)}
	case Quantity, IntOrString:
		return apiextensions.JSONSchemaProps{XIntOrString: true}
	default:
		return apiextensions.JSONSchemaProps{Type: "string"}
	}
	switch t.Kind() {
	case reflect.Struct:
		d = apiextensions.JSONSchemaProps{Type: "object", Properties: make(map[string]apiextensions.JSONSchemaProps)}
		for _, f := range s.Of(t) {
			one := s.definition(f.Type)
			one.Enum = append(one.Enum, quoted(f.Values)...)
			if pairs := strings.Fields(f.Bounds); len(pairs) > 0 {
				one.Minimum, one.Maximum = bound(pairs[0]), bound(pairs[len(pairs)-1])
			}
			d.Properties[f.Name] = one
			if f.Required {
				d.Required = append(d.Required, f.Name)
			}
		}
	case reflect.Map:
		elem := s.definition(t.Elem())
		d = apiextensions.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensions.JSONSchemaPropsOrBool{Allows: true, Schema: &elem}}
	case reflect.Slice, reflect.Array:
		elem := s.definition(t.Elem())
		d = apiextensions.JSONSchemaProps{Type: "array", Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &elem}}
	case reflect.String:
		d = apiextensions.JSONSchemaProps{Type: "string", Enum: quoted(s.Values(t))}
	case reflect.Bool:
		d.Type = "boolean"
	case reflect.Float32, reflect.Float64:
		d.Type = "number"
	default:
		d.Type = "integer"
		if reflect.Zero(t).CanUint() {
			d.Minimum = new(0.0)
		}
	}
	return d
}

func quoted(values []string) (list []apiextensions.JSON) {
	for _, v := range values {
		list = append(list, apiextensions.JSON{Raw: strconv.AppendQuote(nil, v)})
	}
	return list
}

func bound(text string) *float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil
	}
	return &n
}

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
