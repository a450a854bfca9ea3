package create

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// RepeatedNames reports templates that make two objects of one name in the first iterations, in
// namespaces that a job or a template names. whole says that the last job has only the iterations that it states;
// then, as in kube-burner, only names of objects that are waited for or measured may not come again.
func RepeatedNames(v prepared.Variant, ids prepared.Identity, whole bool) error {
	type asked struct {
		maker *Maker
		slot  kubeburner.Slot
	}
	first := make(map[string]asked)
	var problems []strictyaml.Problem
	told := make(map[*Maker]bool)
	for j := range v.Config.Jobs {
		job := &v.Config.Jobs[j]
		if !job.Creates() || job.From > 0 {
			continue
		}
		iterations := 2
		var makers []*Maker
		for o := range job.Objects {
			makers = append(makers, &Maker{job: job, jobIndex: j, index: o, template: v.Templates[j][o], ids: ids})
			iterations = max(iterations, min(job.Objects[o].RepeatEveryNIterations, mostRepeats)+1)
		}
		if whole || j < len(v.Config.Jobs)-1 {
			iterations = min(iterations, job.JobIterations)
		}
		n := 0
		for s := range job.Slots(0, iterations) {
			if n++; n > mostNames {
				break
			}
			m := makers[s.Object]
			docs, err := m.template.Render(m.vars(s))
			if err != nil {
				return err
			}
			for i, doc := range docs {
				u := unstructured.Unstructured{Object: doc}
				namespace := cmp.Or(u.GetNamespace(), s.Namespace)
				if u.GetName() == "" || told[m] || whole && !counts(v.Config, doc) {
					continue
				}
				key := u.GroupVersionKind().GroupKind().String() + "\x00" + namespace + "\x00" + u.GetName()
				was, twice := first[key]
				if !twice {
					first[key] = asked{m, s}
					continue
				}
				told[m] = true
				by := ""
				if was.maker != m {
					by = " of " + was.maker.template.Name()
				}
				p := m.template.Problem(m.vars(s), i, "metadata.name", fmt.Sprintf("%s %q is asked for twice in one namespace, in iteration %d, replica %d%s and in iteration %d, replica %d: all but the first would be refused",
					u.GetKind(), u.GetName(), was.slot.Iteration, was.slot.Replica, by, s.Iteration, s.Replica))
				p.Hint, p.Text = "put {{.Iteration}} and {{.Replica}} into the name", ""
				problems = append(problems, p)
			}
		}
	}
	return strictyaml.Join(problems)
}

// counts reports whether a run waits for the pods of an object, or measures it.
func counts(c *kubeburner.Config, doc map[string]any) bool {
	pods, perNode := kubeburner.PodsOf(doc)
	return pods > 0 || perNode || slices.ContainsFunc(c.Measured(nil), func(name string) bool {
		m, served := kubeburner.MeasureOf(name)
		return served && m.Kind == doc["kind"]
	})
}

// Bounds on the compared names.
const (
	mostRepeats = 100
	mostNames   = 2000
)

func (m *Maker) mistake(doc int, path, message string) error {
	return strictyaml.Join([]strictyaml.Problem{m.problem(doc, path, message, "")})
}

// otherType says where a document has a value of the wrong type, in the API server's words.
func (m *Maker) otherType(doc map[string]any, index int, gvk schema.GroupVersionKind, err error) error {
	if raw, failed := json.Marshal(doc); failed == nil {
		if into, failed := scheme.Scheme.New(gvk); failed == nil {
			if failed := json.Unmarshal(raw, into); failed != nil {
				err = failed
			}
		}
	}
	r := refusals(err)[0]
	return m.mistake(index, r.path, fmt.Sprintf("this is not a %s: %s", gvk.Kind, r.says))
}

func (m *Maker) problem(doc int, path, message, hint string) strictyaml.Problem {
	p := m.template.Problem(m.vars(kubeburner.Slot{Replica: 1}), doc, path, message)
	p.Hint = hint
	return p
}

