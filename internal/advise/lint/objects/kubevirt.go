package objects

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
	"plimsoll.dev/plimsoll/internal/advise/schema"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

func checkVirtualMachine(out *report.Report, o *report.Object) {
	spec := o.Get("spec")
	if e, ok := spec.Entry("running"); ok {
		running, isBool := e.Node.Value().(bool)
		switch {
		case spec.Get("runStrategy").Node != nil:
			out.Find("vm-running", e.KeyAt(), "remove running", "both running and runStrategy", spec.Remove("running")...)
		case isBool:
			strategy := "Halted"
			if running {
				strategy = "Always"
			}
			edits, key := e.Replace(strategy), e.Rename("runStrategy")
			if edits != nil && key != nil {
				edits = append(edits, key...)
			} else {
				edits = nil
			}
			out.Find("deprecated-field", e.KeyAt(), "write runStrategy: "+strategy, "spec.running is deprecated, and is to be removed", edits...)
		}
	}
	checkMachine(out, o, spec.Get("template", "spec"))
}

func checkMachine(out *report.Report, o *report.Object, spec reading.Value) {
	if spec.Node == nil {
		return
	}
	// Lists at the wrong level, which Fits reports, count as if they were at the right one.
	list := func(key string) reading.Value {
		v := spec.Get(key)
		for _, keys := range [][]string{{key}, {"domain", key}, {"domain", "devices", key}} {
			if v.Node = spec.Node.Get(keys...); v.Node != nil {
				break
			}
		}
		return v
	}
	// Disks and filesystems share their names.
	mounts := append(spec.Get("domain", "devices", "disks").Items(), spec.Get("domain", "devices", "filesystems").Items()...)
	checkPairs(out, "disk", "volume", mounts, list("volumes").Items())
	checkPairs(out, "interface", "network", spec.Get("domain", "devices", "interfaces").Items(), list("networks").Items())
	for _, v := range spec.Get("volumes").Items() {
		for _, kind := range []string{"cloudInitNoCloud", "cloudInitConfigDrive"} {
			if source := v.Get(kind); source.Node != nil {
				CheckCloudInit(out, source)
			}
		}
	}
	checkDevices(out, spec)
	checkResources(out, spec.Get("domain", "resources"))
	checkMigratable(out, o, spec)
}

// checkResources finds requests above their limits.
func checkResources(out *report.Report, resources reading.Value) {
	for _, name := range []string{"cpu", "memory"} {
		asked, least := resources.Get("requests", name), resources.Get("limits", name)
		request, err := resource.ParseQuantity(asked.Text())
		limit, limitErr := resource.ParseQuantity(least.Text())
		if err == nil && limitErr == nil && request.Cmp(limit) > 0 {
			out.Find("vm-resources", asked.At(), "write at most "+least.Text(), fmt.Sprintf("the machine requests %s of %s, and its limit is %s", asked.Text(), name, least.Text()))
		}
	}
}

// checkDevices finds masquerading on a network other than the pods', and two devices with one bootOrder.
func checkDevices(out *report.Report, spec reading.Value) {
	other := make(map[string]bool)
	for _, n := range spec.Get("networks").Items() {
		other[n.Get("name").Text()] = n.Get("multus").Node != nil
	}
	interfaces := spec.Get("domain", "devices", "interfaces").Items()
	for _, n := range interfaces {
		if _, ok := n.Node.Entry("masquerade"); ok && other[n.Get("name").Text()] {
			out.Find("vm-volume", n.EntryOrSelf("masquerade"), "write bridge: {}, or use the pod network", "masquerade works with the pod network only, and this one is of multus")
		}
	}
	first := make(map[string]reading.Value)
	for _, d := range append(spec.Get("domain", "devices", "disks").Items(), interfaces...) {
		order := d.Get("bootOrder")
		if text := order.Text(); text != "" && first[text].Node != nil {
			out.Find("vm-volume", order.At(), "give each device a bootOrder of its own", fmt.Sprintf("bootOrder %s stands here a second time, first %s", text, reading.Seen(order.At(), first[text].At())))
		} else {
			first[text] = order
		}
	}
}

