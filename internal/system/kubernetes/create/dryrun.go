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

// RepeatedNames finds templates that ask for an object of one name twice: all
// requests but the first would be refused. It looks at the first iterations,
// and at those namespaces that a job or a template names.
func RepeatedNames(v prepared.Variant, ids prepared.Identity) error {
	type asked struct {
		maker *Maker
		slot  kubeburner.Slot
	}
	first := make(map[string]asked)
	var problems []strictyaml.Problem
	told := make(map[*Maker]bool)
	for j := range v.Config.Jobs {
		job := &v.Config.Jobs[j]
		if !job.Creates() {
			continue
		}
		iterations := 2
		var makers []*Maker
		for o := range job.Objects {
			makers = append(makers, &Maker{job: job, jobIndex: j, index: o, template: v.Templates[j][o], ids: ids})
			iterations = max(iterations, min(job.Objects[o].RepeatEveryNIterations, mostRepeats)+1)
		}
		if j < len(v.Config.Jobs)-1 {
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
				namespace := u.GetNamespace()
				if namespace == "" {
					namespace = s.Namespace
				}
				if u.GetName() == "" || told[m] {
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

// Bounds of the names that are compared with each other.
const (
	mostRepeats = 100
	mostNames   = 2000
)

// mistake is the error of a mistake in a document of the first iteration.
func (m *Maker) mistake(doc int, path, message string) error {
	return strictyaml.Join([]strictyaml.Problem{m.problem(doc, path, message, "")})
}

// otherType says where a document has a value that its kind cannot hold. The
// conversion that is used does not tell, and reading it as JSON does, in the
// words of the API server.
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

// problem makes the problem of a mistake in a document of the first iteration.
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

// unknownKind says that the cluster has no such kind, and where it has it.
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

// TryOut has the server look at every template of the load, as it is in its
// first iteration, without making anything: what it refuses for what it says is
// a mistake. What it could not look at is put on record. Objects whose namespaces
// are not there yet are asked for in the one that is named.
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
			in := trial{common.Client, namespace, r.Params, func(what string, err error) {
				common.Emit(&record.Note{Warning: record.WarningNotKnown, Place: m.template.Name(), Text: fmt.Sprintf("whether the server takes %s is unknown, its dry run failed: %v", what, err)})
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

// Refusals are what the server refuses of a rendering that nothing was made of yet,
// and of the canary beside it, all asked for in one namespace: a problem for each
// template, and what could not be found out. Without a namespace they are asked for in
// the default one, and so is a namespace of the run's own. An *api.WebhookError ends it.
func Refusals(ctx context.Context, c *api.Client, namespace string, v prepared.Variant, ids prepared.Identity, mapper meta.RESTMapper) (problems []strictyaml.Problem, unknown []string, err error) {
	canary, err := runtime.DefaultUnstructuredConverter.ToUnstructured(follow.CanaryPod(ids.Run, v))
	if err != nil {
		return nil, nil, err
	}
	in := trial{c, cmp.Or(namespace, metav1.NamespaceDefault), v.Params, func(what string, err error) { unknown = append(unknown, what+": "+err.Error()) }}
	if namespace == "" {
		quiet := in
		quiet.unknown = func(string, error) {} // that this user may not make one is among the rights
		own := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "plimsoll-"}}
		problems, err = quiet.object(ctx, mapper, own, func(_, says, hint string) strictyaml.Problem {
			return strictyaml.Problem{Message: "the run's own namespace: " + says, Hint: cmp.Or(hint, "--namespace NAME runs in one that exists")}
		})
	}
	if err == nil {
		var found []strictyaml.Problem
		found, err = in.object(ctx, mapper, canary, nil)
		problems = append(problems, found...)
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
				problems = append(problems, found...)
			}
		}
	}
	return problems, unknown, err
}

// trial has a server look at objects in one namespace, without making anything.
type trial struct {
	client    *api.Client
	namespace string
	params    workload.Params
	unknown   func(what string, err error)
}

// entry is what the server refuses of one template.
func (t trial) entry(ctx context.Context, m *Maker) (problems []strictyaml.Problem, err error) {
	docs, err := m.template.Render(m.vars(kubeburner.Slot{Object: m.index, Replica: 1, Namespace: m.job.NamespaceOf(0)}))
	if err != nil {
		return nil, err
	}
	for i, doc := range docs {
		if _, err := m.prepare(doc, i, "0", "1"); err != nil {
			return nil, err
		}
		u := unstructured.Unstructured{Object: doc}
		gvk := u.GroupVersionKind()
		if _, err := m.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
			return nil, m.unknownKind(i, &u)
		}
		found, err := t.object(ctx, m.mapper, doc, func(path, says, hint string) strictyaml.Problem { return m.problem(i, path, says, hint) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.template.Name(), err)
		}
		problems = append(problems, found...)
	}
	return problems, nil
}

// object is what the server refuses of one object, and of the pods that a controller
// would make of it: those are refused to the controller, long after the object was
// taken. At makes the problem of a path in it; nil stands for one without a file.
func (t trial) object(ctx context.Context, mapper meta.RESTMapper, doc map[string]any, at func(path, says, hint string) strictyaml.Problem) (problems []strictyaml.Problem, err error) {
	if at == nil {
		at = func(_, says, hint string) strictyaml.Problem {
			return strictyaml.Problem{Message: "the canary, the pod by which the watch is measured: " + says, Hint: hint}
		}
	}
	u := unstructured.Unstructured{Object: doc}
	reply, err := t.ask(ctx, mapper, u)
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
	reply, err = t.ask(ctx, mapper, *pod)
	if final(err) {
		return nil, t.client.Unreachable(err)
	}
	if err == nil || reply.Denied() || ctx.Err() != nil {
		return nil, context.Cause(ctx) // who may not make pods has controllers make them
	}
	for _, r := range t.refused(*pod, reply, err) {
		problems = append(problems, at("spec.template", fmt.Sprintf("a pod of %s %s: %s", u.GetKind(), u.GetName(), r.says), prepared.Helps(r.says, t.params)))
	}
	return problems, nil
}

// final reports whether an error is the same for every object, so that nothing more is
// asked: nobody answers for a webhook, or nobody logs in.
func final(err error) bool {
	var webhook *api.WebhookError
	var login *api.LoginError
	return errors.As(err, &webhook) || errors.As(err, &login)
}

// trialPatience is how long a dry run is asked for again. A webhook that is slow ends
// it after 10 s, unless it is configured otherwise.
const trialPatience = 15 * time.Second

// ask is what the server answers to a dry run of an object.
func (t trial) ask(ctx context.Context, mapper meta.RESTMapper, u unstructured.Unstructured) (answer api.Reply, err error) {
	gvk := u.GroupVersionKind()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return answer, err
	}
	namespace := ""
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		// The namespaces of the load are not there yet.
		if namespace = u.GetNamespace(); namespace == "" || !hasNamespace(ctx, t.client, namespace) {
			namespace = t.namespace
			u.SetNamespace(namespace)
		}
	}
	body, err := json.Marshal(u.Object)
	if err != nil {
		return answer, err
	}
	query := url.Values{"dryRun": {metav1.DryRunAll}, "fieldValidation": {metav1.FieldValidationStrict}}
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

