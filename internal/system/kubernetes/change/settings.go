// Package change changes settings of a cluster for as long as a run lasts, and puts
// them back.
//
// A setting that a run changes is noted on the changed object: the former value
// is an annotation that comes with the same patch, bound to the object's
// version. So a killed run leaves no change that cannot be put back. The run's
// namespace lists these objects before the first change, so that the next run
// finds them with a request that it makes anyway; 'plimsoll clean' finds them
// by their label.
package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// place is where a setting stands in the cluster.
type place struct {
	path, what string // of the object, and how it is called
	keys       []string
	as         string // the only key of the object that is put there, "" for none
}

// setting is one that is to be changed in the cluster.
type setting struct {
	place
	wanted
	repeats []place // say the same some time later
	was     any     // nil for not set
	late    bool    // changed once all is set up
}

// findSettings finds where settings stand in the cluster.
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

// findPlace finds the object in which a setting stands, nil for none.
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

// defaultStorageClass is the class of volumes that name none: that of virtual
// machines' where there is one.
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

// Settings are those that a run changes, and puts back.
type Settings struct {
	*prepared.Run
	namespace string               // the run's own
	arms      map[string][]setting // of each arm, of the workload itself for ""
	arm       string               // whose settings are in force
	changed   bool                 // something may have been changed
	late      bool                 // so is what is changed late
}

// New finds the settings of each arm, and has the server look at them.
// Nothing is changed yet.
func New(ctx context.Context, common *prepared.Run, namespace string) (*Settings, error) {
	s := &Settings{Run: common, namespace: namespace, arms: make(map[string][]setting)}
	for arm, v := range armsOf(common.Load) {
		list, err := findSettings(ctx, common.Client, v.Settings)
		if err != nil {
			return nil, err
		}
		if s.arms[arm] = list; len(list) > 0 && common.Load.Namespace != "" {
			// What is changed is noted in the run's namespace, for whoever comes after it.
			return nil, system.Mistakef("leave out --namespace, or the parameters that change settings", "a run in a namespace that exists changes no settings of the cluster")
		}
		if err := s.rewrite(ctx, arm, true); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// armsOf are the renderings by arm, by "" where there are no arms.
func armsOf(load *prepared.Workload) map[string]prepared.Variant {
	if len(load.Arms) > 0 {
		return load.Arms
	}
	return map[string]prepared.Variant{"": load.Variant}
}

// objects are what any of the arms changes, by path.
func (s *Settings) objects() map[string]string {
	all := make(map[string]string)
	for _, list := range s.arms {
		for _, at := range list {
			all[at.path] = at.what
		}
	}
	return all
}

// Apply puts the settings of an arm in force, and waits until all that repeats
// them says so; late says that all is set up.
func (s *Settings) Apply(ctx context.Context, arm string, late bool) error {
	late = late && slices.ContainsFunc(s.arms[arm], func(at setting) bool { return at.late })
	objects := s.objects()
	if len(objects) == 0 || s.changed && s.arm == arm && (s.late || !late) {
		return nil
	}
	if !s.changed {
		// Whoever comes after a run that was killed finds them there.
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

// rewrite changes the settings to those of an arm; a dry run only asks whether
// that can be done.
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

// How long a request for a setting is tried again, and putting back may take
// when the user wants no more waiting; and how long a change may take to be in
// force.
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

// PutBack makes all as it was before the run.
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

// Texts say what values would change in the cluster during something, for whoever
// must agree.
func Texts(ctx context.Context, c *api.Client, values []workload.Value, during string) (texts []string, err error) {
	list, err := findSettings(ctx, c, values)
	for _, at := range list {
		texts = append(texts, fmt.Sprintf("%s of %s is changed for %s, %s -> %s, and put back at the end", strings.Join(at.place.keys, "."), at.what, during, value(at.was), value(at.to)))
	}
	return texts, err
}