// checkPairs compares two lists by names: every disk needs its volume, every volume its disk.
func checkPairs(out *report.Report, what, other string, list, others []reading.Value) {
	check := func(what, other string, items, partners []reading.Value) {
		names, complete := namesOf(partners, "name")
		for _, item := range items {
			name := item.Get("name")
			switch {
			case name.Text() == "" && name.Node == nil && item.Node.Get("disk", "name") != nil:
				// Fits reports a name that is a level too deep.
			case name.Text() == "":
				out.Find("missing-name", item.EntryOrSelf("name"), "write the name of the "+other, fmt.Sprintf("the %s has no name", what))
			case !reading.HasHole(name.Text()) && !slices.Contains(names, name.Text()) && complete:
				out.Find("vm-volume", name.At(), report.Near(name.Text(), names, fmt.Sprintf("add a %s of that name", other)),
					fmt.Sprintf("there is no %s %q for this %s", other, name.Text(), what))
			}
		}
	}
	check(what, other, list, others)
	check(other, what, others, list)
}

// namesOf returns the texts that keys of a list lead to, and whether all are known.
func namesOf(list []reading.Value, keys ...string) (names []string, complete bool) {
	for _, v := range list {
		names = append(names, v.Get(keys...).Text())
	}
	return names, !slices.ContainsFunc(names, func(name string) bool { return name == "" || reading.HasHole(name) })
}

// checkDataVolumeTemplates compares a machine's DataVolumes with the volumes that it mounts.
func checkDataVolumeTemplates(out *report.Report, o *report.Object, elsewhere map[string][]*report.Object) {
	templates := o.Get("spec", "dataVolumeTemplates").Items()
	if len(templates) == 0 {
		return
	}
	used := make(map[string]bool)
	names, complete := namesOf(templates, "metadata", "name")
	allUsed := true
	for _, v := range o.Get("spec", "template", "spec", "volumes").Items() {
		name := v.Get("dataVolume", "name")
		if v.Get("dataVolume").Node == nil {
			if claim := v.Get("persistentVolumeClaim", "claimName").Text(); claim != "" {
				used[claim] = true
			}
			continue
		}
		text := name.Text()
		if text == "" || reading.HasHole(text) {
			allUsed = false
			continue
		}
		used[text] = true
		if slices.Contains(names, text) || !complete || len(elsewhere[text]) > 0 {
			continue
		}
		var edits []reading.Edit
		if len(names) == 1 {
			edits = name.Replace(names[0])
		}
		out.Find("vm-datavolume", name.At(), report.Near(text, names, "write "+strings.Join(names, " or ")),
			fmt.Sprintf("the volume mounts the DataVolume %s, and dataVolumeTemplates make %s", text, strings.Join(names, ", ")), edits...)
	}
	for _, t := range templates {
		name := t.Get("metadata", "name")
		switch {
		case name.Text() == "":
			at := t.At()
			if raw, ok := t.Node.Get("metadata").Entry("name"); ok {
				at = t.Get("metadata").Child(raw).KeyAt()
			}
			out.Find("missing-name", at, "write the name that the volume mounts", "the DataVolume template has no name")
		case !reading.HasHole(name.Text()) && allUsed && len(used) == 0:
			out.Find("vm-datavolume", name.At(), "add a volume with dataVolume.name: "+name.Text(),
				fmt.Sprintf("no volume of the machine mounts the DataVolume %s", name.Text()))
		}
	}
}

