// Package schema says what an object of a kind can hold. It reads the published types of KubeVirt and its
// neighbours by reflection. For objects of OpenShift and its operators it makes types of the same form from a
// table, objects.txt: JSON tags name the keys, "values" lists the allowed texts of a field, "range" the
// bounds of numbers.
package schema

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

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