// makers returns, by API group, what a cluster without the group lacks.
func makers() map[string]string {
	const virt = "the cluster has no KubeVirt or CDI: install them, or use a lab: 'plimsoll lab up NAME --virt'"
	return map[string]string{
		"kubevirt.io": virt, "cdi.kubevirt.io": virt, "snapshot.kubevirt.io": virt, "clone.kubevirt.io": virt,
		"machineconfiguration.openshift.io": "the cluster is not OpenShift; 'plimsoll lab up NAME --virt' has its machine configuration",
	}
}

// unknownKind says that the cluster lacks a kind, and in which versions it has it.
func (m *Maker) unknownKind(doc int, u *unstructured.Unstructured) error {
	gvk := u.GroupVersionKind()
	hint := ""
	if known, err := m.mapper.RESTMappings(gvk.GroupKind()); err == nil {
		var versions []string
		for _, k := range known {
			if v := k.GroupVersionKind.GroupVersion().String(); !slices.Contains(versions, v) {
				versions = append(versions, v)
			}
		}
		if len(versions) > 0 {
			hint = fmt.Sprintf("it knows %s in %s", gvk.Kind, strings.Join(versions, ", "))
		}
	} else if maker := makers()[gvk.Group]; maker != "" {
		hint = maker
	}
	return strictyaml.Join([]strictyaml.Problem{m.problem(doc, "apiVersion", fmt.Sprintf("the cluster knows no kind %s in %s", gvk.Kind, gvk.GroupVersion()), hint)})
}

// TryOut sends a dry run of every template's first iteration, in the given namespace where its own is
// missing. Refused content is a mistake; a failed dry run is recorded as unknown.
func TryOut(ctx context.Context, common *prepared.Run, namespace string, list []*Rendering) error {
	var problems []strictyaml.Problem
	told := make(map[string]bool)
	for _, r := range list {
		for _, m := range slices.Concat(r.makers...) {
			if m.chooses != nil {
				if err := ofOthers(ctx, common, m); len(strictyaml.Problems(err)) > 0 {
					problems = append(problems, strictyaml.Problems(err)...)
				} else if err != nil {
					return err
				}
				continue
			}
			in := trial{common.Client, namespace, r.Params, r.made, func(what string, err error) {
				common.Emit(&record.Note{Warning: record.WarningNotKnown, Place: m.template.Name(), Text: fmt.Sprintf("whether the server takes %s is unknown, its dry run failed: %v", what, err)})
			}, func(p strictyaml.Problem) {
				common.Emit(&record.Note{Warning: record.WarningFields, Place: p.String(), Text: "the API ignores unknown fields"})
			}}
			found, err := in.entry(ctx, m)
			if err != nil {
				return err
			}
			for _, p := range found {
				if !told[p.String()] {
					told[p.String()] = true
					problems = append(problems, p)
				}
			}
		}
	}
	if len(problems) > 0 {
		return system.Mistakef("the server said so to a dry run; nothing was made", "%w", strictyaml.Join(problems))
	}
	return nil
}

// Tried says what a server answered to dry runs.
type Tried struct {
	Refused, Ignored []strictyaml.Problem // templates, and fields that the server does not know
	Unknown          []string             // objects whose dry run failed
}

