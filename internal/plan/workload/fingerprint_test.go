package workload

import (
	"io/fs"
	"maps"
	"testing"
	"testing/fstest"
)

func TestFingerprint(t *testing.T) {
	files := fstest.MapFS{
		"w/workload.yaml": {Data: []byte("schema: plimsoll/workload/v1\nname: w\nhelp: a pod\nconfig: w.yaml\naxes: [{name: level, unit: pods/node, help: pods, default: {from: 1, step: 1, max: 2, resolution: 1}}]\n" +
			"params: [{name: image, type: string, default: a, help: an image}]\ntarget: things\ngoals: {ready: [all Ready]}\nprimary: Ready p50\nhold: 1s\n")},
		"w/w.yaml":    {Data: []byte("jobs:\n- name: j\n  jobIterations: 1\n  namespace: n\n  objects:\n  - objectTemplate: pod.yaml\n    replicas: 1\n")},
		"w/pod.yaml":  {Data: []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: 'p-{{.Iteration}}-{{.Replica}}'}\nspec: {containers: [{name: c, image: '{{.image}}'}]}\n")},
		"w/notes.txt": {Data: []byte("nobody reads this")},
	}
	of := func(change func(fstest.MapFS)) string {
		t.Helper()
		changed := maps.Clone(files)
		change(changed)
		w, err := Load(fs.FS(changed), "w", things)
		if err != nil {
			t.Fatal(err)
		}
		p, err := w.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := w.Fingerprint(p)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	edit := func(name string) func(fstest.MapFS) {
		return func(m fstest.MapFS) {
			m[name] = &fstest.MapFile{Data: append([]byte("# edited\n"), m[name].Data...)}
		}
	}
	same := of(func(fstest.MapFS) {})
	for _, c := range []struct {
		why    string
		change func(fstest.MapFS)
		same   bool
	}{
		{"nothing changed", func(fstest.MapFS) {}, true},
		{"a template", edit("w/pod.yaml"), false},
		{"the configuration", edit("w/w.yaml"), false},
		{"a file that makes no object", edit("w/notes.txt"), true},
		{"one more of these", func(m fstest.MapFS) { m["w/more.txt"] = &fstest.MapFile{} }, true},
	} {
		if got := of(c.change); (got == same) != c.same {
			t.Errorf("%s: %s, was %s", c.why, got, same)
		}
	}
}