// checkMigratable finds why a machine with the strategy LiveMigrate cannot migrate.
func checkMigratable(out *report.Report, o *report.Object, spec reading.Value) {
	strategy := spec.Get("evictionStrategy")
	if strategy.Text() != "LiveMigrate" {
		return
	}
	templates := make(map[string]reading.Value)
	for _, t := range o.Get("spec", "dataVolumeTemplates").Items() {
		templates[t.Get("metadata", "name").Text()] = t
	}
	for _, v := range spec.Get("volumes").Items() {
		if host := v.Get("hostDisk"); host.Node != nil {
			out.Find("not-migratable", host.At(), "use a volume that other nodes reach, or write evictionStrategy: None", "evictionStrategy is LiveMigrate, and the disk is a file of one host")
		}
		name := v.Get("dataVolume", "name").Text()
		for _, kind := range []string{"pvc", "storage"} {
			modes := templates[name].Get("spec", kind, "accessModes").Items()
			if len(modes) == 0 || slices.ContainsFunc(modes, func(m reading.Value) bool { return m.Text() == "ReadWriteMany" || reading.HasHole(m.Text()) }) {
				continue
			}
			out.Find("not-migratable", modes[0].At(), "write ReadWriteMany, which the storage must offer",
				fmt.Sprintf("evictionStrategy is LiveMigrate, and the disk %s can be mounted by one node only (%s)", name, modes[0].Text()))
		}
	}
	pods := make(map[string]bool)
	for _, n := range spec.Get("networks").Items() {
		if n.Get("pod").Node != nil {
			pods[n.Get("name").Text()] = true
		}
	}
	for _, n := range spec.Get("domain", "devices", "interfaces").Items() {
		if _, ok := n.Node.Entry("bridge"); ok && pods[n.Get("name").Text()] {
			out.Find("not-migratable", n.EntryOrSelf("bridge"), "write masquerade: {} for the pod network",
				fmt.Sprintf("evictionStrategy is LiveMigrate (line %d), and a bridge to the pod network does not migrate", strategy.At().Line))
		}
	}
}

// CheckCloneStrategy finds the cloning strategy of which the document warns.
func CheckCloneStrategy(out *report.Report, spec reading.Value) {
	if s := spec.Get("cloneStrategy"); s.Text() == "csi-clone" {
		out.Find("csi-clone", s.At(), "write copy for large numbers of clones; snapshot and csi-clone are faster for few", "cloneStrategy is csi-clone")
	}
}

func storageRequest(spec reading.Value) (v reading.Value, size resource.Quantity, ok bool) {
	for _, path := range [][]string{{"storage"}, {"pvc"}, {}} {
		v = spec.Get(path...).Get("resources", "requests", "storage")
		if q, err := resource.ParseQuantity(v.Text()); err == nil {
			return v, q, true
		}
	}
	return v, size, false
}

// AcrossClones compares clones with what is made, over all files.
func AcrossClones(out *report.Report) {
	var sources []source
	add := func(o *report.Object, spec reading.Value) {
		if pvc := spec.Get("source", "pvc"); pvc.Node != nil {
			name := spec.Get("source", "pvc", "name")
			sources = append(sources, source{name.At(), cmp.Or(pvc.Get("namespace").Text(), o.Namespace), name.Text(), o.String(), spec})
		}
	}
	made := make(map[string][]*report.Object) // by name
	var names []string
	for _, o := range out.Objects {
		switch o.Kind {
		case "DataVolume":
			add(o, o.Get("spec"))
			fallthrough
		case "PersistentVolumeClaim":
			if o.Name != "" {
				made[o.Name] = append(made[o.Name], o)
				names = append(names, o.Name)
			}
		case "VirtualMachine":
			for _, t := range o.Get("spec", "dataVolumeTemplates").Items() {
				add(o, t.Get("spec"))
				if name := t.Get("metadata", "name").Text(); name != "" {
					made[name] = append(made[name], o)
				}
			}
		}
	}
	for _, o := range out.Objects {
		if o.Kind == "VirtualMachine" {
			checkDataVolumeTemplates(out, o, made)
		}
	}
	c := cloned{made: made, names: names, as: make(map[string]bool), within: make(map[string][]string), guesses: make(map[[2]string]string)}
	for _, s := range sources {
		c.as[s.Name] = true
	}
	for _, s := range sources {
		if s.Name != "" && !reading.HasHole(s.Name) && !reading.HasHole(s.Namespace) {
			c.check(out, s)
		}
	}
}

type source struct {
	At                  reading.Place
	Namespace, Name, By string
	Spec                reading.Value // of the clone
}

type cloned struct {
	made    map[string][]*report.Object // by name
	names   []string                    // that can be cloned
	as      map[string]bool             // names that are cloned
	within  map[string][]string         // names that are, or may be, in a namespace
	guesses map[[2]string]string        // the name meant by a namespace and a name
}

