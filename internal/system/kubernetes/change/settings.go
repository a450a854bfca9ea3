// Package change changes settings of a cluster for the time of a run, and puts them back. The patch that
// changes an object, bound to its version, also notes the former value in an annotation, so that a killed run
// leaves no change for good. The run's namespace lists these objects before the first change for the next
// run; 'plimsoll clean' finds them by their label.
package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

type place struct {
	path, what string // the object's path and name
	keys       []string
	as         string // the single key of an object around the value, "" for none
}

type setting struct {
	place
	wanted
	repeats []place // places that show the value some time later
	was     any     // nil for not set
	late    bool    // changed after the set-up
}

func findSettings(ctx context.Context, c *api.Client, values []workload.Value) (list []setting, err error) {
	for _, v := range values {
		var places []place
		for i, in := range v.In {
			at, err := findPlace(ctx, c, in, v.Names[i])
			if err != nil {
				return nil, fmt.Errorf("parameter %s: %w", v.Param, err)
			}
			if at != nil && in.Refuse != "" && len(places) == 0 {
				return nil, system.Mistakef(in.Refuse, "parameter %s: %s overwrites what would be changed", v.Param, at.what)
			} else if at != nil && in.Refuse == "" {
				places = append(places, *at)
			}
		}
		if len(places) == 0 {
			return nil, system.Mistakef("load a cluster that has it, or leave the parameter out", "parameter %s changes a setting of %s, and the cluster has none", v.Param, v.In[len(v.In)-1].Kind)
		}
		raw, err := json.Marshal(v.To)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", v.Param, err)
		}
		s := setting{place: places[0], wanted: wanted{param: v.Param, keys: places[0].keys, clear: v.Clear}, repeats: places[1:], late: v.Late}
		if err := json.Unmarshal(raw, &s.to); err != nil {
			return nil, fmt.Errorf("parameter %s: %w", v.Param, err)
		}
		if s.as != "" {
			s.to = map[string]any{s.as: s.to}
		}
		object, err := readObject(ctx, c, s.path)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", s.what, err)
		}
		s.was, _, _ = unstructured.NestedFieldNoCopy(object, s.wanted.keys...)
		list = append(list, s)
	}
	return list, nil
}

// findPlace returns the object that has a setting, or nil.
func findPlace(ctx context.Context, c *api.Client, in workload.SettingPlace, name string) (*place, error) {
	mapper, err := c.Mapper()
	if err != nil {
		return nil, err
	}
	group, err := schema.ParseGroupVersion(in.APIVersion)
	if err != nil {
		return nil, system.Mistakef("", "%w", err)
	}
	mapping, err := mapper.RESTMapping(group.WithKind(in.Kind).GroupKind(), group.Version)
	if meta.IsNoMatchError(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if in.NameParam != "" && name == "" {
		if name, err = defaultStorageClass(ctx, c); err != nil {
			return nil, err
		}
	}
	var found metav1.PartialObjectMetadataList
	if err := c.InJSON(ctx, api.Collection(mapping.Resource, ""), nil, nil, &found); err != nil {
		return nil, fmt.Errorf("list %s: %w", mapping.Resource.Resource, err)
	}
	var places []place
	var names []string
	for _, o := range found.Items {
		if name != "" && o.Name != name {
			continue
		}
		called := strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
		names = append(names, called)
		places = append(places, place{api.Collection(mapping.Resource, o.Namespace) + "/" + o.Name, in.Kind + " " + called, in.Keys(), in.As})
	}
	switch len(places) {
	case 0:
		return nil, nil
	case 1:
		return &places[0], nil
	}
	return nil, system.Mistakef("", "the cluster has several %s: %s", mapping.Resource.Resource, strings.Join(names, ", "))
}

// defaultStorageClass returns the default class of volumes, that for virtual machines if there is one.
func defaultStorageClass(ctx context.Context, c *api.Client) (string, error) {
	classes, err := c.Typed.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list storage classes: %w", c.Unreachable(err))
	}
	for _, mark := range []string{"storageclass.kubevirt.io/is-default-virt-class", "storageclass.kubernetes.io/is-default-class"} {
		for _, class := range classes.Items {
			if class.Annotations[mark] == "true" {
				return class.Name, nil
			}
		}
	}
	return "", system.Mistakef("name a storage class", "the cluster has no default storage class")
}

// Settings changes a run's settings, and puts them back.
type Settings struct {
	*prepared.Run
	namespace string               // the run's own
	arms      map[string][]setting // by arm, the workload's own for ""
	arm       string               // whose settings are in force
	changed   bool                 // something may be changed
	late      bool                 // whether late settings are made too
}

