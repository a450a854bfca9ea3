package lint

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	crdv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// newest is the newest minor version of Kubernetes that is known here.
const newest = 36

// lifecycle is what becomes of an API version of a kind.
type lifecycle struct {
	deprecated string // since when, such as "Kubernetes 1.21"; "" is unknown
	// removed is the release that no longer serves it, "" if none is known; at
	// is its minor version if it is one of Kubernetes.
	removed string
	at      int
	instead string // apiVersion
	kind    string // if it is another one
	note    string
}

// lifecycleOf looks an API version up: in the published types themselves,
// which carry it, and in a table of what they no longer hold and of what is no
// part of Kubernetes.
func lifecycleOf(apiVersion, kind string) (lifecycle, bool) {
	for _, key := range []string{apiVersion + " " + kind, apiVersion} {
		if l, ok := oldVersions()[key]; ok {
			return l, true
		}
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return lifecycle{}, false
	}
	var typed any
	gvk := gv.WithKind(kind)
	switch {
	case scheme.Scheme.Recognizes(gvk):
		typed = reflect.New(scheme.Scheme.KnownTypes(gv)[kind]).Interface()
	case apiVersion == "apiextensions.k8s.io/v1beta1" && kind == "CustomResourceDefinition":
		typed = &crdv1beta1.CustomResourceDefinition{}
	default:
		return lifecycle{}, false
	}
	var l lifecycle
	if d, ok := typed.(interface{ APILifecycleDeprecated() (major, minor int) }); ok {
		if major, minor := d.APILifecycleDeprecated(); minor <= newest {
			l.deprecated = fmt.Sprintf("Kubernetes %d.%d", major, minor)
		}
	}
	if r, ok := typed.(interface{ APILifecycleRemoved() (major, minor int) }); ok {
		_, l.at = r.APILifecycleRemoved()
		l.removed = fmt.Sprintf("Kubernetes 1.%d", l.at)
	}
	if r, ok := typed.(interface {
		APILifecycleReplacement() schema.GroupVersionKind
	}); ok {
		gvk := r.APILifecycleReplacement()
		l.instead, l.kind = gvk.GroupVersion().String(), gvk.Kind
	}
	return l, l.deprecated != "" || l.removed != "" && l.at <= newest
}

// oldVersions are API versions that the published types do not tell of, by
// apiVersion and kind, or by apiVersion alone.
func oldVersions() map[string]lifecycle {
	kubernetes := func(minor int, instead string) lifecycle {
		return lifecycle{removed: fmt.Sprintf("Kubernetes 1.%d", minor), at: minor, instead: instead}
	}
	psp := kubernetes(25, "")
	psp.note = "there is none: label namespaces for pod security admission"
	olm := func(instead string) lifecycle {
		return lifecycle{removed: "OpenShift 4.0", instead: instead}
	}
	return map[string]lifecycle{
		// https://kubernetes.io/docs/reference/using-api/deprecation-guide/
		"autoscaling/v2beta1":                  kubernetes(25, "autoscaling/v2"),
		"autoscaling/v2beta2":                  kubernetes(26, "autoscaling/v2"),
		"batch/v2alpha1":                       kubernetes(21, "batch/v1"),
		"settings.k8s.io/v1alpha1":             {removed: "Kubernetes 1.20", at: 20, note: "there is none: PodPreset never left alpha"},
		"policy/v1beta1 PodSecurityPolicy":     psp,
		"extensions/v1beta1 PodSecurityPolicy": psp,
		"apiregistration.k8s.io/v1beta1":       kubernetes(22, "apiregistration.k8s.io/v1"),
		// https://github.com/kubernetes-csi/external-snapshotter/releases
		"snapshot.storage.k8s.io/v1alpha1": {removed: "external-snapshotter 2.0", instead: "snapshot.storage.k8s.io/v1"},
		"snapshot.storage.k8s.io/v1beta1":  {deprecated: "external-snapshotter 4.1", removed: "external-snapshotter 6.0", instead: "snapshot.storage.k8s.io/v1"},
		// https://github.com/kubevirt/kubevirt/releases
		"kubevirt.io/v1alpha3":                              {deprecated: "KubeVirt 1.0", instead: "kubevirt.io/v1"},
		"instancetype.kubevirt.io/v1alpha1":                 {removed: "KubeVirt 1.8 at the latest", instead: "instancetype.kubevirt.io/v1beta1"},
		"instancetype.kubevirt.io/v1alpha2":                 {removed: "KubeVirt 1.8 at the latest", instead: "instancetype.kubevirt.io/v1beta1"},
		"kubevirt.io/v1 VirtualMachineInstancePreset":       {deprecated: "2022", instead: "instancetype.kubevirt.io/v1beta1", kind: "VirtualMachineInstancetype"},
		"kubevirt.io/v1alpha3 VirtualMachineInstancePreset": {deprecated: "2022", instead: "instancetype.kubevirt.io/v1beta1", kind: "VirtualMachineInstancetype"},
		// https://github.com/kubevirt/containerized-data-importer/pull/2407
		"cdi.kubevirt.io/v1alpha1":     {deprecated: "CDI 1.20", removed: "CDI 1.56 (OpenShift Virtualization 4.13)", instead: "cdi.kubevirt.io/v1beta1"},
		"cdi.kubevirt.io/v1alpha1 CDI": {deprecated: "CDI 1.20", instead: "cdi.kubevirt.io/v1beta1"},
		"hco.kubevirt.io/v1alpha1":     {removed: "2021", instead: "hco.kubevirt.io/v1beta1"},
		// OpenShift.
		"v1 DeploymentConfig":                   olm("apps.openshift.io/v1"),
		"v1 Route":                              olm("route.openshift.io/v1"),
		"v1 Template":                           olm("template.openshift.io/v1"),
		"v1 BuildConfig":                        olm("build.openshift.io/v1"),
		"v1 ImageStream":                        olm("image.openshift.io/v1"),
		"apps.openshift.io/v1 DeploymentConfig": {deprecated: "OpenShift 4.14", instead: "apps/v1", kind: "Deployment"},
		"operator.openshift.io/v1alpha1 ImageContentSourcePolicy": {deprecated: "OpenShift 4.13", instead: "config.openshift.io/v1", kind: "ImageDigestMirrorSet"},
	}
}

