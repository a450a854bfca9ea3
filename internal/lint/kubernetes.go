package lint

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/util/validation"

	"plimsoll.dev/plimsoll/internal/nearest"
	"plimsoll.dev/plimsoll/internal/strictyaml"
)

// object is an object of Kubernetes in a document.
type object struct {
	doc              *doc
	root             *node
	path             string // of the object in its document
	apiVersion, kind string
	group            string
	namespace, name  string
}

func (o *object) get(keys ...string) *node { return dig(o.root, keys...) }

func (o *object) key(keys ...string) string {
	path := o.path
	for _, k := range keys {
		path = strictyaml.Key(path, k)
	}
	return path
}

// at is the place of a value below the object, or of the nearest mapping that
// is there.
func (o *object) at(keys ...string) place {
	n, path := o.root, o.path
	at := o.doc.at(n, path)
	for _, k := range keys {
		e, ok := entryOf(n, k)
		if !ok {
			break
		}
		path = strictyaml.Key(path, k)
		n = e.Value
		at = o.doc.atKey(e, path)
		if n.Kind() == strictyaml.Scalar && !isNull(n) {
			at = o.doc.at(n, path)
		}
	}
	return at
}

func (o *object) String() string {
	if o.name == "" {
		return "the " + o.kind
	}
	return o.kind + " " + o.name
}

// object looks at an object, and at those inside of a list or a template.
func (l *linter) object(d *doc, root *node, path string) {
	o := &object{
		doc: d, root: root, path: path, apiVersion: textOf(root.Get("apiVersion")), kind: textOf(root.Get("kind")),
		namespace: textOf(dig(root, "metadata", "namespace")), name: textOf(dig(root, "metadata", "name")),
	}
	if group, _, ok := strings.Cut(o.apiVersion, "/"); ok {
		o.group = group
	}
	if o.kind == "List" || strings.HasSuffix(o.kind, "List") && root.Get("items") != nil && o.kind != "AllowList" {
		for i, item := range itemsOf(root.Get("items")) {
			if item.Kind() == strictyaml.Mapping {
				l.object(d, item, strictyaml.Index(strictyaml.Key(path, "items"), i))
			}
		}
		return
	}
	l.recognised = true
	l.apiVersion(o)
	if o.kind == "Template" && o.group == "template.openshift.io" {
		d.templated = true
		for i, item := range itemsOf(root.Get("objects")) {
			if item.Kind() == strictyaml.Mapping {
				l.object(d, item, strictyaml.Index(strictyaml.Key(path, "objects"), i))
			}
		}
		return
	}
	l.objects = append(l.objects, o)
	if o.kind != "KubeletConfiguration" {
		l.metadata(o)
	}
	if t := kindOf(o.apiVersion, o.kind); t != nil {
		fits := &fit{linter: l, doc: d, what: article(o.kind)}
		fits.unknown = func(f frame, e strictyaml.Entry) bool { return l.unknownHere(o, f, e) }
		fits.value(root, t, path)
	}
	l.modes(o, root, path)
	l.kind(o)
}

// article is a kind with its article.
func article(kind string) string {
	if strings.ContainsAny(kind[:1], "AEIO") {
		return "an " + kind
	}
	return "a " + kind
}

// unknownHere has something better to say of some keys than that they are not
// known.
func (l *linter) unknownHere(o *object, f frame, e strictyaml.Entry) bool {
	return l.cloudInitLevel(o.doc, f, e)
}

