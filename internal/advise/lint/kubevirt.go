package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// checkVirtualMachine looks at a machine with its run strategy and the volumes
// that it makes.
func checkVirtualMachine(out *report, o *object) {
	spec := o.get("spec")
	if e, ok := spec.entry("running"); ok {
		running, isBool := e.node.Value().(bool)
		switch {
		case spec.get("runStrategy").node != nil:
			out.find("vm-running", e.keyAt(), "remove running", "both running and runStrategy", spec.remove("running")...)
		case isBool:
			strategy := "Halted"
			if running {
				strategy = "Always"
			}
			edits, key := e.replace(strategy), e.rename("runStrategy")
			if edits != nil && key != nil {
				edits = append(edits, key...)
			} else {
				edits = nil
			}
			out.find("deprecated-field", e.keyAt(), "write runStrategy: "+strategy, "spec.running is deprecated, and is to be removed", edits...)
		}
	}
	checkMachine(out, o, spec.get("template", "spec"))
}

// checkMachine looks at the machine itself.
func checkMachine(out *report, o *object, spec value) {
	if spec.node == nil {
		return
	}
	// Lists that stand at the wrong level are told of elsewhere; here they
	// count as if they stood where they belong.
	list := func(key string) value {
		v := spec.get(key)
		for _, keys := range [][]string{{key}, {"domain", key}, {"domain", "devices", key}} {
			if v.node = spec.node.Get(keys...); v.node != nil {
				break
			}
		}
		return v
	}
	// Disks and filesystems are counted as one list.
	mounts := append(spec.get("domain", "devices", "disks").items(), spec.get("domain", "devices", "filesystems").items()...)
	checkPairs(out, "disk", "volume", mounts, list("volumes").items())
	checkPairs(out, "interface", "network", spec.get("domain", "devices", "interfaces").items(), list("networks").items())
	for _, v := range spec.get("volumes").items() {
		for _, kind := range []string{"cloudInitNoCloud", "cloudInitConfigDrive"} {
			if source := v.get(kind); source.node != nil {
				checkCloudInit(out, source)
			}
		}
	}
	checkDevices(out, spec)
	checkMigratable(out, o, spec)
}

// checkDevices finds a network that masquerades without being the pods', and two
// devices that are to boot in one place.
func checkDevices(out *report, spec value) {
	other := make(map[string]bool)
	for _, n := range spec.get("networks").items() {
		other[n.get("name").text()] = n.get("multus").node != nil
	}
	interfaces := spec.get("domain", "devices", "interfaces").items()
	for _, n := range interfaces {
		if _, ok := n.node.Entry("masquerade"); ok && other[n.get("name").text()] {
			out.find("vm-volume", n.entryOrSelf("masquerade"), "write bridge: {}, or use the pod network", "masquerade works with the pod network only, and this one is of multus")
		}
	}
	first := make(map[string]value)
	for _, d := range append(spec.get("domain", "devices", "disks").items(), interfaces...) {
		order := d.get("bootOrder")
		if text := order.text(); text != "" && first[text].node != nil {
			out.find("vm-volume", order.at(), "give each device a bootOrder of its own", fmt.Sprintf("bootOrder %s stands here a second time, first %s", text, seen(order.at(), first[text].at())))
		} else {
			first[text] = order
		}
	}
}

// checkPairs holds two lists of named things against each other: every disk has
// its volume, every volume its disk.
func checkPairs(out *report, what, other string, list, others []value) {
	check := func(what, other string, items, partners []value) {
		names, complete := namesOf(partners, "name")
		for _, item := range items {
			name := item.get("name")
			switch {
			case name.text() == "" && name.node == nil && item.node.Get("disk", "name") != nil:
				// A name that stands a level too deep is told of elsewhere.
			case name.text() == "":
				out.find("missing-name", item.entryOrSelf("name"), "write the name of the "+other, fmt.Sprintf("the %s has no name", what))
			case !hasHole(name.text()) && !slices.Contains(names, name.text()) && complete:
				out.find("vm-volume", name.at(), near(name.text(), names, fmt.Sprintf("add a %s of that name", other)),
					fmt.Sprintf("there is no %s %q for this %s", other, name.text(), what))
			}
		}
	}
	check(what, other, list, others)
	check(other, what, others, list)
}

