package lint

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/util/validation"

	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// object is an object of Kubernetes in a document.
type object struct {
	value
	apiVersion, kind, group string
	namespace, name         string
}

// closest is the place of a value below the object, or of the nearest mapping
// that is there.
func (o *object) closest(keys ...string) place {
	v := o.value
	at := v.at()
	for _, k := range keys {
		raw, ok := entryOf(v.node, k)
		if !ok {
			break
		}
		v = v.get(k)
		at = v.doc.atKey(raw, v.path)
		if v.node.Kind() == strictyaml.Scalar && !isNull(v.node) {
			at = v.at()
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

// lookAtObject looks at an object, and at those inside of a list or a template.
func lookAtObject(v value) (out report) {
	o := &object{
		value: v, apiVersion: v.get("apiVersion").text(), kind: v.get("kind").text(),
		namespace: v.get("metadata", "namespace").text(), name: v.get("metadata", "name").text(),
	}
	if group, _, ok := strings.Cut(o.apiVersion, "/"); ok {
		o.group = group
	}
	inner := func(key string) report {
		for _, item := range v.get(key).items() {
			if item.node.Kind() == strictyaml.Mapping {
				out.add(lookAtObject(item))
			}
		}
		return out
	}
	if o.kind == "List" || strings.HasSuffix(o.kind, "List") && v.get("items").node != nil && o.kind != "AllowList" {
		return inner("items")
	}
	out.recognised = true
	out.add(checkVersion(o))
	if o.kind == "Template" && o.group == "template.openshift.io" {
		v.doc.templated = true
		return inner("objects")
	}
	out.objects = append(out.objects, o)
	if o.kind != "KubeletConfiguration" {
		out.add(checkMetadata(o))
	}
	if t := kindOf(o.apiVersion, o.kind); t != nil {
		out.add(fits(v, article(o.kind), t))
	}
	out.add(checkModes(v))
	out.add(checkKind(o))
	return out
}

// article is a kind with its article.
func article(kind string) string {
	if strings.ContainsAny(kind[:1], "AEIO") {
		return "an " + kind
	}
	return "a " + kind
}

// checkKind holds an object against the rules of its kind.
func checkKind(o *object) (out report) {
	spec := o.get("spec")
	template := spec.get("template", "spec")
	switch o.kind {
	case "Pod":
		return checkPodSpec(o, spec)
	case "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet":
		out.add(checkSelector(o))
		out.add(checkPodSpec(o, template))
	case "Job", "DeploymentConfig", "ReplicationController":
		return checkPodSpec(o, template)
	case "CronJob":
		return checkPodSpec(o, spec.get("jobTemplate", "spec", "template", "spec"))
	case "PodDisruptionBudget":
		return checkBudget(spec)
	case "VirtualMachine":
		return checkVirtualMachine(o)
	case "VirtualMachineInstance":
		return checkMachine(o, spec)
	case "VirtualMachineInstanceReplicaSet":
		return checkMachine(o, template)
	case "VirtualMachinePool":
		return checkMachine(o, spec.get("virtualMachineTemplate", "spec", "template", "spec"))
	case "StorageProfile":
		out.add(checkCloneStrategy(spec))
		if e, ok := o.get("metadata").entry("namespace"); ok {
			out.find("cluster-scoped", e.keyAt(), "remove it", "a StorageProfile has no namespace", o.get("metadata").remove("namespace")...)
		}
	case "MachineConfigPool":
		return checkPool(o)
	case "MachineConfig":
		if config := spec.get("config"); config.node != nil {
			return ignitionConfig(config, o.get("metadata", "labels", roleLabel).text())
		}
	case "KubeletConfig":
		return checkKubeletConfig(o)
	case "KubeletConfiguration":
		return checkKubelet(o.value)
	case "IngressController":
		return checkIngressController(spec.get("tuningOptions"))
	case "Tuned":
		return checkTuned(spec)
	case "ConfigMap":
		for _, e := range o.get("data").entries() {
			if t, ok := o.doc.literal(e.node, e.key()); ok && wouldRecognise(t) {
				out.add(lookAt(t))
			}
		}
	case "Network":
		if o.group == "config.openshift.io" || o.group == "operator.openshift.io" {
			return checkClusterNetworks(spec)
		}
	}
	return out
}

// checkMetadata holds names and labels against the rules of the API.
func checkMetadata(o *object) (out report) {
	if strings.HasSuffix(o.kind, "Review") {
		return // a question, which has no name
	}
	named := hasName(o)
	metadata, ok := o.entry("metadata")
	if !ok {
		if named {
			out.find("missing-name", o.closest(), "write metadata.name", article(o.kind)+" without metadata")
		}
		return
	}
	_, hasName := entryOf(metadata.node, "name")
	name, _ := metadata.entry("name")
	generate := metadata.get("generateName").text()
	switch {
	case hasName && name.text() == "" && generate == "":
		out.find("missing-name", name.keyAt(), "write a name", article(o.kind)+" without a name")
	case !hasName && generate == "" && named:
		out.find("missing-name", metadata.keyAt(), "write metadata.name", article(o.kind)+" without a name")
	case hasName && !hasHole(o.name) && o.name != "":
		out.add(checkName(o, name.value))
	}
	for _, v := range []value{metadata.value, o.get("spec", "template", "metadata")} {
		for _, which := range []string{"labels", "annotations"} {
			for _, e := range v.get(which).entries() {
				out.add(checkLabel(which, e))
			}
		}
	}
	return out
}

// hasName reports whether objects of a kind have names: those that are stored
// do.
func hasName(o *object) bool {
	t := kindOf(o.apiVersion, o.kind)
	if t == nil {
		return false
	}
	set := o.doc.text.of(t)
	i, ok := set.byName["metadata"]
	return ok && set.fields[i].typ == reflect.TypeFor[metav1.ObjectMeta]()
}

// checkName holds a name against what the API allows: names of cluster objects
// of RBAC, of nodes' paths and the like are path segments, all others are DNS
// names.
func checkName(o *object, name value) (out report) {
	if o.group == "rbac.authorization.k8s.io" || strings.HasPrefix(o.kind, "Cluster") || o.kind == "Role" || o.kind == "RoleBinding" ||
		kindOf(o.apiVersion, o.kind) == nil {
		return
	}
	problems := validation.NameIsDNSSubdomain(o.name, false)
	if o.kind == "Service" || o.kind == "Namespace" {
		problems = metavalidation.IsDNS1123Label(o.name)
	}
	if len(problems) > 0 {
		out.find("bad-name", name.at(), "write small letters, digits and dashes: "+dnsName(o.name), fmt.Sprintf("%s cannot be the name of %s", o.name, article(o.kind)))
	}
	return out
}

// dnsName is a text as the name of an object.
func dnsName(text string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(text)), "-.")
}

// checkLabel holds a label or an annotation against the rules of the API.
func checkLabel(which string, e entry) (out report) {
	if hasHole(e.key()) {
		return
	}
	if problems := metavalidation.IsQualifiedName(strings.ToLower(e.key())); len(problems) > 0 {
		out.find("bad-label", e.keyAt(), "write [domain/]name, the name of at most 63 letters, digits, dashes, dots and underscores", fmt.Sprintf("%q cannot be a key of %s", e.key(), which))
	}
	text := e.text()
	if which == "labels" && !hasHole(text) && len(metavalidation.IsValidLabelValue(text)) > 0 {
		out.find("bad-label", e.at(), "write at most 63 letters, digits, dashes, dots and underscores", fmt.Sprintf("%q cannot be the value of a label", text))
	}
	return out
}

// checkModes finds modes of files whose octal digits stand there as a decimal
// number.
func checkModes(v value) (out report) {
	octal := strings.Fields("400 440 444 500 550 555 600 640 644 660 664 666 700 750 755 770 775 777 1777") // as people say them
	v.walk(func(e entry) bool {
		if e.key() != "mode" && e.key() != "defaultMode" || e.node.Kind() != strictyaml.Scalar || !e.node.Plain() || !slices.Contains(octal, e.text()) {
			return true
		}
		decimal, _ := strconv.ParseInt(e.text(), 8, 64)
		meant, _ := strconv.ParseInt(e.text(), 10, 64)
		out.find("file-mode", e.at(), fmt.Sprintf("write %d, which is 0%s", decimal, e.text()),
			fmt.Sprintf("%s %s is a decimal number: it means 0%o", e.key(), e.text(), meant), e.replace(fmt.Sprint(decimal))...)
		return false
	})
	return out
}

// checkSelector holds the selector of a workload against its own template.
func checkSelector(o *object) (out report) {
	if o.get("spec", "template").node == nil {
		return
	}
	have := stringMap(o.get("spec", "template", "metadata", "labels").node)
	for _, e := range o.get("spec", "selector", "matchLabels").entries() {
		label, ok := have[e.key()]
		if hasHole(e.text()) || hasHole(label) || ok && label == e.text() {
			continue
		}
		found := fmt.Sprintf("the selector wants %s=%s, and the template has no label %s", e.key(), e.text(), e.key())
		if ok {
			found = fmt.Sprintf("the selector wants %s=%s, and the template has %s=%s", e.key(), e.text(), e.key(), label)
		}
		out.find("selector-mismatch", e.at(), "write the same into both", found)
	}
	return out
}

// checkPodSpec looks at what every pod has.
func checkPodSpec(o *object, spec value) (out report) {
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range spec.get(list).items() {
			out.add(checkResources(c.get("resources")))
			out.add(checkImage(c.get("image")))
			out.add(checkEnvironment(c.get("env")))
		}
	}
	if raw, ok := entryOf(spec.node, "serviceAccount"); ok && spec.get("serviceAccountName").node == nil {
		e := entry{spec.get("serviceAccount"), raw}
		out.find("deprecated-field", e.keyAt(), "write serviceAccountName", "serviceAccount is the old name of serviceAccountName", e.rename("serviceAccountName")...)
	}
	if slices.Contains([]string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"}, o.kind) {
		policy := spec.get("restartPolicy")
		if text := policy.text(); text != "" && text != "Always" && !hasHole(text) {
			out.find("bad-value", policy.at(), "write Always, or make it a Job", fmt.Sprintf("the pods of %s are always restarted, restartPolicy cannot be %q", article(o.kind), text))
		}
	}
	for _, s := range spec.deep("securityContext.sysctls").items() {
		key, val := s.get("name"), s.get("value")
		if key.text() != "" && val.text() != "" {
			key.path, val.path = s.path, s.path
			out.add(checkSetting(setting{key: key.text(), value: val.text(), atKey: key.at(), atValue: val.at(), scope: "pod:" + spec.path}))
		}
	}
	out.add(checkNodeLabels(spec.get("nodeSelector")))
	return out
}