// kind holds an object against the rules of its kind.
func (l *linter) kind(o *object) {
	switch o.kind {
	case "Pod":
		l.podSpec(o, "spec")
	case "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet":
		l.selector(o)
		l.podSpec(o, "spec", "template", "spec")
	case "Job", "DeploymentConfig", "ReplicationController":
		l.podSpec(o, "spec", "template", "spec")
	case "CronJob":
		l.podSpec(o, "spec", "jobTemplate", "spec", "template", "spec")
	case "PodDisruptionBudget":
		l.disruptionBudget(o)
	case "VirtualMachine":
		l.virtualMachine(o)
	case "VirtualMachineInstance":
		l.machineSpec(o, "spec")
	case "VirtualMachineInstanceReplicaSet":
		l.machineSpec(o, "spec", "template", "spec")
	case "VirtualMachinePool":
		l.machineSpec(o, "spec", "virtualMachineTemplate", "spec", "template", "spec")
	case "StorageProfile":
		l.storageProfile(o)
	case "MachineConfigPool":
		l.machineConfigPool(o)
	case "MachineConfig":
		if config := o.get("spec", "config"); config != nil {
			l.role = textOf(o.get("metadata", "labels", roleLabel))
			l.ignition(o.doc, config, o.key("spec", "config"))
			l.role = ""
		}
	case "KubeletConfig":
		l.kubeletConfig(o)
	case "KubeletConfiguration":
		l.kubeletRanges(o.doc, o.root, o.path)
	case "IngressController":
		l.ingressController(o)
	case "Tuned":
		l.tunedObject(o)
	case "ConfigMap":
		l.configMap(o)
	case "Network":
		if o.group == "config.openshift.io" || o.group == "operator.openshift.io" {
			l.clusterNetworks(o.doc, o.get("spec"), o.key("spec"))
		}
	}
}

// metadata holds names and labels against the rules of the API.
func (l *linter) metadata(o *object) {
	if strings.HasSuffix(o.kind, "Review") {
		return // a question, which has no name
	}
	named := l.hasName(o)
	metadata, ok := entryOf(o.root, "metadata")
	if !ok || isNull(metadata.Value) {
		if named {
			l.report("missing-name", o.at(), "write metadata.name", article(o.kind)+" without metadata")
		}
		return
	}
	name, hasName := entryOf(metadata.Value, "name")
	generate := textOf(metadata.Value.Get("generateName"))
	switch {
	case hasName && textOf(name.Value) == "" && generate == "":
		l.report("missing-name", o.doc.atKey(name, o.key("metadata", "name")), "write a name", article(o.kind)+" without a name")
	case !hasName && generate == "" && named:
		l.report("missing-name", o.doc.atKey(metadata, o.key("metadata")), "write metadata.name", article(o.kind)+" without a name")
	case hasName && !hasHole(o.name) && o.name != "":
		l.nameRules(o, name.Value)
	}
	for _, keys := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
		for _, which := range []string{"labels", "annotations"} {
			for _, e := range entriesOf(o.get(append(keys, which)...)) {
				l.labelRules(o.doc, which, e, o.key(append(keys, which)...))
			}
		}
	}
}

// hasName reports whether objects of a kind have names: those that are stored
// do.
func (l *linter) hasName(o *object) bool {
	t := kindOf(o.apiVersion, o.kind)
	if t == nil {
		return false
	}
	set := l.shapes.of(t)
	i, ok := set.byName["metadata"]
	return ok && set.fields[i].typ == reflect.TypeFor[metav1.ObjectMeta]()
}

// nameRules holds a name against what the API allows: names of cluster objects
// of RBAC, of nodes' paths and the like are path segments, all others are DNS
// names.
func (l *linter) nameRules(o *object, name *node) {
	if o.group == "rbac.authorization.k8s.io" || strings.HasPrefix(o.kind, "Cluster") || o.kind == "Role" || o.kind == "RoleBinding" {
		return
	}
	if kindOf(o.apiVersion, o.kind) == nil {
		return
	}
	problems := validation.NameIsDNSSubdomain(o.name, false)
	if o.kind == "Service" || o.kind == "Namespace" {
		problems = metavalidation.IsDNS1123Label(o.name)
	}
	if len(problems) == 0 {
		return
	}
	l.report("bad-name", o.doc.at(name, o.key("metadata", "name")),
		fmt.Sprintf("write small letters, digits and dashes: %s", dnsName(o.name)), fmt.Sprintf("%s cannot be the name of %s", o.name, article(o.kind)))
}

// dnsName is a text as the name of an object.
func dnsName(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.':
			b.WriteRune(r)
		default:
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-.")
}