// namesOf are the texts that keys of a list lead to, and whether all are known.
func namesOf(list []value, keys ...string) (names []string, complete bool) {
	for _, v := range list {
		names = append(names, v.get(keys...).text())
	}
	return names, !slices.ContainsFunc(names, func(name string) bool { return name == "" || hasHole(name) })
}

// checkDataVolumeTemplates holds the DataVolumes that a machine makes against
// the volumes that it mounts. elsewhere are the names of all that is made.
func checkDataVolumeTemplates(out *report, o *object, elsewhere map[string][]*object) {
	templates := o.get("spec", "dataVolumeTemplates").items()
	if len(templates) == 0 {
		return
	}
	used := make(map[string]bool)
	names, complete := namesOf(templates, "metadata", "name")
	allUsed := true
	for _, v := range o.get("spec", "template", "spec", "volumes").items() {
		name := v.get("dataVolume", "name")
		if v.get("dataVolume").node == nil {
			if claim := v.get("persistentVolumeClaim", "claimName").text(); claim != "" {
				used[claim] = true
			}
			continue
		}
		text := name.text()
		if text == "" || hasHole(text) {
			allUsed = false
			continue
		}
		used[text] = true
		if slices.Contains(names, text) || !complete || len(elsewhere[text]) > 0 {
			continue
		}
		var edits []edit
		if len(names) == 1 {
			edits = name.replace(names[0])
		}
		out.find("vm-datavolume", name.at(), near(text, names, "write "+strings.Join(names, " or ")),
			fmt.Sprintf("the volume mounts the DataVolume %s, and dataVolumeTemplates make %s", text, strings.Join(names, ", ")), edits...)
	}
	for _, t := range templates {
		name := t.get("metadata", "name")
		switch {
		case name.text() == "":
			at := t.at()
			if raw, ok := t.node.Get("metadata").Entry("name"); ok {
				at = t.get("metadata").child(raw).keyAt()
			}
			out.find("missing-name", at, "write the name that the volume mounts", "the DataVolume template has no name")
		case !hasHole(name.text()) && allUsed && len(used) == 0:
			out.find("vm-datavolume", name.at(), "add a volume with dataVolume.name: "+name.text(),
				fmt.Sprintf("no volume of the machine mounts the DataVolume %s", name.text()))
		}
	}
}

// checkMigratable finds why a machine that is to migrate live cannot.
func checkMigratable(out *report, o *object, spec value) {
	strategy := spec.get("evictionStrategy")
	if strategy.text() != "LiveMigrate" {
		return
	}
	templates := make(map[string]value)
	for _, t := range o.get("spec", "dataVolumeTemplates").items() {
		templates[t.get("metadata", "name").text()] = t
	}
	for _, v := range spec.get("volumes").items() {
		if host := v.get("hostDisk"); host.node != nil {
			out.find("not-migratable", host.at(), "use a volume that other nodes reach, or write evictionStrategy: None", "evictionStrategy is LiveMigrate, and the disk is a file of one host")
		}
		name := v.get("dataVolume", "name").text()
		for _, kind := range []string{"pvc", "storage"} {
			modes := templates[name].get("spec", kind, "accessModes").items()
			if len(modes) == 0 || slices.ContainsFunc(modes, func(m value) bool { return m.text() == "ReadWriteMany" || hasHole(m.text()) }) {
				continue
			}
			out.find("not-migratable", modes[0].at(), "write ReadWriteMany, which the storage must offer",
				fmt.Sprintf("evictionStrategy is LiveMigrate, and the disk %s can be mounted by one node only (%s)", name, modes[0].text()))
		}
	}
	pods := make(map[string]bool)
	for _, n := range spec.get("networks").items() {
		if n.get("pod").node != nil {
			pods[n.get("name").text()] = true
		}
	}
	for _, n := range spec.get("domain", "devices", "interfaces").items() {
		if _, ok := n.node.Entry("bridge"); ok && pods[n.get("name").text()] {
			out.find("not-migratable", n.entryOrSelf("bridge"), "write masquerade: {} for the pod network",
				fmt.Sprintf("evictionStrategy is LiveMigrate (line %d), and a bridge to the pod network does not migrate", strategy.at().line))
		}
	}
}

