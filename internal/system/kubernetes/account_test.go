package kubernetes

import (
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
)

// Rights in a namespace are of a role there, all others of a cluster role, and the name
// of that says to which namespace it belongs: it would be another's as well.
func TestManifest(t *testing.T) {
	a := Account{Workload: "w", Keeps: "team", Name: "plimsoll-w", Namespace: "team", Rights: []ceiling.Right{
		{Verb: "create", Resource: "deployments.apps", Where: "team", For: "makes"},
		{Verb: "create", Resource: "pods", Where: "team", For: "makes"},
		{Verb: "patch", Resource: "pods", Where: "team", For: "changes"},
		{Verb: "delete", Resource: "pods", Where: "team", For: "makes"},
		{Verb: "list", Resource: "nodes", For: "counts"},
		{Verb: "get", Resource: "/metrics", For: "tells", Optional: true},
		{Verb: "update", Resource: "virtualmachines/restart.subresources.kubevirt.io", For: "asks"},
	}}
	for _, want := range []string{
		"kind: ServiceAccount\nmetadata: {name: plimsoll-w, namespace: team}\n---\n",
		`kind: ClusterRole
metadata: {name: plimsoll-w-team}
rules:
# counts
- {apiGroups: [""], resources: [nodes], verbs: [list]}
# optional: tells
- {nonResourceURLs: [/metrics], verbs: [get]}
# asks
- {apiGroups: ["subresources.kubevirt.io"], resources: [virtualmachines/restart], verbs: [update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: plimsoll-w-team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: plimsoll-w-team}
subjects:
- {kind: ServiceAccount, name: plimsoll-w, namespace: team}
`,
		`kind: Role
metadata: {name: plimsoll-w, namespace: team}
rules:
# makes
- {apiGroups: ["apps"], resources: [deployments], verbs: [create]}
- {apiGroups: [""], resources: [pods], verbs: [create, delete]}
# changes
- {apiGroups: [""], resources: [pods], verbs: [patch]}
`,
	} {
		if got := a.Manifest(); !strings.Contains(got, want) {
			t.Errorf("no\n%s\nin\n%s", want, got)
		}
	}
}

// A kind that a workload's template names becomes a resource, whatever it is called.
func TestNamesBeginNoOtherObject(t *testing.T) {
	a := Account{Workload: "w", Name: "plimsoll-w", Namespace: "default", Rights: []ceiling.Right{
		{Verb: "create", Resource: "x]}\n---\nkind: Secret\ns", For: "makes"},
		{Verb: "list", Resource: "widgets.ex]}\n---\nkind: Secret", For: "makes"},
	}}
	for doc := range strings.SplitSeq(a.Manifest(), "\n---\n") {
		var o struct{ Kind string }
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil || !strings.Contains("ServiceAccount ClusterRole ClusterRoleBinding", o.Kind) {
			t.Errorf("%q, %v in\n%s", o.Kind, err, doc)
		}
	}
}
