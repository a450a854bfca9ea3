package change

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"

	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

// change is the note of a setting that a run has changed.
type change struct {
	Keys  []string `json:"keys"`
	Was   any      `json:"was,omitempty"` // nil for none
	Set   any      `json:"set"`
	There int      `json:"there"` // There counts the keys that existed before
}

// wanted is the wanted value of a setting.
type wanted struct {
	param string
	keys  []string
	to    any
	clear bool // clear removes it at the end, whatever was there before
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