// Refusals sends dry runs of a rendering and of the canary in one namespace, the default one for "", and
// then tries the run's own. An *api.WebhookError ends it.
func Refusals(ctx context.Context, c *api.Client, namespace string, v prepared.Variant, ids prepared.Identity, cluster meta.RESTMapper) (tried Tried, err error) {
	canary, err := runtime.DefaultUnstructuredConverter.ToUnstructured(follow.CanaryPod(ids.Run, v))
	if err != nil {
		return tried, err
	}
	mapper, err := MadeBy(v, ids, cluster)
	if err != nil {
		return tried, err
	}
	in := trial{c, cmp.Or(namespace, metav1.NamespaceDefault), v.Params, mapper, func(what string, err error) { tried.Unknown = append(tried.Unknown, what+": "+err.Error()) },
		func(p strictyaml.Problem) { tried.Ignored = append(tried.Ignored, p) }}
	if namespace == "" {
		quiet := in
		quiet.unknown = func(string, error) {} // a missing right is reported with the rights
		own := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "plimsoll-"}}
		tried.Refused, err = quiet.object(ctx, own, func(_, says, hint string) strictyaml.Problem {
			return strictyaml.Problem{Message: "the run's own namespace: " + says, Hint: cmp.Or(hint, "--namespace NAME runs in one that exists")}
		})
	}
	if err == nil {
		var found []strictyaml.Problem
		found, err = in.object(ctx, canary, func(_, says, hint string) strictyaml.Problem {
			return strictyaml.Problem{Message: "the canary, the pod by which the watch is measured: " + says, Hint: hint}
		})
		tried.Refused = append(tried.Refused, found...)
	}
	for j := range v.Config.Jobs {
		job := &v.Config.Jobs[j]
		for o := range job.Objects {
			if err != nil || job.Objects[o].Replicas < 1 || !job.Creates() {
				continue
			}
			m := &Maker{job: job, jobIndex: j, index: o, template: v.Templates[j][o], ids: ids, mapper: mapper}
			var found []strictyaml.Problem
			if found, err = in.entry(ctx, m); err == nil {
				tried.Refused = append(tried.Refused, found...)
			}
		}
	}
	return tried, err
}

// trial sends dry runs of objects in one namespace.
type trial struct {
	client    *api.Client
	namespace string
	params    workload.Params
	made      *Made
	unknown   func(what string, err error)
	ignored   func(field strictyaml.Problem)
}

func (t trial) entry(ctx context.Context, m *Maker) (problems []strictyaml.Problem, err error) {
	docs, err := m.documents()
	if err != nil {
		return nil, err
	}
	for i, doc := range docs {
		if doc.Unknown != nil {
			return nil, doc.Unknown
		}
		if t.made.lacks(doc.GroupVersionKind().GroupKind()) {
			continue // an earlier job defines it
		}
		found, err := t.object(ctx, doc.Object, func(path, says, hint string) strictyaml.Problem { return m.problem(i, path, says, hint) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.template.Name(), err)
		}
		problems = append(problems, found...)
	}
	return problems, nil
}

// object returns the server's refusals of an object, and of the pods that a controller would make of it,
// which would meet them long afterwards. at makes a problem with a path.
func (t trial) object(ctx context.Context, doc map[string]any, at func(path, says, hint string) strictyaml.Problem) (problems []strictyaml.Problem, err error) {
	u := unstructured.Unstructured{Object: doc}
	reply, err := t.ask(ctx, u, metav1.FieldValidationStrict)
	if err != nil && ctx.Err() == nil && strictField.MatchString(err.Error()) {
		for _, r := range refusals(err) {
			t.ignored(at(r.path, r.says, ""))
		}
		reply, err = t.ask(ctx, u, metav1.FieldValidationIgnore)
	}
	if final(err) {
		return nil, t.client.Unreachable(err)
	}
	if found := t.refused(u, reply, err); err != nil && ctx.Err() == nil {
		for _, r := range found {
			problems = append(problems, at(r.path, strings.TrimPrefix(r.says, r.path+": "), prepared.Helps(r.says, t.params)))
		}
		return problems, nil
	}
	pod := podOf(u)
	if err != nil || pod == nil {
		return nil, err
	}
	reply, err = t.ask(ctx, *pod, metav1.FieldValidationIgnore)
	if final(err) {
		return nil, t.client.Unreachable(err)
	}
	if err == nil || reply.Denied() || ctx.Err() != nil {
		return nil, context.Cause(ctx) // users without the right to make pods have controllers make them
	}
	for _, r := range t.refused(*pod, reply, err) {
		problems = append(problems, at("spec.template", fmt.Sprintf("a pod of %s %s: %s", u.GetKind(), u.GetName(), r.says), prepared.Helps(r.says, t.params)))
	}
	return problems, nil
}

// final reports whether the error would be the same for every object: a dead webhook, or a failed login.
func final(err error) bool {
	var webhook *api.WebhookError
	var login *api.LoginError
	return errors.As(err, &webhook) || errors.As(err, &login)
}