// checkResources holds requests against limits.
func checkResources(v value) (out report) {
	limits := stringMap(v.node.Get("limits"))
	for _, e := range entriesOf(v.node.Get("requests")) {
		limit, ok := limits[e.Key]
		if !ok || e.Value.Kind() != strictyaml.Scalar {
			continue
		}
		want, err := resource.ParseQuantity(e.Value.Text())
		have, err2 := resource.ParseQuantity(limit)
		if err == nil && err2 == nil && want.Cmp(have) > 0 {
			out.find("request-above-limit", v.doc.at(e.Value, strictyaml.Key(v.path, "requests."+e.Key)), "raise the limit, or lower the request",
				fmt.Sprintf("the request of %s for %s is above the limit of %s", e.Value.Text(), e.Key, limit))
		}
	}
	return out
}

// checkImage finds registries that are no more.
func checkImage(image value) (out report) {
	const today = "registry.k8s.io/"
	for _, old := range []string{"gcr.io/google_containers/", "gcr.io/google-containers/", "k8s.gcr.io/"} {
		rest, is := strings.CutPrefix(image.text(), old)
		if !is {
			continue
		}
		found := strings.TrimSuffix(old, "/") + " is frozen since 2023"
		if old != "k8s.gcr.io/" {
			found = strings.TrimSuffix(old, "/") + " was the registry before k8s.gcr.io, which is frozen too"
		}
		mend := "pull " + today + rest
		var edits []edit
		if name, tag, ok := strings.Cut(rest, ":"); ok && strings.HasPrefix(name, "pause") && (tag < "3.1" || strings.HasPrefix(name, "pause-")) {
			// There is one name for all architectures today.
			mend = "pull registry.k8s.io/pause:3.10, which is for all architectures"
			edits = image.replace("registry.k8s.io/pause:3.10")
		} else if old == "k8s.gcr.io/" {
			edits = image.replace(today + rest)
		}
		out.find("old-registry", image.at(), mend, found, edits...)
	}
	return out
}