// New finds the settings of each arm, and sends dry runs of their changes.
func New(ctx context.Context, common *prepared.Run, namespace string) (*Settings, error) {
	s := &Settings{Run: common, namespace: namespace, arms: make(map[string][]setting)}
	arms := common.Load.Arms
	if len(arms) == 0 {
		arms = map[string]prepared.Variant{"": common.Load.Variant}
	}
	for arm, v := range arms {
		list, err := findSettings(ctx, common.Client, v.Settings)
		if err != nil {
			return nil, err
		}
		if s.arms[arm] = list; len(list) > 0 && common.Load.Namespace != "" {
			// The run's own namespace notes the changes, for later runs.
			return nil, system.Mistakef("leave out --namespace, or the parameters that change settings", "a run in a namespace that exists changes no settings of the cluster")
		}
		if err := s.rewrite(ctx, arm, true); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Settings) objects() map[string]string {
	all := make(map[string]string)
	for _, list := range s.arms {
		for _, at := range list {
			all[at.path] = at.what
		}
	}
	return all
}

// Apply changes the settings to an arm's, and waits until all repetitions show them; late after the set-up.
func (s *Settings) Apply(ctx context.Context, arm string, late bool) error {
	late = late && slices.ContainsFunc(s.arms[arm], func(at setting) bool { return at.late })
	objects := s.objects()
	if len(objects) == 0 || s.changed && s.arm == arm && (s.late || !late) {
		return nil
	}
	if !s.changed {
		// A run after this one's death finds them there.
		list, err := json.Marshal(slices.Sorted(maps.Keys(objects)))
		if err != nil {
			return err
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{api.AnnotationChanged: string(list)}}})
		if err != nil {
			return err
		}
		if _, err := s.Client.Typed.CoreV1().Namespaces().Patch(ctx, s.namespace, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("note what is changed in namespace %s: %w", s.namespace, s.Client.Unreachable(err))
		}
	}
	s.changed, s.arm, s.late = true, arm, late
	if err := s.rewrite(ctx, arm, false); err != nil {
		return err
	}
	for _, at := range s.arms[arm] {
		for _, r := range at.repeats {
			if err := s.awaitRepeat(ctx, at, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// rewrite changes the settings to an arm's, or asks with dryRun whether that is possible.
func (s *Settings) rewrite(ctx context.Context, arm string, dryRun bool) error {
	for path, what := range s.objects() {
		var want []wanted
		for _, at := range s.arms[arm] {
			if at.path == path && (s.late || dryRun || !at.late) {
				want = append(want, at.wanted)
			}
		}
		told, others, err := RewriteObject(ctx, s.Client, path, s.Load.RunID, want, dryRun)
		switch {
		case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err):
			return system.Mistakef("the server said so", "change the settings of %s: %w", what, err)
		case err != nil:
			return fmt.Errorf("change the settings of %s: %w", what, err)
		case !dryRun:
			s.tell(what, slices.Concat(told, others))
		}
	}
	return nil
}

func (s *Settings) tell(what string, texts []string) {
	for _, text := range texts {
		s.Emit(&record.Note{Warning: record.WarningSetting, Text: what + ": " + text})
	}
}

// Bounds of a request for a setting, also without patience, and of the time until a change is in force.
const (
	settingPatience = 15 * time.Second
	repeatPatience  = time.Minute
)

func (s *Settings) awaitRepeat(ctx context.Context, at setting, in place) error {
	ctx, cancel := context.WithTimeoutCause(ctx, repeatPatience, fmt.Errorf("%v after %s was changed to %s", repeatPatience, at.what, value(at.to)))
	defer cancel()
	for {
		object, err := readObject(ctx, s.Client, in.path)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("read %s: %w", in.what, err)
		}
		is, _, _ := unstructured.NestedFieldNoCopy(object, in.keys...)
		if reflect.DeepEqual(is, at.to) {
			return nil
		}
		if !api.Sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("parameter %s: %s of %s is still %s: %w", at.param, strings.Join(in.keys, "."), in.what, value(is), context.Cause(ctx))
		}
	}
}

// PutBack restores all settings.
func (s *Settings) PutBack(ctx context.Context) error {
	if s == nil || !s.changed {
		return nil
	}
	rest, end := system.Outlive(ctx)
	defer end()
	ctx, cancel := context.WithTimeout(rest, settingPatience)
	defer cancel()
	var errs []error
	for path, what := range s.objects() {
		_, others, err := RewriteObject(ctx, s.Client, path, s.Load.RunID, nil, false)
		s.tell(what, others)
		if err != nil {
			errs = append(errs, fmt.Errorf("put back the settings of %s ('plimsoll clean' does): %w", what, err))
		}
	}
	s.changed = len(errs) > 0
	return errors.Join(errs...)
}

// Texts describes the changes of values during something, for the user's consent.
func Texts(ctx context.Context, c *api.Client, values []workload.Value, during string) (texts []string, err error) {
	list, err := findSettings(ctx, c, values)
	for _, at := range list {
		texts = append(texts, fmt.Sprintf("%s of %s is changed for %s, %s -> %s, and put back at the end", strings.Join(at.place.keys, "."), at.what, during, value(at.was), value(at.to)))
	}
	return texts, err
}

// change is the note of a setting that a run has changed.
type change struct {
	Keys  []string `json:"keys"`
	Was   any      `json:"was,omitempty"` // nil for none
	Set   any      `json:"set"`
	There int      `json:"there"` // counts the keys that existed before
}

// wanted is the wanted value of a setting.
type wanted struct {
	param string
	keys  []string
	to    any
	clear bool // removes it at the end, whatever was there before
}

