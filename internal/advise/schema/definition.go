package schema

import (
	"reflect"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

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