// checkNodeLabels finds labels of nodes that were renamed.
func checkNodeLabels(labels value) (out report) {
	renamed := map[string]string{
		"beta.kubernetes.io/arch": "kubernetes.io/arch", "beta.kubernetes.io/os": "kubernetes.io/os",
		"beta.kubernetes.io/instance-type":         "node.kubernetes.io/instance-type",
		"failure-domain.beta.kubernetes.io/zone":   "topology.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
		"node-role.kubernetes.io/master":           "node-role.kubernetes.io/control-plane",
	}
	for _, e := range labels.entries() {
		if fresh, ok := renamed[e.key()]; ok {
			var edits []edit
			if e.key() != "node-role.kubernetes.io/master" && labels.get(fresh).node == nil {
				edits = e.rename(fresh)
			}
			out.find("deprecated-field", e.keyAt(), "write "+fresh, fmt.Sprintf("the label %s was renamed", e.key()), edits...)
		}
	}
	return out
}

// checkBudget finds budgets that no drain gets past.
func checkBudget(spec value) (out report) {
	least, most := spec.get("minAvailable"), spec.get("maxUnavailable")
	if least.node != nil && most.node != nil {
		out.find("pdb-both", spec.entryOrSelf("maxUnavailable"), "keep one of minAvailable and maxUnavailable", "both minAvailable and maxUnavailable")
	}
	const mend = "allow one pod to be away: maxUnavailable: 1"
	switch {
	case most.text() == "0" || most.text() == "0%":
		out.find("pdb-blocks-drain", most.at(), mend, fmt.Sprintf("maxUnavailable is %s: no pod may ever be evicted", most.text()))
	case least.text() == "100%":
		out.find("pdb-blocks-drain", least.at(), mend, "minAvailable is 100%: no pod may ever be evicted")
	}
	return out
}