// refused is what an answer refuses of an object for what it says. Where
// no answer says whether it is, that is noted as not known.
func (t trial) refused(u unstructured.Unstructured, reply api.Reply, err error) []refusal {
	switch {
	case err == nil:
		return nil
	case mistaken(reply, err):
		return refusals(err)
	}
	t.unknown(u.GetKind()+" "+u.GetName(), err)
	return nil
}

// podOf is a pod as a controller makes it of an object, nil for an object that is
// one itself, makes none, or has a template of something else, such as of a machine.
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

// mistaken reports whether a server refused an object for what it says: for its
// form, or by a policy. An admission webhook that takes no dry runs says so with the
// same code, and a user without the right is another matter.
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

// refusal is one thing that a server says of an object, and the path that it is
// about, "" for all of it.
type refusal struct{ path, says string }

// refusals takes apart what a server says.
func refusals(err error) (list []refusal) {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		if d := status.ErrStatus.Details; d != nil {
			for _, c := range d.Causes {
				if c.Field != "" {
					list = append(list, refusal{c.Field, c.Message})
				}
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
	// strictField is how strict validation names a field.
	strictField = regexp.MustCompile(`(unknown|duplicate) field "([^"]+)"`)
	// wrongType is how a value of another type is told of.
	wrongType = regexp.MustCompile(`Go struct field \w+\.([\w.]+) of type`)
)