// checkCloneStrategy finds the cloning strategy that the document warns of.
func checkCloneStrategy(out *report, spec value) {
	if s := spec.get("cloneStrategy"); s.text() == "csi-clone" {
		out.find("csi-clone", s.at(), "write copy for large numbers of clones; snapshot and csi-clone are faster for few", "cloneStrategy is csi-clone")
	}
}

// storageRequest is what a claim or a DataVolume asks for.
func storageRequest(spec value) (v value, size resource.Quantity, ok bool) {
	for _, path := range [][]string{{"storage"}, {"pvc"}, {}} {
		v = spec.get(path...).get("resources", "requests", "storage")
		if q, err := resource.ParseQuantity(v.text()); err == nil {
			return v, q, true
		}
	}
	return v, size, false
}

// acrossClones holds what is cloned against what is made, over all files.
func acrossClones(out *report) {
	sources := slices.Clone(out.clonedPieces)
	add := func(o *object, spec value) {
		if pvc := spec.get("source", "pvc"); pvc.node != nil {
			name := spec.get("source", "pvc", "name")
			sources = append(sources, clonedPiece{name.at(), cmp.Or(pvc.get("namespace").text(), o.namespace), name.text(), o.String(), spec})
		}
	}
	made := make(map[string][]*object) // by name
	var names []string
	for _, o := range out.objects {
		switch o.kind {
		case "DataVolume":
			add(o, o.get("spec"))
			fallthrough
		case "PersistentVolumeClaim":
			if o.name != "" {
				made[o.name] = append(made[o.name], o)
				names = append(names, o.name)
			}
		case "VirtualMachine":
			for _, t := range o.get("spec", "dataVolumeTemplates").items() {
				add(o, t.get("spec"))
				if name := t.get("metadata", "name").text(); name != "" {
					made[name] = append(made[name], o)
				}
			}
		}
	}
	for _, o := range out.objects {
		if o.kind == "VirtualMachine" {
			checkDataVolumeTemplates(out, o, made)
		}
	}
	c := cloned{made: made, names: names, as: make(map[string]bool), within: make(map[string][]string), guesses: make(map[[2]string]string)}
	for _, s := range sources {
		c.as[s.name] = true
	}
	for _, s := range sources {
		if s.name != "" && !hasHole(s.name) && !hasHole(s.namespace) {
			c.check(out, s)
		}
	}
}

// cloned is what clones are held against.
type cloned struct {
	made    map[string][]*object // by name
	names   []string             // of what can be cloned
	as      map[string]bool      // names that are cloned
	within  map[string][]string  // of names, what is made in a namespace, or may be
	guesses map[[2]string]string // what was meant by a namespace and a name
}

func (c *cloned) in(namespace string) []string {
	list, known := c.within[namespace]
	if !known {
		list = slices.DeleteFunc(slices.Clone(c.names), func(n string) bool {
			return !slices.ContainsFunc(c.made[n], func(m *object) bool { return sameNamespace(m.namespace, namespace) })
		})
		c.within[namespace] = list
	}
	return list
}