func (c *cloned) in(namespace string) []string {
	list, known := c.within[namespace]
	if !known {
		list = slices.DeleteFunc(slices.Clone(c.names), func(n string) bool {
			return !slices.ContainsFunc(c.made[n], func(m *report.Object) bool { return sameNamespace(m.Namespace, namespace) })
		})
		c.within[namespace] = list
	}
	return list
}

func (c *cloned) check(out *report.Report, s source) {
	makers, near := c.made[s.Name], c.in(s.Namespace)
	switch {
	case len(makers) == 0 && len(near) == 0:
		out.Note("clone-source", s.At, "%s clones %s: no DataVolume or claim of its namespace is among the files, so whether there is one was not checked", s.By, s.Name)
		return
	case len(makers) == 0:
		guess, known := c.guesses[[2]string{s.Namespace, s.Name}]
		if !known {
			free := slices.DeleteFunc(slices.Clone(near), func(n string) bool { return c.as[n] })
			guess = cmp.Or(nearestName(s.Name, free), nearestName(s.Name, near))
			c.guesses[[2]string{s.Namespace, s.Name}] = guess
		}
		fix := "make a DataVolume of that name, or clone one of: " + strings.Join(report.Few(near), ", ")
		severity := report.Warning // the cluster may have it
		if guess != "" {
			fix = fmt.Sprintf("clone %s, which is made %s", guess, reading.Seen(s.At, c.made[guess][0].Closest("metadata", "name")))
			severity = report.Error
		}
		out.FindAs(severity, "clone-source", s.At, fix, fmt.Sprintf("it clones %s, and nothing here makes that", s.Name))
		return
	case !slices.ContainsFunc(makers, func(m *report.Object) bool { return sameNamespace(m.Namespace, s.Namespace) }):
		out.Find("clone-source", s.At, "write namespace: "+makers[0].Namespace,
			fmt.Sprintf("it clones %s of the namespace %s, and %s is made in %s", s.Name, s.Namespace, s.Name, makers[0].Namespace))
		return
	}
	at, asked, ok := storageRequest(s.Spec)
	for _, m := range makers {
		if from, has, made := storageRequest(m.Get("spec")); ok && made && asked.Cmp(has) < 0 && m.Namespace == s.Namespace {
			out.Find("clone-source", at.At(), "ask for "+from.Text()+" or more", fmt.Sprintf("it asks for %s, and %s, which it clones, has %s (%s)", at.Text(), s.Name, from.Text(), reading.Seen(at.At(), from.At())))
		}
	}
}

func sameNamespace(a, b string) bool {
	return a == "" || b == "" || a == b || reading.HasHole(a) || reading.HasHole(b)
}

// nearestName returns the name that was meant: one spelled almost alike, or the only one with all its parts.
func nearestName(name string, among []string) string {
	split := func(name string) []string {
		return strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '.' })
	}
	within := func(a, b []string) bool {
		return !slices.ContainsFunc(a, func(p string) bool { return !slices.Contains(b, p) })
	}
	parts := split(name)
	var found []string
	for _, candidate := range among {
		if have := split(candidate); within(parts, have) || within(have, parts) {
			found = append(found, candidate)
		}
	}
	if len(found) == 1 && len(parts) > 1 {
		return found[0]
	}
	word, _ := nearest.Word(name, among)
	return word
}

// cloudInitLevel finds keys of cloud-init beside the user data instead of in it.
func (c *Fit) cloudInitLevel(f frame, e reading.Entry) bool {
	if !strings.HasSuffix(f.Path, "cloudInitNoCloud") && !strings.HasSuffix(f.Path, "cloudInitConfigDrive") {
		return false
	}
	for _, k := range schema.Words("cloud-init") {
		if strings.EqualFold(k, e.Key()) {
			found := fmt.Sprintf("%s stands beside the user data", e.Key())
			if k != e.Key() {
				found += ", and is written " + k
			}
			c.Out.Find("cloud-init-level", e.KeyAt(), fmt.Sprintf("write it as %s into the text of userData", k), found)
			return true
		}
	}
	return false
}

