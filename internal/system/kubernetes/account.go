package kubernetes

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/survey"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/virt"
)

// Account holds a service account that has the rights that runs of a workload need, and no others.
type Account struct {
	Schema   string `json:"schema"`
	Workload string `json:"workload"`
	// Keeps names the existing namespace that the runs use, "" where they make their own.
	Keeps     string `json:"keepsTo,omitempty"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Rights begin with those that a run cannot do without; the optional ones follow.
	Rights []ceiling.Right `json:"rights"`
}

const accountSchema = "plimsoll/rbac/v1"

// Account returns the service account for runs of a request's workload, in an existing namespace or, with
// "", in those that runs make. It asks no cluster. The error is a mistake in the workload.
func (Provider) Account(r system.Request, namespace string) (Account, error) {
	if err := CheckNamespace(namespace); err != nil {
		return Account{}, system.Mistakef("for example --namespace team-a", "%w", err)
	}
	a := accountOf(r, namespace)
	all, err := renderingsOf(r, nil)
	if err != nil {
		return a, err
	}
	d, err := demandOf(r, virt.Of(r), all.variant)
	if err != nil {
		return a, err
	}
	d.Namespace = namespace
	a.Rights, err = survey.Rights(d, survey.Conventional())
	return a, mistakes(err)
}

// AccountOf returns the service account for runs of a workload that this package does not load.
func AccountOf(r system.Request, rights []ceiling.Right) Account {
	a := accountOf(r, "")
	a.Rights = rights
	return a
}

func accountOf(r system.Request, namespace string) Account {
	return Account{Schema: accountSchema, Workload: r.Workload.Name, Keeps: namespace, Name: "plimsoll-" + r.Workload.Name, Namespace: cmp.Or(namespace, metav1.NamespaceDefault), Rights: []ceiling.Right{}}
}

// scrapeRights returns the rights to scrape. Only plans for nodes get nodes/proxy, which also runs commands.
func scrapeRights(p *plan.Plan) []ceiling.Right {
	if p.Scrape.Every == 0 {
		return nil
	}
	list := []ceiling.Right{{Verb: "get", Resource: "/metrics", For: "reads the metrics of the API server", Optional: true}}
	if t := settingsOf(p); t.Scrape != nil && t.Scrape.Nodes > 0 {
		list = append(list, ceiling.Right{Verb: "get", Resource: "nodes/proxy", For: "reads the metrics of nodes (--scrape-nodes); it also lets its holder run commands in their containers", Optional: true})
	}
	return list
}

// Manifest returns the account with roles and bindings as commented YAML for kubectl apply.
func (a Account) Manifest() string {
	var b strings.Builder
	plain := a.Name
	a.Name, a.Namespace, a.Workload = scalar(a.Name), scalar(a.Namespace), scalar(a.Workload)
	runs := "makes its own namespaces"
	if a.Keeps != "" {
		runs = "keeps to namespace " + a.Keeps
	}
	fmt.Fprintf(&b, "# What a run of %s asks for, which %s.\n# Rules marked optional may be left out: a run then goes on, and tells less.\n", a.Workload, runs)
	fmt.Fprintf(&b, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s, namespace: %s}\n", a.Name, a.Namespace)
	spaces := make(map[string]bool)
	for _, r := range a.Rights {
		spaces[r.Where] = true
	}
	for _, where := range slices.Sorted(maps.Keys(spaces)) {
		kind, name, meta := "ClusterRole", a.Name, ""
		if where != "" {
			kind, meta = "Role", ", namespace: "+where
		} else if a.Keeps != "" {
			name = scalar(plain + "-" + a.Keeps) // one for each namespace that runs keep to
		}
		fmt.Fprintf(&b, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata: {name: %s%s}\nrules:\n", kind, name, meta)
		a.rules(&b, where)
		fmt.Fprintf(&b, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %sBinding\nmetadata: {name: %s%s}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s}\nsubjects:\n- {kind: ServiceAccount, name: %s, namespace: %s}\n",
			kind, name, meta, kind, name, a.Name, a.Namespace)
	}
	return b.String()
}

// plainScalar matches texts that need no quotes in YAML: names come from the workload's author.
var plainScalar = regexp.MustCompile(`^/?[A-Za-z0-9][A-Za-z0-9./*-]*$`)

func scalar(text string) string {
	if plainScalar.MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}

// rules writes the rules of one role, grouped by purpose: one for each resource.
func (a Account) rules(b *strings.Builder, where string) {
	var whats []string
	verbs := make(map[string][]string) // by purpose + resource
	resources := make(map[string][]string)
	for _, r := range a.Rights {
		what := r.For
		if r.Optional {
			what = "optional: " + r.For
		}
		if r.Where != where {
			continue
		}
		if resources[what] == nil {
			whats = append(whats, what)
		}
		key := what + r.Resource
		if verbs[key] == nil {
			resources[what] = append(resources[what], r.Resource)
		}
		verbs[key] = append(verbs[key], r.Verb)
	}
	for _, what := range whats {
		fmt.Fprintf(b, "# %s\n", what)
		for _, name := range resources[what] {
			list := strings.Join(verbs[what+name], ", ")
			if strings.HasPrefix(name, "/") {
				fmt.Fprintf(b, "- {nonResourceURLs: [%s], verbs: [%s]}\n", scalar(name), list)
				continue
			}
			resource, group, _ := strings.Cut(name, ".")
			fmt.Fprintf(b, "- {apiGroups: [%q], resources: [%s], verbs: [%s]}\n", group, scalar(resource), list)
		}
	}
}