// rewrite puts back the run's changes of an object, then makes the wanted ones. others describes settings
// that somebody else changed since, which are left; told the wanted changes.
func rewrite(object map[string]any, run string, want []wanted) (told, others []string, err error) {
	u := unstructured.Unstructured{Object: object}
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	var done, now []change
	switch by := labels[api.LabelChangedBy]; {
	case by == run:
		if err := json.Unmarshal([]byte(annotations[api.AnnotationWas]), &done); err != nil {
			return nil, nil, fmt.Errorf("read the annotation %s: %w", api.AnnotationWas, err)
		}
	case len(want) == 0:
		return nil, nil, nil
	case by != "":
		return nil, nil, changedByError(by)
	}
	for _, c := range slices.Backward(done) {
		if is, _, _ := unstructured.NestedFieldNoCopy(object, c.Keys...); !reflect.DeepEqual(is, c.Set) {
			if !reflect.DeepEqual(is, c.Was) {
				others = append(others, fmt.Sprintf("%s was set to %s by this program, and is %s by now: it is left so, and not put back to %s", strings.Join(c.Keys, "."), value(c.Set), value(is), value(c.Was)))
			}
			continue
		}
		if c.Was != nil {
			if err := unstructured.SetNestedField(object, c.Was, c.Keys...); err != nil {
				return nil, nil, err
			}
			continue
		}
		unstructured.RemoveNestedField(object, c.Keys...)
		for n := len(c.Keys) - 1; n > c.There; n-- { // the parents that were made for it
			if within, _, _ := unstructured.NestedMap(object, c.Keys[:n]...); len(within) == 0 {
				unstructured.RemoveNestedField(object, c.Keys[:n]...)
			}
		}
	}
	for _, w := range want {
		c := change{Keys: w.keys, Set: w.to}
		c.Was, _, _ = unstructured.NestedFieldNoCopy(object, w.keys...)
		for ; c.There < len(w.keys); c.There++ {
			if _, ok, _ := unstructured.NestedFieldNoCopy(object, w.keys[:c.There+1]...); !ok {
				break
			}
		}
		told = append(told, fmt.Sprintf("%s %s -> %s", strings.Join(w.keys, "."), value(c.Was), value(w.to)))
		if reflect.DeepEqual(c.Was, w.to) {
			continue
		}
		if w.clear {
			c.Was = nil
		}
		now = append(now, c)
	}
	for _, c := range now {
		if err := unstructured.SetNestedField(object, c.Set, c.Keys...); err != nil {
			return nil, nil, err
		}
	}
	delete(labels, api.LabelChangedBy)
	delete(annotations, api.AnnotationWas)
	if len(now) > 0 {
		was, err := json.Marshal(now)
		if err != nil {
			return nil, nil, err
		}
		if labels == nil {
			labels = make(map[string]string)
		}
		if annotations == nil {
			annotations = make(map[string]string)
		}
		labels[api.LabelChangedBy], annotations[api.AnnotationWas] = run, string(was)
	}
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	return told, others, nil
}

func value(v any) string {
	if v == nil {
		return "not set"
	}
	if m, ok := v.(map[string]any); ok {
		text, _ := json.Marshal(m)
		return string(text)
	}
	return fmt.Sprint(v)
}

// changedByError names the run that has changed an object, and has not put it back.
type changedByError string

func (e changedByError) Error() string {
	return fmt.Sprintf("run %s has changed it, and may be going on: --wait waits for its end", string(e))
}

func readObject(ctx context.Context, c *api.Client, path string) (object map[string]any, err error) {
	err = c.InJSON(ctx, path, nil, nil, &object)
	return object, err
}

// RewriteObject applies rewrite to an object, or with dryRun only asks the server; a missing one is fine.
func RewriteObject(ctx context.Context, c *api.Client, path, run string, want []wanted, dryRun bool) (told, others []string, err error) {
	for {
		before, err := readObject(ctx, c, path)
		if apierrors.IsNotFound(err) && len(want) == 0 {
			return nil, nil, nil
		} else if err != nil {
			return nil, nil, err
		}
		after := runtime.DeepCopyJSON(before)
		if told, others, err = rewrite(after, run, want); err != nil || reflect.DeepEqual(before, after) {
			return told, others, err
		}
		// The version in the patch protects changes by others in between.
		unstructured.RemoveNestedField(before, "metadata", "resourceVersion")
		was, err := json.Marshal(before)
		if err != nil {
			return nil, nil, err
		}
		is, err := json.Marshal(after)
		if err != nil {
			return nil, nil, err
		}
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(was, is, was)
		if err != nil {
			return nil, nil, err
		}
		query := url.Values{}
		if len(want) > 0 {
			query.Set("fieldValidation", metav1.FieldValidationStrict)
		}
		if dryRun {
			query.Set("dryRun", metav1.DryRunAll)
		}
		err = c.InJSON(ctx, path, query, patch, &after)
		if !apierrors.IsConflict(err) || !api.Sleep(ctx, 50*time.Millisecond) {
			return told, others, err
		}
	}
}
