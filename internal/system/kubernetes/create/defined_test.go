package create

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Kinds that a job defines are known before the cluster knows them, for each iteration, and so are objects that
// the server misses in a dry run.
func TestMadeBy(t *testing.T) {
	cluster := meta.NewDefaultRESTMapper(nil)
	cluster.Add(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, meta.RESTScopeRoot)
	cluster.Add(schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Known"}, meta.RESTScopeNamespace)
	const definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: 'a{{.Iteration}}s.g'}\nspec:\n  group: g\n  scope: Cluster\n  names: {kind: 'A{{.Iteration}}', plural: 'a{{.Iteration}}s', singular: 'a{{.Iteration}}'}\n  versions: [{name: v1, served: true, storage: true}]\n"
	var templates []*kubeburner.Template
	for _, text := range []string{definition, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: worker}\n"} {
		template, err := kubeburner.CompileTemplate("t", text, kubeburner.TemplateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		templates = append(templates, template)
	}
	v := prepared.Variant{Config: &kubeburner.Config{Jobs: []kubeburner.Job{{Name: "j", JobIterations: 3, Objects: []kubeburner.Object{{Replicas: 1}, {Replicas: 1}}}}}, Templates: [][]*kubeburner.Template{templates}}
	made, err := MadeBy(v, prepared.Identity{}, cluster)
	if err != nil {
		t.Fatal(err)
	}
	for kind, lacks := range map[string]bool{"A0": true, "A2": true, "A3": false, "Known": false} {
		gk := schema.GroupKind{Group: "g", Kind: kind}
		mapping, err := made.RESTMapping(gk, "v1")
		if made.lacks(gk) != lacks || (err == nil) != (kind != "A3") || lacks && (mapping.Scope.Name() != meta.RESTScopeNameRoot || mapping.Resource.Resource != "a"+kind[1:]+"s") {
			t.Errorf("%s: %v, %v", kind, mapping, err)
		}
	}
	for says, missing := range map[string]bool{
		`pods "p" is forbidden: error looking up service account ns/worker: serviceaccount "worker" not found`: true,
		`pods "p" is forbidden: error looking up service account ns/other: serviceaccount "other" not found`:   false,
		`pods "p" is forbidden: no PriorityClass with name worker was found`:                                   false,
	} {
		if made.missing(says) != missing {
			t.Errorf("%s: %v", says, !missing)
		}
	}
}
