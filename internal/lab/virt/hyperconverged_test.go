package virt

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubevirt "kubevirt.io/api/core/v1"

	kinds "plimsoll.dev/plimsoll/internal/advise/schema"
)

// What a HyperConverged says stands in the KubeVirt, and nothing else of the
// same; what it knows nothing of stays.
func TestOverwrite(t *testing.T) {
	const usual = `"certificateRotateStrategy":{},`
	for _, tt := range []struct{ why, before, hyper, after, refused string }{
		{"the limits of migrations are the HyperConverged's", `{"configuration":{"migrations":{"parallelMigrationsPerCluster":9}}}`,
			`{"spec":{"liveMigrationConfig":{"parallelMigrationsPerCluster":20,"bandwidthPerMigration":"64Mi"}}}`,
			`{` + usual + `"configuration":{"migrations":{"parallelMigrationsPerCluster":20,"bandwidthPerMigration":"64Mi"}},"customizeComponents":{},"workloadUpdateStrategy":{}}`, ""},
		{"what only the KubeVirt said is taken out, what is not the HyperConverged's stays",
			`{"infra":{"replicas":1},"imageTag":"v1","configuration":{"evictionStrategy":"External","controllerConfiguration":{"restClient":{}}}}`, `{"spec":{}}`,
			`{` + usual + `"configuration":{},"customizeComponents":{},"imageTag":"v1","workloadUpdateStrategy":{}}`, ""},
		{"where its parts stand is passed on", `{"infra":{"replicas":1}}`, `{"spec":{"infra":{"nodePlacement":{"nodeSelector":{"a":"b"}}},"evictionStrategy":"None"}}`,
			`{` + usual + `"configuration":{"evictionStrategy":"None"},"customizeComponents":{},"infra":{"nodePlacement":{"nodeSelector":{"a":"b"}}},"workloadUpdateStrategy":{}}`, ""},
		{"an annotation that is no JSON changes nothing", `{}`, `{"spec":{"tuningPolicy":"annotation"},"metadata":{"annotations":{"hco.kubevirt.io/tuningPolicy":"fast"}}}`, "", "is refused"},
	} {
		var spec kubevirt.KubeVirtSpec
		var hyper unstructured.Unstructured
		if err := json.Unmarshal([]byte(tt.before), &spec); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(tt.hyper), &hyper.Object); err != nil {
			t.Fatal(err)
		}
		err := overwrite(&spec, &hyper)
		if got, _ := json.Marshal(spec); (err != nil) != (tt.refused != "") || err == nil && !sameJSON(t, string(got), tt.after) {
			t.Errorf("%s: got %s, %v", tt.why, got, err)
		}
	}
	for policy, want := range map[string]float32{"highBurst": 200, "annotation": 7, "": 0} {
		hyper := newHyperConverged()
		hyper.SetAnnotations(map[string]string{tuningAnnotation: `{"qps":7,"burst":9}`})
		if err := unstructured.SetNestedField(hyper.Object, policy, "spec", "tuningPolicy"); err != nil {
			t.Fatal(err)
		}
		var spec kubevirt.KubeVirtSpec
		if err := overwrite(&spec, hyper); err != nil {
			t.Fatal(err)
		}
		got := float32(0)
		if c := spec.Configuration.ControllerConfiguration; c != nil {
			got = c.RestClient.RateLimiter.TokenBucketRateLimiter.QPS
		}
		if got != want || *spec.Configuration.MigrationConfiguration.ParallelMigrationsPerCluster != 5 {
			t.Errorf("policy %q: %v requests a second, want %v", policy, got, want)
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var of [2]any
	for i, text := range []string{a, b} {
		if err := json.Unmarshal([]byte(text), &of[i]); err != nil {
			t.Fatal(err)
		}
	}
	x, _ := json.Marshal(of[0])
	y, _ := json.Marshal(of[1])
	return string(x) == string(y)
}

// What is taken for required of the published types is what the definitions
// require.
func TestWhatIsRequired(t *testing.T) {
	all, err := Definitions()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, crd := range all {
		if !strings.HasSuffix(crd.Spec.Group, "kubevirt.io") {
			continue // these stand in a table
		}
		for _, v := range crd.Spec.Versions {
			if known := kinds.Definition(crd.Spec.Group+"/"+v.Name, crd.Spec.Names.Kind); known != nil {
				compared += sameRequired(t, crd.Spec.Names.Kind, v.Schema.OpenAPIV3Schema, known)
			}
		}
	}
	if compared < 400 {
		t.Errorf("only %d fields are required", compared)
	}
}

// sameRequired compares what two schemas require, and counts it.
func sameRequired(t *testing.T, path string, want, got *apiextensions.JSONSchemaProps) (n int) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(want.Required, got.Required)))) {
		n++
		if slices.Contains(want.Required, name) != slices.Contains(got.Required, name) {
			t.Errorf("%s.%s: required is %v by the definition", path, name, slices.Contains(want.Required, name))
		}
	}
	for name, in := range want.Properties {
		if of, ok := got.Properties[name]; ok && name != "status" {
			n += sameRequired(t, path+"."+name, &in, &of)
		}
	}
	if want.Items != nil && got.Items != nil {
		n += sameRequired(t, path+"[]", want.Items.Schema, got.Items.Schema)
	}
	if want.AdditionalProperties != nil && got.AdditionalProperties != nil && want.AdditionalProperties.Schema != nil {
		n += sameRequired(t, path+"{}", want.AdditionalProperties.Schema, got.AdditionalProperties.Schema)
	}
	return n
}
