package virt

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubevirt "kubevirt.io/api/core/v1"

	kinds "plimsoll.dev/plimsoll/internal/advise/schema"
)

const hyperConverged = "HyperConverged"

func hyperResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "hco.kubevirt.io", Version: "v1beta1", Resource: "hyperconvergeds"}
}

// hyperDefinition defines HyperConverged. No module with its types can be had; a table lists its fields.
func hyperDefinition() apiextensions.CustomResourceDefinition {
	r := hyperResource()
	return apiextensions.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: r.GroupResource().String()}, Spec: apiextensions.CustomResourceDefinitionSpec{
		Group: r.Group, Scope: apiextensions.NamespaceScoped,
		Names: apiextensions.CustomResourceDefinitionNames{Plural: r.Resource, Singular: "hyperconverged", Kind: hyperConverged, ListKind: hyperConverged + "List", ShortNames: []string{"hco", "hcos"}},
		Versions: []apiextensions.CustomResourceDefinitionVersion{{Name: r.Version, Served: true, Storage: true,
			Schema:       &apiextensions.CustomResourceValidation{OpenAPIV3Schema: kinds.Definition(r.GroupVersion().String(), hyperConverged)},
			Subresources: &apiextensions.CustomResourceSubresources{Status: &apiextensions.CustomResourceSubresourceStatus{}}}},
	}}
}

// newHyperConverged returns a HyperConverged as its operator leaves it without a user's settings.
func newHyperConverged() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": hyperResource().GroupVersion().String(), "kind": hyperConverged,
		"metadata": map[string]any{"namespace": Namespace, "name": "kubevirt-hyperconverged"},
		"spec": map[string]any{"evictionStrategy": string(kubevirt.EvictionStrategyLiveMigrate), "liveMigrationConfig": map[string]any{
			"parallelMigrationsPerCluster": int64(5), "parallelOutboundMigrationsPerNode": int64(2), "completionTimeoutPerGiB": int64(150), "progressTimeout": int64(150),
			"allowAutoConverge": false, "allowPostCopy": false}}}}
}

// syncKubeVirt undoes settings of a KubeVirt that its HyperConverged does not have.
func (w *world) syncKubeVirt(ctx context.Context, key string) (time.Duration, error) {
	kv, ok := w.kubevirts.get(key)
	hyper := w.hyper.all()
	if !ok || len(hyper) == 0 || kv.DeletionTimestamp != nil {
		return 0, nil
	}
	next := kv.DeepCopy()
	if err := overwrite(&next.Spec, hyper[0]); err != nil {
		return 0, err
	}
	if equality.Semantic.DeepEqual(next.Spec, kv.Spec) {
		return 0, nil
	}
	_, err := w.free.kubevirts(kv.Namespace).Update(ctx, next, metav1.UpdateOptions{})
	return 0, err
}

// tuningAnnotation holds the limits of clients for the policy "annotation".
const tuningAnnotation = "hco.kubevirt.io/tuningPolicy"

// overwrite replaces all settings of a KubeVirt that a HyperConverged controls, also by empty ones.
func overwrite(spec *kubevirt.KubeVirtSpec, hyper *unstructured.Unstructured) error {
	var said struct {
		Spec struct {
			LiveMigrationConfig *kubevirt.MigrationConfiguration `json:"liveMigrationConfig"`
			EvictionStrategy    *kubevirt.EvictionStrategy       `json:"evictionStrategy"`
			TuningPolicy        string                           `json:"tuningPolicy"`
			Infra               struct {
				NodePlacement *kubevirt.NodePlacement `json:"nodePlacement"`
			} `json:"infra"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(hyper.Object, &said); err != nil {
		return fmt.Errorf("read the HyperConverged: %w", err)
	}
	var rate struct {
		QPS   float32 `json:"qps"`
		Burst int     `json:"burst"`
	}
	switch said.Spec.TuningPolicy {
	case "highBurst":
		rate.QPS, rate.Burst = 200, 400
	case "annotation":
		if err := json.Unmarshal([]byte(hyper.GetAnnotations()[tuningAnnotation]), &rate); err != nil {
			return fmt.Errorf("read the annotation %s of the HyperConverged: %w", tuningAnnotation, err)
		}
	}
	var limits *kubevirt.ReloadableComponentConfiguration
	if rate.QPS > 0 {
		limits = &kubevirt.ReloadableComponentConfiguration{RestClient: &kubevirt.RESTClientConfiguration{
			RateLimiter: &kubevirt.RateLimiter{TokenBucketRateLimiter: &kubevirt.TokenBucketRateLimiter{QPS: rate.QPS, Burst: rate.Burst}}}}
	}
	c := &spec.Configuration
	c.MigrationConfiguration, c.EvictionStrategy = said.Spec.LiveMigrationConfig, said.Spec.EvictionStrategy
	c.ControllerConfiguration, c.APIConfiguration, c.HandlerConfiguration, c.WebhookConfiguration = limits, limits, limits, limits
	spec.Infra = nil
	if said.Spec.Infra.NodePlacement != nil {
		spec.Infra = &kubevirt.ComponentConfig{NodePlacement: said.Spec.Infra.NodePlacement}
	}
	return nil
}