// sameForm are the kinds whose new version takes what the old one took, if all
// fields are known to it; for the others the guide names changes that a person
// must decide on.
func sameForm() []string {
	return strings.Fields(`CronJob PodDisruptionBudget RuntimeClass Lease PriorityClass IngressClass ClusterRole
		ClusterRoleBinding Role RoleBinding StorageClass CSIDriver CSINode VolumeAttachment CSIStorageCapacity APIService
		NetworkPolicy Deployment DaemonSet StatefulSet ReplicaSet HorizontalPodAutoscaler FlowSchema
		PriorityLevelConfiguration VirtualMachine VirtualMachineInstance VirtualMachineInstanceReplicaSet
		VirtualMachineInstanceMigration KubeVirt DataVolume StorageProfile DataSource DataImportCron CDI CDIConfig
		VolumeSnapshot VolumeSnapshotClass DeploymentConfig Route Template BuildConfig ImageStream`)
}

// checkVersion finds versions that are no longer served, or will not be.
func checkVersion(o *object) (out report) {
	version := o.get("apiVersion")
	if o.apiVersion == "" || hasHole(o.apiVersion) || hasHole(o.kind) {
		return
	}
	life, ok := lifecycleOf(o.apiVersion, o.kind)
	if !ok {
		return
	}
	rule, verb := "api-removed", "is no longer served"
	if life.removed == "" || life.at > cmp.Or(o.doc.text.options.Kubernetes, newest) {
		rule, verb = "api-deprecated", "will not be served"
		if life.deprecated == "" {
			return
		}
	}
	found := fmt.Sprintf("%s %s %s as of %s", o.apiVersion, o.kind, verb, life.removed)
	if life.removed == "" {
		found = fmt.Sprintf("%s %s is deprecated since %s", o.apiVersion, o.kind, life.deprecated)
	}
	mend := life.note
	var edits []edit
	switch {
	case life.instead != "" && life.kind != "" && life.kind != o.kind:
		mend = fmt.Sprintf("write a %s of %s", life.kind, life.instead)
	case life.instead != "":
		mend = "write apiVersion: " + life.instead
		if slices.Contains(sameForm(), o.kind) && fitsCleanly(o, life.instead) {
			edits = version.replace(life.instead)
		} else {
			mend += ", and look for fields that changed"
		}
	case mend == "":
		mend = "look for what took its place"
	}
	out.find(rule, version.at(), mend, found, edits...)
	return out
}

// fitsCleanly reports whether an object would fit another version of its kind.
func fitsCleanly(o *object, apiVersion string) bool {
	switch o.kind {
	case "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet":
		if o.get("spec", "selector").node == nil {
			return false
		}
	case "PodDisruptionBudget":
		// In policy/v1 an empty selector selects all pods, before none.
		if len(o.get("spec", "selector").entries()) == 0 {
			return false
		}
	}
	fresh, now := kindOf(apiVersion, o.kind), kindOf(o.apiVersion, o.kind)
	if fresh == nil {
		return now == nil
	}
	allowed := 0
	if now != nil {
		allowed = len(fits(o.value, "", now).findings)
	}
	return len(fits(o.value, "", fresh).findings) <= allowed
}