func (l *linter) labelRules(d *doc, which string, e strictyaml.Entry, path string) {
	inner := strictyaml.Key(path, e.Key)
	if hasHole(e.Key) {
		return
	}
	if problems := metavalidation.IsQualifiedName(strings.ToLower(e.Key)); len(problems) > 0 {
		l.report("bad-label", d.atKey(e, inner), "write [domain/]name, the name of at most 63 letters, digits, dashes, dots and underscores", fmt.Sprintf("%q cannot be a key of %s", e.Key, which))
	}
	if which != "labels" || e.Value.Kind() != strictyaml.Scalar || isNull(e.Value) || hasHole(e.Value.Text()) {
		return
	}
	if problems := metavalidation.IsValidLabelValue(e.Value.Text()); len(problems) > 0 {
		l.report("bad-label", d.at(e.Value, inner), "write at most 63 letters, digits, dashes, dots and underscores", fmt.Sprintf("%q cannot be the value of a label", e.Value.Text()))
	}
}

// octal are file modes as people say them.
func octal() []string {
	return []string{"400", "440", "444", "500", "550", "555", "600", "640", "644", "660", "664", "666", "700", "750", "755", "770", "775", "777", "1777"}
}

// modes finds modes of files whose octal digits stand there as a decimal
// number.
func (l *linter) modes(o *object, n *node, path string) {
	for i, item := range n.Items() {
		l.modes(o, item, strictyaml.Index(path, i))
	}
	for _, e := range n.Entries() {
		inner := strictyaml.Key(path, e.Key)
		if (e.Key == "mode" || e.Key == "defaultMode") && e.Value.Kind() == strictyaml.Scalar && e.Value.Plain() && slices.Contains(octal(), e.Value.Text()) {
			var decimal int64
			fmt.Sscanf(e.Value.Text(), "%o", &decimal)
			var meant int64
			fmt.Sscanf(e.Value.Text(), "%d", &meant)
			l.report("file-mode", o.doc.at(e.Value, inner), fmt.Sprintf("write %d, which is 0%s", decimal, e.Value.Text()),
				fmt.Sprintf("%s %s is a decimal number: it means 0%o", e.Key, e.Value.Text(), meant), o.doc.replaceScalar(e.Value, fmt.Sprint(decimal))...)
			continue
		}
		l.modes(o, e.Value, inner)
	}
}

// selector holds the selector of a workload against its own template.
func (l *linter) selector(o *object) {
	want := o.get("spec", "selector", "matchLabels")
	if want == nil || o.get("spec", "template") == nil {
		return
	}
	have := stringMap(o.get("spec", "template", "metadata", "labels"))
	for _, e := range want.Entries() {
		value, ok := have[e.Key]
		if hasHole(textOf(e.Value)) || hasHole(value) || ok && value == textOf(e.Value) {
			continue
		}
		found := fmt.Sprintf("the selector wants %s=%s, and the template has no label %s", e.Key, textOf(e.Value), e.Key)
		if ok {
			found = fmt.Sprintf("the selector wants %s=%s, and the template has %s=%s", e.Key, textOf(e.Value), e.Key, value)
		}
		l.report("selector-mismatch", o.doc.at(e.Value, o.key("spec", "selector", "matchLabels", e.Key)), "write the same into both", found)
	}
}

// podSpec looks at what every pod has.
func (l *linter) podSpec(o *object, keys ...string) {
	spec := o.get(keys...)
	if spec == nil {
		return
	}
	path := o.key(keys...)
	for _, list := range []string{"initContainers", "containers"} {
		for i, c := range itemsOf(spec.Get(list)) {
			inner := strictyaml.Index(strictyaml.Key(path, list), i)
			l.resources(o.doc, c.Get("resources"), strictyaml.Key(inner, "resources"))
			l.image(o.doc, c.Get("image"), strictyaml.Key(inner, "image"))
			l.environment(o.doc, c.Get("env"), strictyaml.Key(inner, "env"))
		}
	}
	if e, ok := entryOf(spec, "serviceAccount"); ok && spec.Get("serviceAccountName") == nil {
		l.report("deprecated-field", o.doc.atKey(e, strictyaml.Key(path, "serviceAccount")), "write serviceAccountName",
			"serviceAccount is the old name of serviceAccountName", o.doc.replaceKey(e, "serviceAccountName")...)
	}
	if o.kind == "Deployment" || o.kind == "ReplicaSet" || o.kind == "StatefulSet" || o.kind == "DaemonSet" {
		if policy := spec.Get("restartPolicy"); textOf(policy) != "" && textOf(policy) != "Always" && !hasHole(textOf(policy)) {
			l.report("bad-value", o.doc.at(policy, strictyaml.Key(path, "restartPolicy")), "write Always, or make it a Job",
				fmt.Sprintf("the pods of %s are always restarted, restartPolicy cannot be %q", article(o.kind), textOf(policy)))
		}
	}
	for i, s := range itemsOf(dig(spec, "securityContext", "sysctls")) {
		name, value := s.Get("name"), s.Get("value")
		if textOf(name) == "" || textOf(value) == "" {
			continue
		}
		inner := strictyaml.Index(strictyaml.Key(path, "securityContext.sysctls"), i)
		l.setting(setting{key: textOf(name), value: textOf(value), atKey: o.doc.at(name, inner), atValue: o.doc.at(value, inner), scope: "pod:" + path})
	}
	l.oldNodeLabels(o.doc, spec.Get("nodeSelector"), strictyaml.Key(path, "nodeSelector"))
}

