package kubeburner

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// Images of containers and of container disks are found anywhere in a document.
func TestImagesOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"spec: {initContainers: [{image: a}], containers: [{image: b, name: image}, {image: c}]}":                   {"a", "b", "c"},
		"spec: {template: {spec: {volumes: [{containerDisk: {image: d}}, {image: {reference: not-a-container}}]}}}": {"d"},
		"spec: {template: {spec: {containers: [{name: x}]}}}":                                                       nil,
	} {
		var doc map[string]any
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		got := ImagesOf(doc)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", text, got)
		}
	}
}