// acrossBudgets holds disruption budgets against the workloads that they are
// for.
func acrossBudgets(f *facts) (out report) {
	type group struct {
		o      *object
		labels map[string]string
		many   int64
	}
	// By namespace and one label, so that not every budget meets every
	// workload.
	index := make(map[[3]string][]group)
	for _, o := range f.objects {
		if o.kind != "Deployment" && o.kind != "StatefulSet" && o.kind != "ReplicaSet" {
			continue
		}
		many := int64(1)
		if replicas := o.get("spec", "replicas"); replicas.node != nil {
			var ok bool
			if many, ok = replicas.integer(); !ok {
				continue
			}
		}
		labels := stringMap(o.get("spec", "template", "metadata", "labels").node)
		for k, v := range labels {
			index[[3]string{o.namespace, k, v}] = append(index[[3]string{o.namespace, k, v}], group{o, labels, many})
		}
	}
	for _, o := range f.objects {
		least := o.get("spec", "minAvailable")
		bound, ok := least.integer()
		want := stringMap(o.get("spec", "selector", "matchLabels").node)
		if o.kind != "PodDisruptionBudget" || !ok || len(want) == 0 || o.get("spec", "selector", "matchExpressions").node != nil {
			continue
		}
		keys := slices.Sorted(maps.Keys(want))
		var all int64
		var names []string
		for _, g := range index[[3]string{o.namespace, keys[0], want[keys[0]]}] {
			if !slices.ContainsFunc(keys, func(k string) bool { return g.labels[k] != want[k] }) {
				all += g.many
				names = append(names, g.o.String())
			}
		}
		if len(names) > 0 && all > 0 && bound >= all {
			out.find("pdb-blocks-drain", least.at(), "lower minAvailable below the replicas, or raise those",
				fmt.Sprintf("minAvailable is %d, and %s has %d replicas: no pod may ever be evicted", bound, strings.Join(names, " and "), all))
		}
	}
	return out
}

// checkEnvironment holds the router's settings against what the router reads.
func checkEnvironment(env value) (out report) {
	taken := make(map[string]bool)
	for _, e := range env.items() {
		taken[e.get("name").text()] = true
	}
	for _, e := range env.items() {
		name, value := e.get("name"), e.get("value")
		v := variable{name: name.text(), atName: name.at(), hasValue: value.node != nil, value: value.text(), atValue: value.at()}
		v.rename = func(fresh string) []edit {
			if taken[fresh] {
				return nil
			}
			return name.replace(fresh)
		}
		out.add(checkRouterVariable(v))
	}
	return out
}

// near is the hint for a misspelling, or "".
func near(word string, known []string, otherwise string) string {
	if w, ok := nearest.Word(word, known); ok {
		return "did you mean " + w + "?"
	}
	return otherwise
}
