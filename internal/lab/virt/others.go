package virt

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	kubevirt "kubevirt.io/api/core/v1"

	kinds "plimsoll.dev/plimsoll/internal/advise/schema"
)

func snapshotResource() schema.GroupVersionResource {
	return resourceOf("snapshot.kubevirt.io", "v1beta1", "virtualmachinesnapshots")
}

func restoreResource() schema.GroupVersionResource {
	return resourceOf("snapshot.kubevirt.io", "v1beta1", "virtualmachinerestores")
}

func versionResource() schema.GroupVersionResource {
	return resourceOf("config.openshift.io", "v1", "clusterversions")
}

func operatorResource() schema.GroupVersionResource {
	return resourceOf("config.openshift.io", "v1", "clusteroperators")
}

func (w *world) runOthers(ctx context.Context) error {
	period := min(max(w.scaled(time.Second), 50*time.Millisecond), time.Second)
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for what, sync := range map[*store[*unstructured.Unstructured]]func(context.Context, *unstructured.Unstructured) error{
			&w.snapshots: w.syncSnapshot, &w.restores: w.syncRestore, &w.versions: w.syncVersion,
		} {
			for _, u := range what.all() {
				if err := sync(ctx, u); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
					w.Log.Warn("will try again", "kind", u.GetKind(), "object", key(u), "error", err)
				}
			}
		}
	}, period)
	return nil
}

func (w *world) write(ctx context.Context, resource schema.GroupVersionResource, u *unstructured.Unstructured, status map[string]any) error {
	next := u.DeepCopy()
	next.Object["status"] = status
	if _, err := w.free.dynamic.Resource(resource).Namespace(u.GetNamespace()).UpdateStatus(ctx, next, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("report on %s: %w", u.GetKind(), err)
	}
	return nil
}

func stamp() string { return time.Now().UTC().Format(time.RFC3339) }

// syncSnapshot makes a snapshot of a machine.
func (w *world) syncSnapshot(ctx context.Context, u *unstructured.Unstructured) error {
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	name, _, _ := unstructured.NestedString(u.Object, "spec", "source", "name")
	switch {
	case phase == "Succeeded" || u.GetDeletionTimestamp() != nil:
		return nil
	case phase == "":
		w.since(u.GetUID(), "snapshot")
		return w.write(ctx, snapshotResource(), u, map[string]any{"phase": "InProgress", "readyToUse": false})
	case w.left(u.GetUID(), "snapshot", w.Figures.SnapshotTime) > 0:
		return nil
	}
	vm, ok := w.machines.get(u.GetNamespace() + "/" + name)
	if !ok {
		return nil // the snapshot waits for its machine, as in a cluster
	}
	w.forget(u.GetUID(), "snapshot")
	return w.write(ctx, snapshotResource(), u, map[string]any{"phase": "Succeeded", "readyToUse": true, "creationTime": stamp(), "sourceUID": string(vm.UID),
		"virtualMachineSnapshotContentName": "vmsnapshot-content-" + string(u.GetUID()),
		"conditions":                        []any{map[string]any{"type": "Ready", "status": "True", "reason": "Operation complete", "lastTransitionTime": stamp()}}})
}

// syncRestore puts a machine that does not run back to a snapshot.
func (w *world) syncRestore(ctx context.Context, u *unstructured.Unstructured) error {
	complete, _, _ := unstructured.NestedBool(u.Object, "status", "complete")
	target, _, _ := unstructured.NestedString(u.Object, "spec", "target", "name")
	snapshot, _, _ := unstructured.NestedString(u.Object, "spec", "virtualMachineSnapshotName")
	if complete || u.GetDeletionTimestamp() != nil {
		return nil
	}
	ready := false
	if s, ok := w.snapshots.get(u.GetNamespace() + "/" + snapshot); ok {
		ready, _, _ = unstructured.NestedBool(s.Object, "status", "readyToUse")
	}
	if _, runs := w.instances.get(u.GetNamespace() + "/" + target); runs || !ready {
		return nil
	}
	if w.left(u.GetUID(), "restore", w.Figures.CloneFinish) > 0 {
		return nil
	}
	w.forget(u.GetUID(), "restore")
	return w.write(ctx, restoreResource(), u, map[string]any{"complete": true, "restoreTime": stamp()})
}

