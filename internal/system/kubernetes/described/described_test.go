package described

import (
	"strings"
	"testing"
	"testing/fstest"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
)

// things is a workload of objects whose description follows in its ninth line.
const things = `schema: plimsoll/workload/v1
name: things
help: some things
config: c.yml
axes: [{name: level, unit: things, help: how many, default: {from: 1, step: 1, max: 2}}]
target: cluster
goals: {there: [all There]}
primary: There p50
objects: `

func load(target, objects string) (*workload.Workload, error) {
	axes := map[string]workload.TargetAxis{"level": {Loop: workload.Closed}}
	targets := workload.TargetsOf(workload.Target{Name: "cluster", Configured: true, Axes: axes, Objects: OfMachines, Kind: record.ObjectKind{Created: "Created", Gone: "Gone"}},
		workload.Target{Name: "plain", Configured: true, Axes: axes, Objects: New, Kind: record.ObjectKind{Created: "Created", Gone: "Gone"}},
		workload.Target{Name: "other", Configured: true, Axes: axes, Kind: record.ObjectKind{Milestones: []record.Milestone{{Name: "There"}}, There: "There"}})
	text := strings.Replace(things, "target: cluster", "target: "+target, 1) + objects + "\n"
	return workload.Read(fstest.MapFS{"workload.yaml": {Data: []byte(text)}, "c.yml": {Data: []byte("jobs: []\n")}}, targets)
}

// What only the target reads is refused with the place where it stands.
func TestDescriptionErrors(t *testing.T) {
	const begin = "{noun: {one: thing, many: things}, resources: [{name: thing, apiVersion: v1, kind: Thing}], "
	milestone := func(more string) string {
		return begin + "milestones: [{name: There, by: x" + more + "}], there: There}"
	}
	for _, c := range []struct{ why, target, objects, want string }{
		{"a good one", "cluster", milestone(""), ""},
		{"on a target that describes itself", "other", milestone(""), "workload.yaml:9:1: objects: the target other says itself what is followed"},
		{"an unknown key", "cluster", "{nown: x}", `workload.yaml:9:11: objects: unknown key "nown" (did you mean "noun"?)`},
		{"an unknown key of a probe", "cluster", milestone(", probe: {fyo: x}"), `workload.yaml:9:144: objects.milestones[0].probe: unknown key "fyo" (did you mean "fio"?)`},
		{"a number of another type", "cluster", milestone(", probe: {addresses: [a], port: b}"), `objects.milestones[0].probe.port: `},
		{"a login without a key", "cluster", milestone(", probe: {addresses: [a], port: 22, fio: cat}"), "objects.milestones[0].probe.fio: needs a parameter sshKey, which lets it in"},
		{"a login at whoever answers", "cluster", milestone(", probe: {addresses: [a], port: 22, fio: cat}"), "objects.milestones[0].probe.fio: needs a parameter sshHostKey, by which the machine is known"},
		{"a server on a target that calls none", "plain", milestone(", probe: {addresses: [a], port: 22}"), "objects.milestones[0].probe: the target plain calls no servers"},
		{"a drain on a target without", "plain", begin + "setUp: [{job: j}], begin: {drain: {nodes: a, pods: b}}, milestones: [{name: There, by: x}], there: There}", "objects.begin.drain: the target plain drains no nodes"},
		{"a drain of nodes and pools", "cluster", begin + "setUp: [{job: j}], begin: {drain: {nodes: a, pods: b, pools: c}}, milestones: [{name: There, by: x}], there: There}", "objects.begin.drain: needs the label selectors pods and either nodes or pools"},
		{"two resources of one name", "cluster", "{noun: {one: thing, many: things}, resources: [{name: a, apiVersion: v1, kind: A}, {name: a, apiVersion: v1, kind: B}], milestones: [{name: There, by: x}], there: There}", `objects.resources[1].name: the name "a" is taken`},
	} {
		_, err := load(c.target, c.objects)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "workload.yaml:9:")) {
			t.Errorf("%s:\n got %v\nwant %s", c.why, err, c.want)
		}
	}
}

func TestOf(t *testing.T) {
	if Of(nil) != nil || Of(&workload.Workload{}) != nil {
		t.Error("objects of nothing")
	}
	w, err := load("cluster", "{noun: {one: thing, many: things}, resources: [{name: thing, apiVersion: v1, kind: Thing}], milestones: [{name: There, by: x}], there: There}")
	if err != nil || Of(w).Noun.Many != "things" || w.KindOn("level").There != "There" {
		t.Errorf("got %+v, %v", w, err)
	}
}
