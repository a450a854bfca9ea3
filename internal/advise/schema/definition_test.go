package schema

import (
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// The definition of a kind has the fields, values and bounds that documents are
// checked against.
func TestDefinition(t *testing.T) {
	for _, tt := range []struct {
		why, path string
		holds     func(d apiextensions.JSONSchemaProps) bool
	}{
		{"the server's own part is left to it", "metadata", func(d apiextensions.JSONSchemaProps) bool { return d.Type == "object" && d.Properties == nil }},
		{"a status can be anything", "status", func(d apiextensions.JSONSchemaProps) bool { return *d.XPreserveUnknownFields }},
		{"a number without a sign", "spec.liveMigrationConfig.parallelMigrationsPerCluster", func(d apiextensions.JSONSchemaProps) bool { return d.Type == "integer" && *d.Minimum == 0 }},
		{"values of our own table", "spec.tuningPolicy", func(d apiextensions.JSONSchemaProps) bool {
			return d.Type == "string" && len(d.Enum) == 2 && string(d.Enum[1].Raw) == `"highBurst"`
		}},
		{"values of a published type", "spec.evictionStrategy", func(d apiextensions.JSONSchemaProps) bool { return len(d.Enum) == 4 }},
		{"bounds", "spec.higherWorkloadDensity.memoryOvercommitPercentage", func(d apiextensions.JSONSchemaProps) bool { return *d.Minimum == 10 }},
		{"a quantity", "spec.resourceRequirements.storageWorkloads.limits.x", func(d apiextensions.JSONSchemaProps) bool { return d.XIntOrString }},
		{"a list", "spec.obsoleteCPUs.cpuModels.x", func(d apiextensions.JSONSchemaProps) bool { return d.Type == "string" }},
		{"a duration", "spec.certConfig.ca.duration", func(d apiextensions.JSONSchemaProps) bool { return d.Type == "string" }},
	} {
		d := *Definition("hco.kubevirt.io/v1beta1", "HyperConverged")
		for _, key := range strings.Split(tt.path, ".") {
			switch {
			case d.Items != nil:
				d = *d.Items.Schema
			case d.AdditionalProperties != nil:
				d = *d.AdditionalProperties.Schema
			default:
				d = d.Properties[key]
			}
		}
		if !tt.holds(d) {
			t.Errorf("%s: %s is %+v", tt.why, tt.path, d)
		}
	}
	if Definition("apps/v1", "Deployment") != nil {
		t.Error("a kind that is unknown has a definition")
	}
}