// The cluster's first version, and the number of parts of an upgrade.
const (
	firstVersion = "4.19.0"
	upgradeParts = 738
)

// operators lists a cluster's operators in the order of upgrades. The last one reboots the nodes.
func operators() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "authentication", "network", "storage", "machine-config"}
}

// newVersion returns the cluster's version before any upgrade.
func newVersion() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
		"metadata": map[string]any{"name": "version"}, "spec": map[string]any{"clusterID": string(uuid.NewUUID()),
			// The cluster was upgraded before.
			"desiredUpdate": map[string]any{"version": firstVersion, "image": imageOf(firstVersion)}}}}
}

func imageOf(version string) string { return "simulated/" + version }

// unverified is the reason of a refused update.
const unverified = "RetrievePayload"

// refusal says why the operator refuses an update, "" if it does not: another image or major version.
func refusal(version, image string) string {
	failure := ""
	switch {
	case image != "" && image != imageOf(version):
		failure = "release image version does not match the expected upstream version"
	case !strings.HasPrefix(version, "4."):
		failure = "The update cannot be verified"
	default:
		return ""
	}
	return fmt.Sprintf("Retrieving payload failed version=%q image=%q failure=%s", version, cmp.Or(image, imageOf(version)), failure)
}

func versionStatus(u *unstructured.Unstructured, version string, history []any, progressing bool, message string) map[string]any {
	state := map[bool]string{true: "True", false: "False"}
	condition := func(kind string, is bool, message string) any {
		return map[string]any{"type": kind, "status": state[is], "reason": "AsExpected", "message": message, "lastTransitionTime": stamp()}
	}
	return map[string]any{"desired": map[string]any{"version": version, "image": imageOf(version)}, "history": history, "observedGeneration": u.GetGeneration(),
		"versionHash": version, "availableUpdates": nil,
		"conditions": []any{condition("Available", true, "Done applying "+version), condition("Progressing", progressing, message), condition("Failing", false, ""),
			condition("ReleaseAccepted", true, "Payload loaded version="+version)}}
}

func historyOf(version, state string, completed any) map[string]any {
	return map[string]any{"state": state, "version": version, "image": imageOf(version), "startedTime": stamp(), "completionTime": completed, "verified": true}
}

// syncVersion upgrades the cluster to the desired version: the operators one after the other, then the nodes.
func (w *world) syncVersion(ctx context.Context, u *unstructured.Unstructured) error {
	history, _, _ := unstructured.NestedSlice(u.Object, "status", "history")
	if len(history) == 0 {
		if err := w.setOperators(ctx, firstVersion, len(operators())); err != nil {
			return err
		}
		return w.write(ctx, versionResource(), u, versionStatus(u, firstVersion, []any{historyOf(firstVersion, "Completed", stamp())}, false, "Cluster version is "+firstVersion))
	}
	last, _ := history[0].(map[string]any)
	current, _ := last["version"].(string)
	desired, _, _ := unstructured.NestedString(u.Object, "spec", "desiredUpdate", "version")
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	image, _, _ := unstructured.NestedString(u.Object, "spec", "desiredUpdate", "image")
	under := last["state"] == "Partial"
	switch refused := refusal(desired, image); {
	case !under && (desired == "" || desired == current):
		if said(conditions, "reason", unverified) { // nothing is desired any more
			return w.write(ctx, versionResource(), u, versionStatus(u, current, history, false, "Cluster version is "+current))
		}
		return nil // an upgrade under way goes on
	case !under && refused != "":
		status := versionStatus(u, current, history, false, "Cluster version is "+current)
		if said(conditions, "message", refused) {
			return nil
		}
		list := status["conditions"].([]any)
		accepted := list[len(list)-1].(map[string]any)
		accepted["status"], accepted["reason"], accepted["message"] = "False", unverified, refused
		return w.write(ctx, versionResource(), u, status)
	case !under:
		w.since(u.GetUID(), "upgrade")
		history = slices.Insert(history, 0, any(historyOf(desired, "Partial", nil)))
		return w.write(ctx, versionResource(), u, versionStatus(u, desired, history, true, fmt.Sprintf("Working towards %s: 0 of %d done (0%% complete)", desired, upgradeParts)))
	}
	share := 1 - float64(w.left(u.GetUID(), "upgrade", w.Figures.Upgrade))/float64(max(1, w.Figures.Upgrade))
	names := operators()
	done := min(len(names)-1, int(share*float64(len(names))))
	if err := w.setOperators(ctx, current, done); err != nil {
		return err
	}
	if share >= 1 {
		updated, err := w.upgradeNodes(ctx, current)
		if err != nil {
			return err
		}
		if updated {
			if err := w.setOperators(ctx, current, len(names)); err != nil {
				return err
			}
			w.forget(u.GetUID(), "upgrade")
			last["state"], last["completionTime"] = "Completed", stamp()
			return w.write(ctx, versionResource(), u, versionStatus(u, current, history, false, "Cluster version is "+current))
		}
		share = 1
	}
	parts := int(share * upgradeParts * float64(len(names)-1) / float64(len(names)))
	message := fmt.Sprintf("Working towards %s: %d of %d done (%d%% complete)", current, parts, upgradeParts, 100*parts/upgradeParts)
	if done == len(names)-1 {
		message += ", waiting on machine-config"
	}
	if said(conditions, "message", message) {
		return nil
	}
	return w.write(ctx, versionResource(), u, versionStatus(u, current, history, true, message))
}