// trialPatience bounds the retries of a dry run. By default a slow webhook ends it after 10 s.
const trialPatience = 15 * time.Second

func (t trial) ask(ctx context.Context, u unstructured.Unstructured, fields string) (answer api.Reply, err error) {
	gvk := u.GroupVersionKind()
	mapping, err := t.made.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return answer, err
	}
	namespace := ""
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		// The load's namespaces do not exist yet.
		if namespace = u.GetNamespace(); namespace == "" || !hasNamespace(ctx, t.client, namespace) {
			namespace = t.namespace
			u.SetNamespace(namespace)
		}
	}
	body, err := json.Marshal(u.Object)
	if err != nil {
		return answer, err
	}
	query := url.Values{"dryRun": {metav1.DryRunAll}, "fieldValidation": {fields}}
	request, err := t.client.Request(ctx, http.MethodPost, api.Collection(mapping.Resource, namespace), query, "application/json", body)
	if err != nil {
		return answer, err
	}
	answer, err = t.client.SendFor(trialPatience, request, new(bytes.Buffer), 0)
	err = cmp.Or(err, answer.Err())
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return answer, err
}

// refused returns the reasons if the server refuses an object's content, and notes failed dry runs.
func (t trial) refused(u unstructured.Unstructured, reply api.Reply, err error) []refusal {
	switch {
	case err == nil:
		return nil
	case mistaken(reply, err) && t.made.missing(err.Error()):
		return nil // it is made before
	case mistaken(reply, err):
		return refusals(err)
	}
	t.unknown(u.GetKind()+" "+u.GetName(), err)
	return nil
}

// podOf returns the pod that a controller makes of an object, nil for a pod, or without a pod template.
func podOf(u unstructured.Unstructured) *unstructured.Unstructured {
	template, ok, err := unstructured.NestedMap(u.Object, "spec", "template")
	if pods, perNode := kubeburner.PodsOf(u.Object); !ok || err != nil || u.GetKind() == "Pod" || pods == 0 && !perNode || !scheme.Scheme.Recognizes(u.GroupVersionKind()) {
		return nil
	}
	pod := &unstructured.Unstructured{Object: template}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetName(u.GetName() + "-pod")
	pod.SetNamespace(u.GetNamespace())
	return pod
}

func hasNamespace(ctx context.Context, c *api.Client, name string) bool {
	r, err := c.Call(ctx, http.MethodGet, "/api/v1/namespaces/"+name, nil)
	return err == nil && r.Code == http.StatusOK
}

// mistaken reports whether the server refused an object's content, and not just dry runs.
func mistaken(r api.Reply, err error) bool {
	switch r.Code {
	case http.StatusForbidden:
		return !r.Denied()
	case http.StatusBadRequest:
		return !strings.Contains(err.Error(), "dry run")
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusConflict, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// refusal is one message of the server, with the path in the object that it names, or "".
type refusal struct{ path, says string }

func refusals(err error) (list []refusal) {
	if status, is := errors.AsType[*apierrors.StatusError](err); is && status.ErrStatus.Details != nil {
		for _, c := range status.ErrStatus.Details.Causes {
			if c.Field != "" {
				list = append(list, refusal{c.Field, c.Message})
			}
		}
	}
	if len(list) > 0 {
		return list
	}
	for _, m := range strictField.FindAllStringSubmatch(err.Error(), -1) {
		list = append(list, refusal{m[2], m[0]})
	}
	if len(list) > 0 {
		return list
	}
	if m := wrongType.FindStringSubmatch(err.Error()); m != nil {
		return []refusal{{m[1], err.Error()}}
	}
	return []refusal{{"", err.Error()}}
}

var (
	// strictField matches the message of strict validation.
	strictField = regexp.MustCompile(`(unknown|duplicate) field "([^"]+)"`)
	// wrongType matches Go's message about a value of another type.
	wrongType = regexp.MustCompile(`Go struct field \w+\.([\w.]+) of type`)
)
