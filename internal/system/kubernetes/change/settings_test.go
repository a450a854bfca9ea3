package change

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

func decodedJSON(t *testing.T, text string) (object map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func asked(text string) (list []wanted) {
	for one := range strings.FieldsSeq(text) {
		one, clear := strings.CutPrefix(one, "-")
		path, to, _ := strings.Cut(one, "=")
		w := wanted{keys: strings.Split(path, "."), clear: clear}
		if err := json.Unmarshal([]byte(to), &w.to); err != nil {
			panic(err)
		}
		list = append(list, w)
	}
	return list
}

// What was changed is put back, whatever was there, and whatever others did.
func TestRewrite(t *testing.T) {
	tests := []struct {
		why, object string
		want        []string // one after the other; by others where it begins with !
		told        string   // of the first
		others      string   // of putting back
		end         string   // "" is the object
	}{
		{"a value", `{"spec":{"a":5}}`, []string{"spec.a=20"}, "spec.a 5 -> 20", "", ""},
		{"none goes with all that was made for it", `{"spec":{"b":1}}`, []string{"spec.m.a=20 spec.m.n.c=3"}, "spec.m.a not set -> 20; spec.m.n.c not set -> 3", "", ""},
		{"what was there and empty stays", `{"spec":{"m":{}}}`, []string{"spec.m.a=20"}, "spec.m.a not set -> 20", "", ""},
		{"zero is a value", `{"spec":{"a":0}}`, []string{"spec.a=1"}, "spec.a 0 -> 1", "", ""},
		{"one of its own beside labels of others", `{"metadata":{"labels":{"x":"y"}},"spec":{"a":"copy"}}`, []string{`spec.a="snapshot"`}, "spec.a copy -> snapshot", "", ""},
		{"what it is already is not touched", `{"spec":{"a":5}}`, []string{"spec.a=5"}, "spec.a 5 -> 5", "", ""},
		{"another arm changes what the first one found", `{"spec":{"a":5}}`, []string{"spec.a=20", "spec.b=3", "spec.a=7"}, "spec.a 5 -> 20", "", ""},
		{"an arm that changes nothing", `{"spec":{"a":5}}`, []string{"spec.a=20", ""}, "spec.a 5 -> 20", "", ""},
		{"what others changed since is left", `{"spec":{"a":5,"b":1}}`, []string{"spec.a=20 spec.b=2", "!spec.a=6"}, "spec.a 5 -> 20; spec.b 1 -> 2",
			"spec.a was set to 20 by this program, and is 6 by now: it is left so, and not put back to 5", `{"spec":{"a":6,"b":1}}`},
		{"others put it back", `{"spec":{"a":5}}`, []string{"spec.a=20", "!spec.a=5"}, "spec.a 5 -> 20", "", ""},
		{"a whole object is replaced", `{"spec":{"u":{"version":"4.19.0","image":"x"}}}`, []string{`spec.u={"version":"4.20.0"}`}, `spec.u {"image":"x","version":"4.19.0"} -> {"version":"4.20.0"}`, "", ""},
		{"what would be undone is taken away", `{"spec":{"u":{"version":"4.19.0","image":"x"},"a":1}}`, []string{`-spec.u={"version":"4.20.0"}`}, `spec.u {"image":"x","version":"4.19.0"} -> {"version":"4.20.0"}`, "", `{"spec":{"a":1}}`},
		{"others put something beside it", `{"spec":{}}`, []string{"spec.m.a=20", "!spec.m.b=1"}, "spec.m.a not set -> 20", "", `{"spec":{"m":{"b":1}}}`},
	}
	for _, tt := range tests {
		object := decodedJSON(t, tt.object)
		for i, want := range tt.want {
			if by, others := strings.CutPrefix(want, "!"); others {
				for _, w := range asked(by) {
					at := object
					for _, k := range w.keys[:len(w.keys)-1] {
						at = at[k].(map[string]any)
					}
					at[w.keys[len(w.keys)-1]] = w.to
				}
				continue
			}
			told, _, err := rewrite(object, "run1", asked(want))
			if err != nil || i == 0 && strings.Join(told, "; ") != tt.told {
				t.Errorf("%s: told %q, %v", tt.why, told, err)
			}
		}
		marked := object["metadata"] != nil && strings.Contains(fmt.Sprint(object["metadata"]), api.LabelChangedBy)
		if _, _, err := rewrite(runtime.DeepCopyJSON(object), "run2", asked("spec.a=1")); marked != (err != nil) {
			t.Errorf("%s: another run gets %v", tt.why, err)
		}
		if again := runtime.DeepCopyJSON(object); marked {
			if _, _, err := rewrite(again, "run2", nil); err != nil || !reflect.DeepEqual(again, object) {
				t.Errorf("%s: another run puts back %v, %v", tt.why, again, err)
			}
		}
		_, others, err := rewrite(object, "run1", nil)
		if m, _ := object["metadata"].(map[string]any); m != nil { // which every real object has
			for _, k := range []string{"labels", "annotations"} {
				if of, _ := m[k].(map[string]any); len(of) == 0 {
					delete(m, k)
				}
			}
			if len(m) == 0 {
				delete(object, "metadata")
			}
		}
		end := tt.end
		if end == "" {
			end = tt.object
		}
		if want := decodedJSON(t, end); err != nil || !reflect.DeepEqual(object, want) || strings.Join(others, "; ") != tt.others {
			t.Errorf("%s: put back to %v, %q, %v", tt.why, object, others, err)
		}
	}
}

// settingsOn is an API server that knows some kinds and answers with these objects.
func settingsOn(t *testing.T, answers map[string]string) (*api.Client, *[]string) {
	t.Helper()
	var patches []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		text, ok := answers[r.URL.Path]
		switch {
		case r.Method == http.MethodPatch:
			raw, _ := io.ReadAll(r.Body) // a patch that is cut shows
			if patches = append(patches, string(raw)); len(patches) == 1 {
				w.WriteHeader(http.StatusConflict)
				text = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`
			}
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			text = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(server.Close)
	c, err := api.NewClient(&rest.Config{Host: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Thing", "Master"} {
		mapper.Add(schema.GroupVersionKind{Group: "x", Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
	}
	c.Know(mapper)
	return c, &patches
}

func TestFindSettings(t *testing.T) {
	const thing, master, empty = `{"items":[{"metadata":{"namespace":"n","name":"a"}}]}`, `{"items":[{"metadata":{"namespace":"m","name":"b"}}]}`, `{"items":[]}`
	const things, masters, classes = "/apis/x/v1/things", "/apis/x/v1/masters", "/apis/storage.k8s.io/v1/storageclasses"
	const readA, readB = "/apis/x/v1/namespaces/n/things/a", "/apis/x/v1/namespaces/m/masters/b"
	of := func(in ...workload.SettingPlace) []workload.Value {
		return []workload.Value{{Setting: workload.Setting{Param: "p", In: in}, To: int64(20), Names: make([]string, len(in))}}
	}
	at := func(kind, path string) workload.SettingPlace {
		return workload.SettingPlace{APIVersion: "x/v1", Kind: kind, Path: path}
	}
	named := workload.SettingPlace{APIVersion: "x/v1", Kind: "Thing", NameParam: "class", Path: "spec.a"}
	tests := []struct {
		why     string
		answers map[string]string
		values  []workload.Value
		want    string // the object, its value and what repeats it, or the error
	}{
		{"the only one there is", map[string]string{things: thing, readA: `{"spec":{"a":5}}`}, of(at("Thing", "spec.a")), "Thing n/a 5 []"},
		{"a kind that the cluster does not know is passed over", map[string]string{things: thing, readA: `{}`}, of(at("Stranger", "spec.b"), at("Thing", "spec.a")), "Thing n/a not set []"},
		{"so is one of which there is none", map[string]string{masters: empty, things: thing, readA: `{}`}, of(at("Master", "spec.b"), at("Thing", "spec.a")), "Thing n/a not set []"},
		{"what overwrites it is changed, and it is waited for", map[string]string{masters: master, things: thing, readB: `{}`}, of(at("Master", "spec.b"), at("Thing", "spec.a")), "Master m/b not set [Thing n/a]"},
		{"what overwrites it and cannot hold it", map[string]string{masters: master, things: thing},
			of(workload.SettingPlace{APIVersion: "x/v1", Kind: "Master", Refuse: "leave it out"}, at("Thing", "spec.a")), "Master m/b overwrites what would be changed"},
		{"nowhere", map[string]string{things: empty}, of(at("Thing", "spec.a")), "changes a setting of Thing, and the cluster has none"},
		{"several", map[string]string{things: `{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`}, of(at("Thing", "spec.a")), "several things: a, b"},
		{"that of the default class of virtual machines", map[string]string{things: `{"items":[{"metadata":{"name":"z"}},{"metadata":{"namespace":"n","name":"a"}}]}`, readA: `{}`,
			classes: `{"items":[{"metadata":{"name":"z","annotations":{"storageclass.kubernetes.io/is-default-class":"true"}}},{"metadata":{"name":"a","annotations":{"storageclass.kubevirt.io/is-default-virt-class":"true"}}}]}`}, of(named), "Thing n/a not set []"},
		{"no default class", map[string]string{things: thing, classes: empty}, of(named), "no default storage class"},
	}
	for _, tt := range tests {
		c, _ := settingsOn(t, tt.answers)
		list, err := findSettings(context.Background(), c, tt.values)
		got := fmt.Sprint(err)
		if err == nil {
			var repeats []string
			for _, r := range list[0].repeats {
				repeats = append(repeats, r.what)
			}
			got = fmt.Sprintf("%s %s %v", list[0].what, value(list[0].was), repeats)
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.why, got, tt.want)
		}
	}
}

// A patch names the version that it changes, and is made again where somebody
// else was first; what is gone needs nothing.
func TestRewriteObject(t *testing.T) {
	c, patches := settingsOn(t, map[string]string{"/apis/x/v1/things/a": `{"metadata":{"name":"a","resourceVersion":"7"},"spec":{"b":1}}`})
	told, _, err := RewriteObject(context.Background(), c, "/apis/x/v1/things/a", "run1", asked("spec.a=2"), false)
	if err != nil || len(told) != 1 || len(*patches) != 2 {
		t.Fatalf("told %q, patches %q, %v", told, *patches, err)
	}
	want := `{"metadata":{"annotations":{"plimsoll.dev/was":"[{\"keys\":[\"spec\",\"a\"],\"set\":2,\"there\":1}]"},"labels":{"plimsoll.dev/changed-by":"run1"},"resourceVersion":"7"},"spec":{"a":2}}`
	if (*patches)[1] != want {
		t.Errorf("patch %s", (*patches)[1])
	}
	if _, _, err := RewriteObject(context.Background(), c, "/apis/x/v1/things/gone", "run1", nil, false); err != nil {
		t.Errorf("what is gone: %v", err)
	}
	if _, _, err := RewriteObject(context.Background(), c, "/apis/x/v1/things/gone", "run1", asked("spec.a=2"), false); err == nil {
		t.Error("what is gone is changed")
	}
}