func said(conditions []any, key, value string) bool {
	return slices.ContainsFunc(conditions, func(c any) bool { m, ok := c.(map[string]any); return ok && m[key] == value })
}

// setOperators gives the first so many operators a version.
func (w *world) setOperators(ctx context.Context, version string, done int) error {
	client := w.free.dynamic.Resource(operatorResource())
	for i, name := range operators() {
		u, ok := w.operators.get(name)
		if !ok {
			var err error
			u, err = client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator",
				"metadata": map[string]any{"name": name}, "spec": map[string]any{}}}, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil // the store shows it in a moment
			}
			if err != nil {
				return fmt.Errorf("make operator %s: %w", name, err)
			}
		}
		state := map[bool]string{true: "True", false: "False"}
		progressing := i == done
		if i > done {
			continue
		}
		versions, _, _ := unstructured.NestedSlice(u.Object, "status", "versions")
		if !progressing {
			versions = []any{map[string]any{"name": "operator", "version": version}}
		}
		told, _, _ := unstructured.NestedSlice(u.Object, "status", "versions")
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		if fmt.Sprint(told) == fmt.Sprint(versions) && slices.ContainsFunc(conditions, func(c any) bool {
			m, ok := c.(map[string]any)
			return ok && m["type"] == "Progressing" && m["status"] == state[progressing]
		}) {
			continue
		}
		condition := func(kind, status string) any {
			return map[string]any{"type": kind, "status": status, "reason": "AsExpected", "lastTransitionTime": stamp()}
		}
		if err := w.write(ctx, operatorResource(), u, map[string]any{"versions": versions,
			"conditions": []any{condition("Available", "True"), condition("Progressing", state[progressing]), condition("Degraded", "False")}}); err != nil {
			return err
		}
	}
	return nil
}

// upgradeNodes gives every pool a configuration of its version, and reports whether all nodes have it.
func (w *world) upgradeNodes(ctx context.Context, version string) (all bool, err error) {
	all = true
	for _, p := range w.pools.all() {
		name := "00-" + p.GetName() + "-" + strings.ReplaceAll(version, ".", "-")
		if _, ok := w.configs.get(name); !ok {
			all = false
			labels, _, _ := unstructured.NestedStringMap(p.Object, "spec", "machineConfigSelector", "matchLabels")
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
				"metadata": map[string]any{"name": name}, "spec": map[string]any{"osImageURL": "simulated/" + version}}}
			u.SetLabels(labels)
			if _, err := w.free.dynamic.Resource(configResource()).Create(ctx, u, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return false, fmt.Errorf("make configuration %s: %w", name, err)
			}
			continue
		}
		var now pool
		if err := now.read(p); err != nil {
			return false, err
		}
		rendered, err := w.render(&now)
		if err != nil {
			return false, err
		}
		all = all && now.Status.Configuration.Name == rendered
	}
	return all, nil
}

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
