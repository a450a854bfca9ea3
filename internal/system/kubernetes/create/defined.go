package create

import (
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Made knows what a configuration makes itself that others of its objects need: kinds and named objects.
type Made struct {
	meta.RESTMapper
	kinds []schema.GroupKind // defined by the configuration, unknown to the cluster
	names map[string]bool    // kind and name of the first iteration's objects
}

// MadeBy returns a mapper that knows the cluster's kinds, and those that the configuration's jobs define.
func MadeBy(v prepared.Variant, ids prepared.Identity, mapper meta.RESTMapper) (*Made, error) {
	own := meta.NewDefaultRESTMapper(nil)
	d := &Made{RESTMapper: meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{mapper, own}}, names: make(map[string]bool)}
	for j := range v.Config.Jobs {
		job := &v.Config.Jobs[j]
		for o := range job.Objects {
			if !job.Creates() || job.Objects[o].Replicas < 1 {
				continue
			}
			m := &Maker{job: job, jobIndex: j, index: o, template: v.Templates[j][o], ids: ids}
			n := 0
			for s := range job.Slots(0, job.JobIterations) {
				if s.Object != o {
					continue
				}
				docs, err := m.template.Render(m.vars(s))
				if err != nil {
					return nil, err
				}
				defines := false
				for _, doc := range docs {
					defines = d.add(doc, own, mapper) || defines
				}
				if n++; !defines || n > mostNames {
					break // one iteration shows the names
				}
			}
		}
	}
	return d, nil
}

// add notes a document, and reports whether it defines a kind.
func (d *Made) add(doc map[string]any, own *meta.DefaultRESTMapper, mapper meta.RESTMapper) bool {
	kind, _ := doc["kind"].(string)
	if metadata, ok := doc["metadata"].(map[string]any); ok {
		if name, ok := metadata["name"].(string); ok {
			d.names[kind+" "+name] = true
		}
	}
	var definition apiextensions.CustomResourceDefinition
	if kind != "CustomResourceDefinition" || runtime.DefaultUnstructuredConverter.FromUnstructured(doc, &definition) != nil {
		return false
	}
	spec := &definition.Spec
	gk := schema.GroupKind{Group: spec.Group, Kind: spec.Names.Kind}
	scope := meta.RESTScopeNamespace
	if spec.Scope == apiextensions.ClusterScoped {
		scope = meta.RESTScopeRoot
	}
	for _, version := range spec.Versions {
		gv := schema.GroupVersion{Group: spec.Group, Version: version.Name}
		own.AddSpecific(gv.WithKind(gk.Kind), gv.WithResource(spec.Names.Plural), gv.WithResource(spec.Names.Singular), scope)
	}
	if _, err := mapper.RESTMapping(gk); err != nil {
		d.kinds = append(d.kinds, gk)
	}
	return true
}

// lacks reports whether the cluster cannot know a kind before the load has begun.
func (d *Made) lacks(gk schema.GroupKind) bool { return slices.Contains(d.kinds, gk) }

// missing reports whether the server has missed an object that the configuration makes, as it says.
func (d *Made) missing(says string) bool {
	for name := range d.names {
		kind, name, _ := strings.Cut(name, " ")
		if says := strings.ToLower(says); slices.Contains([]string{"ServiceAccount", "PriorityClass", "RuntimeClass"}, kind) && strings.Contains(says, strings.ToLower(kind)) &&
			(strings.Contains(says, `"`+name+`" not found`) || strings.Contains(says, "name "+name+" was found")) {
			return true
		}
	}
	return false
}