// resources holds requests against limits.
func (l *linter) resources(d *doc, resources *node, path string) {
	limits := stringMap(dig(resources, "limits"))
	for _, e := range entriesOf(dig(resources, "requests")) {
		limit, ok := limits[e.Key]
		if !ok || e.Value.Kind() != strictyaml.Scalar {
			continue
		}
		want, err := resource.ParseQuantity(e.Value.Text())
		have, err2 := resource.ParseQuantity(limit)
		if err == nil && err2 == nil && want.Cmp(have) > 0 {
			l.report("request-above-limit", d.at(e.Value, strictyaml.Key(path, "requests."+e.Key)), "raise the limit, or lower the request",
				fmt.Sprintf("the request of %s for %s is above the limit of %s", e.Value.Text(), e.Key, limit))
		}
	}
}

// image finds registries that are no more.
func (l *linter) image(d *doc, image *node, path string) {
	text := textOf(image)
	for old, fresh := range map[string]string{
		"gcr.io/google_containers/": "registry.k8s.io/", "gcr.io/google-containers/": "registry.k8s.io/", "k8s.gcr.io/": "registry.k8s.io/",
	} {
		rest, is := strings.CutPrefix(text, old)
		if !is {
			continue
		}
		found := fmt.Sprintf("%s is frozen since 2023", strings.TrimSuffix(old, "/"))
		if old != "k8s.gcr.io/" {
			found = fmt.Sprintf("%s was the registry before k8s.gcr.io, which is frozen too", strings.TrimSuffix(old, "/"))
		}
		mend := "pull " + fresh + rest
		var edits []edit
		if name, tag, ok := strings.Cut(rest, ":"); ok && strings.HasPrefix(name, "pause") && (tag < "3.1" || strings.HasPrefix(name, "pause-")) {
			// There is one name for all architectures today.
			mend = "pull registry.k8s.io/pause:3.10, which is for all architectures"
			edits = d.replaceScalar(image, "registry.k8s.io/pause:3.10")
		} else if old == "k8s.gcr.io/" {
			edits = d.replaceScalar(image, fresh+rest)
		}
		l.report("old-registry", d.at(image, path), mend, found, edits...)
	}
}

// oldNodeLabels finds labels of nodes that were renamed.
func (l *linter) oldNodeLabels(d *doc, labels *node, path string) {
	renamed := map[string]string{
		"beta.kubernetes.io/arch": "kubernetes.io/arch", "beta.kubernetes.io/os": "kubernetes.io/os",
		"beta.kubernetes.io/instance-type":         "node.kubernetes.io/instance-type",
		"failure-domain.beta.kubernetes.io/zone":   "topology.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
		"node-role.kubernetes.io/master":           "node-role.kubernetes.io/control-plane",
	}
	for _, e := range entriesOf(labels) {
		if fresh, ok := renamed[e.Key]; ok {
			var edits []edit
			if e.Key != "node-role.kubernetes.io/master" && labels.Get(fresh) == nil {
				edits = d.replaceKey(e, fresh)
			}
			l.report("deprecated-field", d.atKey(e, strictyaml.Key(path, e.Key)), "write "+fresh, fmt.Sprintf("the label %s was renamed", e.Key), edits...)
		}
	}
}

