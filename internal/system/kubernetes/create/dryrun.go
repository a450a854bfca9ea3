package create

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
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

// Bounds of what repeatedNames looks at.
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
	return m.mistake(index, r.path, fmt.Sprintf("this is no %s: %s", gvk.Kind, r.says))
}

// problem makes the problem of a mistake in a document of the first iteration.
func (m *Maker) problem(doc int, path, message, hint string) strictyaml.Problem {
	p := m.template.Problem(m.vars(kubeburner.Slot{Replica: 1}), doc, path, message)
	p.Hint = hint
	return p
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
			found, err := tryOutEntry(ctx, common, namespace, m)
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

// tryOutEntry is what the server refuses of one template.
func tryOutEntry(ctx context.Context, common *prepared.Run, own string, m *Maker) (problems []strictyaml.Problem, err error) {
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
		mapping, err := m.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return nil, m.unknownKind(i, &u)
		}
		namespace := ""
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			// The namespaces of the load are not there yet.
			if namespace = u.GetNamespace(); namespace == "" || !hasNamespace(ctx, common.Client, namespace) {
				namespace = own
				u.SetNamespace(namespace)
			}
		}
		body, err := json.Marshal(doc)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.template.Name(), err)
		}
		query := url.Values{"dryRun": {metav1.DryRunAll}, "fieldValidation": {metav1.FieldValidationStrict}}
		var answer api.Reply
		err = api.Retry(ctx, tryOutPatience, func(ctx context.Context) (api.Reply, error) {
			answer, err = common.Client.Do(ctx, http.MethodPost, api.Collection(mapping.Resource, namespace), query, "application/json", body, new(bytes.Buffer))
			return answer, err
		})
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case mistaken(answer, err):
			for _, r := range refusals(err) {
				problems = append(problems, m.problem(i, r.path, strings.TrimPrefix(r.says, r.path+": "), ""))
			}
		default:
			common.Emit(&record.Note{Warning: record.WarningNotKnown, Place: m.template.Name(), Text: fmt.Sprintf("whether the server takes a template is not known, its dry run failed: %v", err)})
		}
	}
	return problems, nil
}

// tryOutPatience is how long a dry run is tried again.
const tryOutPatience = api.RequestTimeout

func hasNamespace(ctx context.Context, c *api.Client, name string) bool {
	r, err := c.Call(ctx, http.MethodGet, "/api/v1/namespaces/"+name, nil)
	return err == nil && r.Code == http.StatusOK
}

// mistaken reports whether a server refused an object for what it says. An
// admission webhook that takes no dry runs says so with the same code.
func mistaken(r api.Reply, err error) bool {
	switch r.Code {
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