// CheckCloudInit reads the user data of a volume.
func CheckCloudInit(out *report.Report, source reading.Value) {
	for _, key := range []string{"userData", "userDataBase64"} {
		data := source.Get(key)
		if data.Text() == "" {
			continue
		}
		t, ok := data.Literal("user-data")
		size := len(data.Text())
		if key == "userDataBase64" {
			if t, ok = data.Decoded("user-data"); !ok {
				out.Find("wrong-type", data.At(), "encode it: base64 -w0", "userDataBase64 is not base64")
				continue
			}
			size = len(t.Data)
		} else if !ok {
			t = data.Holding("user-data", data.Text())
		}
		const most = 2048
		if size > most {
			out.Find("cloud-init-size", data.At(), "put it into a Secret, and name that in secretRef",
				fmt.Sprintf("the user data has %d bytes, at most %d may stand here", size, most))
		}
		CheckUserData(out, t)
	}
}

// CheckUserData looks at user data of cloud-init.
func CheckUserData(out *report.Report, t *reading.Text) {
	out.Recognised = true
	first := strings.TrimSpace(t.Line(1))
	root, problems := reading.Single(t)
	at := t.Place(1, 1)
	if !strings.HasPrefix(first, "#cloud-config") {
		marks := []string{"#!", "#include", "#upstart", "## template: jinja", "#cloud-boothook", "#part-handler", "Content-Type:", "MIME-Version:", "From "}
		if slices.ContainsFunc(marks, func(mark string) bool { return strings.HasPrefix(first, mark) }) {
			return
		}
		switch {
		case root.Node == nil || root.Node.Kind != strictyaml.Mapping:
		case strings.HasPrefix(strings.ReplaceAll(strings.ToLower(first), " ", ""), "#cloud-config"):
			out.Find("cloud-init-header", at, "write the first line as #cloud-config", fmt.Sprintf("the first line is %q", first), reading.Edit{Text: t, Start: 0, End: len(t.Line(1)), With: "#cloud-config"})
		default:
			out.Find("cloud-init-header", at, "write #cloud-config on a line of its own before it", "the user data does not begin with #cloud-config", reading.Edit{Text: t, Start: 0, End: 0, With: "#cloud-config\n"})
		}
		return
	}
	for _, p := range problems {
		out.Find("yaml-syntax", t.Place(max(1, p.Line), p.Column), "correct it: cloud-init ignores the user data otherwise", p.Message)
	}
	if len(problems) > 0 || root.Node == nil || root.Node.Kind != strictyaml.Mapping {
		return
	}
	known := schema.Words("cloud-init")
	for _, e := range root.Entries() {
		if slices.Contains(known, e.Key()) || reading.HasHole(e.Key()) {
			continue
		}
		at := e.KeyAt()
		found := fmt.Sprintf("cloud-init knows no key %q", e.Key())
		i := slices.IndexFunc(known, func(k string) bool {
			return strings.EqualFold(k, e.Key()) || k == strings.ReplaceAll(e.Key(), "-", "_")
		})
		if i >= 0 {
			var edits []reading.Edit
			if root.Get(known[i]).Node == nil {
				edits = e.Rename(known[i])
			}
			out.Find("cloud-init-key", at, "write "+known[i], found+": it is written "+known[i], edits...)
		} else if hint := report.Near(e.Key(), known, ""); hint != "" {
			out.Find("cloud-init-key", at, hint, found)
		} else {
			out.FindAs(report.Warning, "cloud-init-key", at, "remove it, or look up how it is written", found)
		}
	}
	for _, key := range strings.Fields("bootcmd mounts packages runcmd ssh_authorized_keys users write_files") {
		if e, ok := root.Entry(key); ok && e.Node.Kind != strictyaml.List && !reading.HasHole(e.Text()) && !(key == "users" && e.Text() == "default") {
			out.Find("cloud-init-value", e.KeyAt(), "write a list: an item on each line behind a dash", fmt.Sprintf("%s wants a list, found %s", key, e.Node.Describe()))
		}
	}
	for _, f := range root.Get("write_files").Items() {
		name := f.Get("path").Text()
		content := f.Get("content")
		if content.Text() == "" || f.Get("encoding").Text() != "" {
			continue
		}
		if t, ok := content.Literal(name); ok && reading.WouldRecognise(t) {
			t.Inside = name
			out.Look(out, t)
		}
	}
}