// disruptionBudget finds budgets that no drain gets past.
func (l *linter) disruptionBudget(o *object) {
	spec := o.get("spec")
	least, most := spec.Get("minAvailable"), spec.Get("maxUnavailable")
	if least != nil && most != nil {
		l.report("pdb-both", o.doc.atEntry(spec, "maxUnavailable", o.key("spec")), "keep one of minAvailable and maxUnavailable", "both minAvailable and maxUnavailable")
	}
	switch {
	case textOf(most) == "0" || textOf(most) == "0%":
		l.report("pdb-blocks-drain", o.doc.at(most, o.key("spec", "maxUnavailable")), "allow one pod to be away: maxUnavailable: 1", fmt.Sprintf("maxUnavailable is %s: no pod may ever be evicted", textOf(most)))
	case textOf(least) == "100%":
		l.report("pdb-blocks-drain", o.doc.at(least, o.key("spec", "minAvailable")), "allow one pod to be away: maxUnavailable: 1", "minAvailable is 100%: no pod may ever be evicted")
	}
}

// budgetsAgainstReplicas holds disruption budgets against the workloads that
// they are for.
func (l *linter) budgetsAgainstReplicas() {
	type group struct {
		o      *object
		labels map[string]string
		many   int64
	}
	// By namespace and one label, so that not every budget meets every
	// workload.
	index := make(map[[3]string][]group)
	for _, o := range l.objects {
		if o.kind != "Deployment" && o.kind != "StatefulSet" && o.kind != "ReplicaSet" {
			continue
		}
		many := int64(1)
		if n := o.get("spec", "replicas"); n != nil {
			v, ok := n.Value().(int64)
			if !ok {
				continue
			}
			many = v
		}
		labels := stringMap(o.get("spec", "template", "metadata", "labels"))
		for k, v := range labels {
			index[[3]string{o.namespace, k, v}] = append(index[[3]string{o.namespace, k, v}], group{o, labels, many})
		}
	}
	for _, o := range l.objects {
		if o.kind != "PodDisruptionBudget" {
			continue
		}
		least := o.get("spec", "minAvailable")
		want := stringMap(o.get("spec", "selector", "matchLabels"))
		if least == nil || len(want) == 0 || o.get("spec", "selector", "matchExpressions") != nil {
			continue
		}
		bound, ok := least.Value().(int64)
		if !ok {
			continue
		}
		keys := slices.Sorted(maps.Keys(want))
		var all int64
		var names []string
		for _, g := range index[[3]string{o.namespace, keys[0], want[keys[0]]}] {
			matches := true
			for k, v := range want {
				matches = matches && g.labels[k] == v
			}
			if matches {
				all += g.many
				names = append(names, g.o.String())
			}
		}
		if len(names) > 0 && all > 0 && bound >= all {
			l.report("pdb-blocks-drain", o.doc.at(least, o.key("spec", "minAvailable")), "lower minAvailable below the replicas, or raise those",
				fmt.Sprintf("minAvailable is %d, and %s has %d replicas: no pod may ever be evicted", bound, strings.Join(names, " and "), all))
		}
	}
}

// configMap looks into the files that a ConfigMap carries.
func (l *linter) configMap(o *object) {
	for _, e := range entriesOf(o.get("data")) {
		if e.Value.Kind() == strictyaml.Scalar && e.Value.Literal() {
			if t, ok := o.doc.literal(e.Value, e.Key); ok && l.wouldRecognise(t) {
				l.text(t)
			}
		}
	}
}

// environment holds the router's settings against what the router reads.
func (l *linter) environment(d *doc, env *node, path string) {
	taken := make(map[string]bool)
	for _, e := range itemsOf(env) {
		taken[textOf(e.Get("name"))] = true
	}
	for i, e := range itemsOf(env) {
		name, value := e.Get("name"), e.Get("value")
		inner := strictyaml.Index(path, i)
		v := variable{name: textOf(name), atName: d.at(name, strictyaml.Key(inner, "name")), hasValue: value != nil, value: textOf(value), atValue: d.at(value, strictyaml.Key(inner, "value"))}
		v.rename = func(fresh string) []edit {
			if taken[fresh] {
				return nil
			}
			return d.replaceScalar(name, fresh)
		}
		l.routerVariable(v)
	}
}

// near is the hint for a misspelling, or "".
func near(word string, known []string, otherwise string) string {
	if w, ok := nearest.Word(word, known); ok {
		return "did you mean " + w + "?"
	}
	return otherwise
}