// check holds a clone against what is made.
func (c *cloned) check(out *report, s clonedPiece) {
	makers, near := c.made[s.name], c.in(s.namespace)
	switch {
	case len(makers) == 0 && len(near) == 0:
		out.note("clone-source", s.at, "%s clones %s: no DataVolume or claim of its namespace is among the files, so whether there is one was not checked", s.by, s.name)
		return
	case len(makers) == 0:
		guess, known := c.guesses[[2]string{s.namespace, s.name}]
		if !known {
			free := slices.DeleteFunc(slices.Clone(near), func(n string) bool { return c.as[n] })
			guess = cmp.Or(nearestName(s.name, free), nearestName(s.name, near))
			c.guesses[[2]string{s.namespace, s.name}] = guess
		}
		fix := "make a DataVolume of that name, or clone one of: " + strings.Join(few(near), ", ")
		severity := Warning // it may be in the cluster already
		if guess != "" {
			fix = fmt.Sprintf("clone %s, which is made %s", guess, seen(s.at, c.made[guess][0].closest("metadata", "name")))
			severity = Error
		}
		out.findAs(severity, "clone-source", s.at, fix, fmt.Sprintf("it clones %s, and nothing here makes that", s.name))
		return
	case !slices.ContainsFunc(makers, func(m *object) bool { return sameNamespace(m.namespace, s.namespace) }):
		out.find("clone-source", s.at, "write namespace: "+makers[0].namespace,
			fmt.Sprintf("it clones %s of the namespace %s, and %s is made in %s", s.name, s.namespace, s.name, makers[0].namespace))
		return
	}
	at, asked, ok := storageRequest(s.spec)
	for _, m := range makers {
		if from, has, made := storageRequest(m.get("spec")); ok && made && asked.Cmp(has) < 0 && m.namespace == s.namespace {
			out.find("clone-source", at.at(), "ask for "+from.text()+" or more", fmt.Sprintf("it asks for %s, and %s, which it clones, has %s (%s)", at.text(), s.name, from.text(), seen(at.at(), from.at())))
		}
	}
}

// sameNamespace reports whether two objects may be in one namespace.
func sameNamespace(a, b string) bool { return a == "" || b == "" || a == b || hasHole(a) || hasHole(b) }

// nearestName is the name that was meant: one that is written almost like it,
// or the one that has all of its parts between dashes (rhel-dv, rhel-clone-dv).
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

// cloudInitLevel finds keys of cloud-init that stand beside the user data
// instead of in it.
func (c *fit) cloudInitLevel(f frame, e entry) bool {
	if !strings.HasSuffix(f.path, "cloudInitNoCloud") && !strings.HasSuffix(f.path, "cloudInitConfigDrive") {
		return false
	}
	for _, k := range cloudInitKeys() {
		if strings.EqualFold(k, e.key()) {
			found := fmt.Sprintf("%s stands beside the user data", e.key())
			if k != e.key() {
				found += ", and is written " + k
			}
			c.out.find("cloud-init-level", e.keyAt(), fmt.Sprintf("write it as %s into the text of userData", k), found)
			return true
		}
	}
	return false
}

// checkCloudInit looks into user data.
func checkCloudInit(out *report, source value) {
	for _, key := range []string{"userData", "userDataBase64"} {
		data := source.get(key)
		if data.text() == "" {
			continue
		}
		t, ok := data.literal("user-data")
		if key == "userDataBase64" {
			if t, ok = data.decoded("user-data"); !ok {
				out.find("wrong-type", data.at(), "encode it: base64 -w0", "userDataBase64 is no base64")
				continue
			}
		} else if !ok {
			t = data.holding("user-data", data.text())
		}
		size := len(data.text())
		if key == "userDataBase64" {
			size = len(t.data)
		}
		const most = 2048
		if size > most {
			out.find("cloud-init-size", data.at(), "put it into a Secret, and name that in secretRef",
				fmt.Sprintf("the user data has %d bytes, at most %d may stand here", size, most))
		}
		checkUserData(out, t)
	}
}

// checkUserData looks at user data of cloud-init.
func checkUserData(out *report, t *text) {
	out.recognised = true
	first := strings.TrimSpace(t.line(1))
	root, problems := single(t)
	at := t.place(1, 1)
	if !strings.HasPrefix(first, "#cloud-config") {
		marks := []string{"#!", "#include", "#upstart", "## template: jinja", "#cloud-boothook", "#part-handler", "Content-Type:", "MIME-Version:", "From "}
		if slices.ContainsFunc(marks, func(mark string) bool { return strings.HasPrefix(first, mark) }) {
			return
		}
		switch {
		case root.node == nil || root.node.Kind != strictyaml.Mapping:
		case strings.HasPrefix(strings.ReplaceAll(strings.ToLower(first), " ", ""), "#cloud-config"):
			out.find("cloud-init-header", at, "write the first line as #cloud-config", fmt.Sprintf("the first line is %q", first), edit{t, 0, len(t.line(1)), "#cloud-config"})
		default:
			out.find("cloud-init-header", at, "write #cloud-config on a line of its own before it", "the user data does not begin with #cloud-config", edit{t, 0, 0, "#cloud-config\n"})
		}
		return
	}
	for _, p := range problems {
		out.find("yaml-syntax", t.place(max(1, p.Line), p.Column), "correct it: cloud-init ignores the user data otherwise", p.Message)
	}
	if len(problems) > 0 || root.node == nil || root.node.Kind != strictyaml.Mapping {
		return
	}
	known := cloudInitKeys()
	for _, e := range root.entries() {
		if slices.Contains(known, e.key()) || hasHole(e.key()) {
			continue
		}
		at := e.keyAt()
		found := fmt.Sprintf("cloud-init knows no key %q", e.key())
		i := slices.IndexFunc(known, func(k string) bool {
			return strings.EqualFold(k, e.key()) || k == strings.ReplaceAll(e.key(), "-", "_")
		})
		if i >= 0 {
			var edits []edit
			if root.get(known[i]).node == nil {
				edits = e.rename(known[i])
			}
			out.find("cloud-init-key", at, "write "+known[i], found+": it is written "+known[i], edits...)
		} else if hint := near(e.key(), known, ""); hint != "" {
			out.find("cloud-init-key", at, hint, found)
		} else {
			out.findAs(Warning, "cloud-init-key", at, "remove it, or look up how it is written", found)
		}
	}
	for _, key := range strings.Fields("bootcmd mounts packages runcmd ssh_authorized_keys users write_files") {
		if e, ok := root.entry(key); ok && e.node.Kind != strictyaml.List && !hasHole(e.text()) && !(key == "users" && e.text() == "default") {
			out.find("cloud-init-value", e.keyAt(), "write a list: an item on each line behind a dash", fmt.Sprintf("%s wants a list, found %s", key, e.node.Describe()))
		}
	}
	for _, f := range root.get("write_files").items() {
		name := f.get("path").text()
		content := f.get("content")
		if content.text() == "" || f.get("encoding").text() != "" {
			continue
		}
		if t, ok := content.literal(name); ok && wouldRecognise(t) {
			t.inside = name
			out.look(out, t)
		}
	}
}

// cloudInitKeys are the keys of cloud-init's own modules.
func cloudInitKeys() []string {
	return strings.Fields(`
		allow_public_ssh_keys ansible apk_repos apt apt_pipelining apt_reboot_if_required apt_update apt_upgrade
		authkey_hash autoinstall bootcmd byobu_by_default ca-certs ca_certs chef chpasswd cloud_config_modules
		cloud_final_modules cloud_init_modules create_hostname_file datasource datasource_list debug def_log_file
		device_aliases disable_ec2_metadata disable_root disable_root_opts disk_setup drivers fan final_message fqdn
		fs_setup groups growpart grub-dpkg grub_dpkg hostname keyboard landscape launch-index locale locale_configfile
		log_cfgs lxd manage_etc_hosts manage_resolv_conf mcollective merge_how merge_type migrate mount_default_fields
		mounts network no_ssh_fingerprints ntp output package_reboot_if_required package_update package_upgrade packages
		password phone_home power_state prefer_fqdn_over_hostname preserve_hostname puppet random_seed reporting
		resize_rootfs resolv_conf rh_subscription rpi rsyslog runcmd salt_minion snap spacewalk ssh ssh_authorized_keys
		ssh_deletekeys ssh_fp_console_blacklist ssh_genkeytypes ssh_import_id ssh_key_console_blacklist ssh_keys
		ssh_publish_hostkeys ssh_pwauth ssh_quiet_keygen swap syslog_fix_perms system_info timezone ubuntu_advantage
		ubuntu_pro unverified_modules updates user users vendor_data version wireguard write_files yum_repo_dir
		yum_repos zypper`)
}
