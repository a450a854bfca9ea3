package lint

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"plimsoll.dev/plimsoll/internal/strictyaml"
)

// virtualMachine looks at a machine with its run strategy and the volumes that
// it makes.
func (l *linter) virtualMachine(o *object) {
	spec := o.get("spec")
	if e, ok := entryOf(spec, "running"); ok && !isNull(e.Value) {
		at := o.doc.atKey(e, o.key("spec", "running"))
		running, isBool := e.Value.Value().(bool)
		switch {
		case spec.Get("runStrategy") != nil:
			l.report("vm-running", at, "remove running", "both running and runStrategy", o.doc.removeEntry(spec, "running")...)
		case isBool:
			strategy := "Halted"
			if running {
				strategy = "Always"
			}
			edits := o.doc.replaceScalar(e.Value, strategy)
			if edits != nil {
				if key := o.doc.replaceKey(e, "runStrategy"); key != nil {
					edits = append(edits, key...)
				} else {
					edits = nil
				}
			}
			l.report("deprecated-field", at, "write runStrategy: "+strategy, "spec.running is deprecated, and is to be removed", edits...)
		}
	}
	l.machineSpec(o, "spec", "template", "spec")
}

// machineSpec looks at the machine itself.
func (l *linter) machineSpec(o *object, keys ...string) {
	spec := o.get(keys...)
	if spec == nil {
		return
	}
	path := o.key(keys...)
	d := o.doc
	devices := dig(spec, "domain", "devices")
	// Lists that stand at the wrong level are told of elsewhere; here they
	// count as if they stood where they belong.
	list := func(key string) []*node {
		for _, keys := range [][]string{{key}, {"domain", key}, {"domain", "devices", key}} {
			if n := dig(spec, keys...); n != nil {
				return itemsOf(n)
			}
		}
		return nil
	}
	volumes, networks := list("volumes"), list("networks")
	l.names(d, "disk", "volume",
		append(slices.Clone(itemsOf(devices.Get("disks"))), itemsOf(devices.Get("filesystems"))...), strictyaml.Key(path, "domain.devices.disks"),
		volumes, strictyaml.Key(path, "volumes"))
	l.names(d, "interface", "network",
		itemsOf(devices.Get("interfaces")), strictyaml.Key(path, "domain.devices.interfaces"),
		networks, strictyaml.Key(path, "networks"))
	l.resources(d, dig(spec, "domain", "resources"), strictyaml.Key(path, "domain.resources"))
	l.oldNodeLabels(d, spec.Get("nodeSelector"), strictyaml.Key(path, "nodeSelector"))
	for i, v := range itemsOf(spec.Get("volumes")) {
		inner := strictyaml.Index(strictyaml.Key(path, "volumes"), i)
		l.image(d, dig(v, "containerDisk", "image"), strictyaml.Key(inner, "containerDisk.image"))
		for _, kind := range []string{"cloudInitNoCloud", "cloudInitConfigDrive"} {
			if source := v.Get(kind); source != nil {
				l.cloudInit(o, source, strictyaml.Key(inner, kind))
			}
		}
	}
	l.migratable(o, spec, path)
}

// names holds two lists of named things against each other: every disk has its
// volume, every volume its disk.
func (l *linter) names(d *doc, what, other string, list []*node, path string, others []*node, otherPath string) {
	named := func(items []*node) (names []string, complete bool) {
		complete = true
		for _, item := range items {
			name := textOf(item.Get("name"))
			if name == "" || hasHole(name) {
				complete = false
			}
			names = append(names, name)
		}
		return names, complete
	}
	have, complete := named(list)
	want, otherComplete := named(others)
	check := func(items []*node, path, what, other string, names []string, complete bool) {
		for i, item := range items {
			name := item.Get("name")
			inner := strictyaml.Index(path, i)
			if textOf(name) == "" {
				at := d.at(item, inner)
				if e, ok := entryOf(item, "name"); ok {
					at = d.atKey(e, strictyaml.Key(inner, "name"))
				}
				// A name that stands a level too deep is told of elsewhere.
				if name == nil && dig(item, "disk", "name") != nil {
					continue
				}
				l.report("missing-name", at, "write the name of the "+other, fmt.Sprintf("the %s has no name", what))
				continue
			}
			if hasHole(textOf(name)) || slices.Contains(names, textOf(name)) || !complete {
				continue
			}
			l.report("vm-volume", d.at(name, strictyaml.Key(inner, "name")), near(textOf(name), names, fmt.Sprintf("add a %s of that name", other)),
				fmt.Sprintf("there is no %s %q for this %s", other, textOf(name), what))
		}
	}
	check(list, path, what, other, want, otherComplete)
	check(others, otherPath, other, what, have, complete)
}

// dataVolumeTemplates holds the DataVolumes that a machine makes against the
// volumes that it mounts. elsewhere are the names of all that is made.
func (l *linter) dataVolumeTemplates(o *object, elsewhere map[string][]*object) {
	templates := itemsOf(o.get("spec", "dataVolumeTemplates"))
	if len(templates) == 0 {
		return
	}
	path := o.key("spec", "dataVolumeTemplates")
	used := make(map[string]bool)
	made := make(map[string]bool)
	var names []string
	complete := true
	for _, t := range templates {
		name := textOf(dig(t, "metadata", "name"))
		if name == "" || hasHole(name) {
			complete = false
		}
		made[name] = true
		names = append(names, name)
	}
	allUsed := true
	for i, v := range itemsOf(o.get("spec", "template", "spec", "volumes")) {
		name := dig(v, "dataVolume", "name")
		if v.Get("dataVolume") == nil {
			if claim := textOf(dig(v, "persistentVolumeClaim", "claimName")); claim != "" {
				used[claim] = true
			}
			continue
		}
		if textOf(name) == "" || hasHole(textOf(name)) {
			allUsed = false
			continue
		}
		used[textOf(name)] = true
		if made[textOf(name)] || !complete || len(elsewhere[textOf(name)]) > 0 {
			continue
		}
		inner := strictyaml.Index(o.key("spec", "template", "spec", "volumes"), i)
		var edits []edit
		if len(names) == 1 {
			edits = o.doc.replaceScalar(name, names[0])
		}
		l.report("vm-datavolume", o.doc.at(name, strictyaml.Key(inner, "dataVolume.name")), near(textOf(name), names, "write "+strings.Join(names, " or ")),
			fmt.Sprintf("the volume mounts the DataVolume %s, and dataVolumeTemplates make %s", textOf(name), strings.Join(names, ", ")), edits...)
	}
	for i, t := range templates {
		inner := strictyaml.Index(path, i)
		name := dig(t, "metadata", "name")
		switch {
		case textOf(name) == "":
			at := o.doc.at(t, inner)
			if e, ok := entryOf(t.Get("metadata"), "name"); ok {
				at = o.doc.atKey(e, strictyaml.Key(inner, "metadata.name"))
			}
			l.report("missing-name", at, "write the name that the volume mounts", "the DataVolume template has no name")
		case !used[textOf(name)] && !hasHole(textOf(name)) && allUsed && len(used) == 0:
			l.report("vm-datavolume", o.doc.at(name, strictyaml.Key(inner, "metadata.name")), "add a volume with dataVolume.name: "+textOf(name),
				fmt.Sprintf("no volume of the machine mounts the DataVolume %s", textOf(name)))
		}
	}
}

// migratable finds why a machine that is to migrate live cannot.
func (l *linter) migratable(o *object, spec *node, path string) {
	strategy := spec.Get("evictionStrategy")
	if textOf(strategy) != "LiveMigrate" {
		return
	}
	at := o.doc.at(strategy, strictyaml.Key(path, "evictionStrategy"))
	templates := make(map[string]*node)
	for _, t := range itemsOf(o.get("spec", "dataVolumeTemplates")) {
		templates[textOf(dig(t, "metadata", "name"))] = t
	}
	for i, v := range itemsOf(spec.Get("volumes")) {
		inner := strictyaml.Index(strictyaml.Key(path, "volumes"), i)
		if host := v.Get("hostDisk"); host != nil {
			l.report("not-migratable", o.doc.at(host, strictyaml.Key(inner, "hostDisk")), "use a volume that other nodes reach, or write evictionStrategy: None", "evictionStrategy is LiveMigrate, and the disk is a file of one host")
		}
		t := templates[textOf(dig(v, "dataVolume", "name"))]
		for _, kind := range []string{"pvc", "storage"} {
			modes := dig(t, "spec", kind, "accessModes")
			if modes == nil || len(modes.Items()) == 0 || slices.ContainsFunc(modes.Items(), func(m *node) bool { return textOf(m) == "ReadWriteMany" || hasHole(textOf(m)) }) {
				continue
			}
			l.report("not-migratable", o.doc.at(modes.Items()[0], o.key("spec", "dataVolumeTemplates")), "write ReadWriteMany, which the storage must offer",
				fmt.Sprintf("evictionStrategy is LiveMigrate, and the disk %s can be mounted by one node only (%s)", textOf(dig(v, "dataVolume", "name")), textOf(modes.Items()[0])))
		}
	}
	pods := make(map[string]bool)
	for _, n := range itemsOf(spec.Get("networks")) {
		if n.Get("pod") != nil {
			pods[textOf(n.Get("name"))] = true
		}
	}
	for i, n := range itemsOf(dig(spec, "domain", "devices", "interfaces")) {
		if bridge, ok := entryOf(n, "bridge"); ok && pods[textOf(n.Get("name"))] {
			inner := strictyaml.Index(strictyaml.Key(path, "domain.devices.interfaces"), i)
			l.report("not-migratable", o.doc.atKey(bridge, strictyaml.Key(inner, "bridge")), "write masquerade: {} for the pod network",
				fmt.Sprintf("evictionStrategy is LiveMigrate (line %d), and a bridge to the pod network does not migrate", at.line))
		}
	}
}

// storageProfile finds the cloning strategy that the document warns of.
func (l *linter) storageProfile(o *object) {
	l.cloneStrategy(o.doc, o.get("spec"), o.key("spec"))
	if e, ok := entryOf(o.get("metadata"), "namespace"); ok && !isNull(e.Value) {
		l.report("cluster-scoped", o.doc.atKey(e, o.key("metadata", "namespace")), "remove it", "a StorageProfile has no namespace", o.doc.removeEntry(o.get("metadata"), "namespace")...)
	}
}

func (l *linter) cloneStrategy(d *doc, spec *node, path string) {
	if s := spec.Get("cloneStrategy"); textOf(s) == "csi-clone" {
		l.report("csi-clone", d.at(s, strictyaml.Key(path, "cloneStrategy")), "write copy for large numbers of clones; snapshot and csi-clone are faster for few",
			"cloneStrategy is csi-clone")
	}
}

// clones holds what is cloned against what is made, over all files.
func (l *linter) clones() {
	type source struct {
		at              place
		kind            string // PersistentVolumeClaim or DataSource
		namespace, name string
		by              fmt.Stringer
	}
	var sources []source
	cloned := make(map[string]bool)
	add := func(o *object, spec *node, path string, namespace string) {
		if pvc := dig(spec, "source", "pvc"); pvc != nil {
			ns := textOf(pvc.Get("namespace"))
			if ns == "" {
				ns = namespace
			}
			name := pvc.Get("name")
			sources = append(sources, source{o.doc.at(name, strictyaml.Key(path, "source.pvc.name")), "PersistentVolumeClaim", ns, textOf(name), o})
			cloned[textOf(name)] = true
		}
	}
	for _, p := range l.clonedPieces {
		sources = append(sources, source{p.at, "PersistentVolumeClaim", p.namespace, p.name, p})
		cloned[p.name] = true
	}
	made := make(map[string][]*object) // by name
	var names []string
	for _, o := range l.objects {
		switch o.kind {
		case "DataVolume":
			add(o, o.get("spec"), o.key("spec"), o.namespace)
			fallthrough
		case "PersistentVolumeClaim":
			if o.name != "" {
				made[o.name] = append(made[o.name], o)
				names = append(names, o.name)
			}
		case "VirtualMachine":
			for i, t := range itemsOf(o.get("spec", "dataVolumeTemplates")) {
				add(o, t.Get("spec"), strictyaml.Key(strictyaml.Index(o.key("spec", "dataVolumeTemplates"), i), "spec"), o.namespace)
				if name := textOf(dig(t, "metadata", "name")); name != "" {
					made[name] = append(made[name], o)
				}
			}
		}
	}
	for _, o := range l.objects {
		if o.kind == "VirtualMachine" {
			l.dataVolumeTemplates(o, made)
		}
	}
	free := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return cloned[n] })
	guesses := make(map[string]string)
	for _, s := range sources {
		if s.name == "" || hasHole(s.name) || hasHole(s.namespace) {
			continue
		}
		if len(names) == 0 {
			l.note("clone-source", s.at, "%s clones %s: no DataVolume or claim is among the files, so whether there is one was not checked", s.by, s.name)
			continue
		}
		makers := made[s.name]
		if len(makers) == 0 {
			guess, known := guesses[s.name]
			if !known {
				if guess = nearestName(s.name, free); guess == "" {
					guess = nearestName(s.name, names)
				}
				guesses[s.name] = guess
			}
			mend := "make a DataVolume of that name, or clone one of: " + strings.Join(few(names), ", ")
			severity := Warning // it may be in the cluster already
			if guess != "" {
				mend = fmt.Sprintf("clone %s, which is made %s", guess, seen(s.at, made[guess][0].at("metadata", "name")))
				severity = Error
			}
			l.reportAs(severity, "clone-source", s.at, mend, fmt.Sprintf("it clones %s, and nothing here makes that", s.name))
			continue
		}
		if !slices.ContainsFunc(makers, func(m *object) bool {
			return m.namespace == "" || s.namespace == "" || m.namespace == s.namespace || hasHole(m.namespace)
		}) {
			l.report("clone-source", s.at, "write namespace: "+makers[0].namespace,
				fmt.Sprintf("it clones %s of the namespace %s, and %s is made in %s", s.name, s.namespace, s.name, makers[0].namespace))
		}
	}
}

// seen is a place as it is named at another one: by its line, and by its file
// if that is another.
func seen(from, at place) string {
	if at.text == nil {
		return ""
	}
	_, line, _, _ := at.text.position(at.line, at.column)
	if from.text != nil && from.text.file == at.text.file {
		return fmt.Sprintf("on line %d", line)
	}
	return fmt.Sprintf("in %s:%d", at.text.file, line)
}

// few cuts a list that is too long for a message.
func few(names []string) []string {
	const most = 8
	if len(names) > most {
		return append(slices.Clone(names[:most]), fmt.Sprintf("... (%d in all)", len(names)))
	}
	return names
}

// nearestName is the name that was meant: one that is written almost like it,
// or the one that has all of its parts between dashes (rhel-dv, rhel-clone-dv).
func nearestName(name string, among []string) string {
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '.' })
	var found []string
	for _, candidate := range among {
		have := strings.FieldsFunc(candidate, func(r rune) bool { return r == '-' || r == '.' })
		if !slices.ContainsFunc(parts, func(p string) bool { return !slices.Contains(have, p) }) ||
			!slices.ContainsFunc(have, func(p string) bool { return !slices.Contains(parts, p) }) {
			found = append(found, candidate)
		}
	}
	if len(found) == 1 && len(parts) > 1 {
		return found[0]
	}
	if hint := near(name, among, ""); hint != "" {
		return strings.TrimSuffix(strings.TrimPrefix(hint, "did you mean "), "?")
	}
	return ""
}

// cloudInitLevel finds keys of cloud-init that stand beside the user data
// instead of in it.
func (l *linter) cloudInitLevel(d *doc, f frame, e strictyaml.Entry) bool {
	if !strings.HasSuffix(f.path, "cloudInitNoCloud") && !strings.HasSuffix(f.path, "cloudInitConfigDrive") {
		return false
	}
	known := cloudInitKeys()
	for _, k := range known {
		if strings.EqualFold(k, e.Key) {
			found := fmt.Sprintf("%s stands beside the user data", e.Key)
			if k != e.Key {
				found += ", and is written " + k
			}
			l.report("cloud-init-level", d.atKey(e, strictyaml.Key(f.path, e.Key)), fmt.Sprintf("write it as %s into the text of userData", k), found)
			return true
		}
	}
	return false
}

// cloudInit looks into user data.
func (l *linter) cloudInit(o *object, source *node, path string) {
	for _, key := range []string{"userData", "userDataBase64"} {
		data := source.Get(key)
		if textOf(data) == "" {
			continue
		}
		content := data.Text()
		if key == "userDataBase64" {
			raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(content), ""))
			if err != nil {
				l.report("wrong-type", o.doc.at(data, strictyaml.Key(path, key)), "encode it: base64 -w0", "userDataBase64 is no base64")
				continue
			}
			content = string(raw)
		}
		const most = 2048
		if len(content) > most {
			l.report("cloud-init-size", o.doc.at(data, strictyaml.Key(path, key)), "put it into a Secret, and name that in secretRef",
				fmt.Sprintf("the user data has %d bytes, at most %d may stand here", len(content), most))
		}
		t, ok := o.doc.literal(data, "user-data")
		if !ok || key == "userDataBase64" {
			t = &text{file: o.doc.text.file, name: "user-data", data: content, parent: o.doc.text, inside: "user-data"}
			t.start, _ = o.doc.text.offset(data.Line(), max(1, data.Column()))
			t.end = t.start
			t.index()
		}
		l.machine = o
		l.userData(t)
		l.machine = nil
	}
}

// userData looks at user data of cloud-init.
func (l *linter) userData(t *text) {
	first := strings.TrimSpace(t.line(1))
	if !strings.HasPrefix(first, "#cloud-config") {
		for _, mark := range []string{"#!", "#include", "#upstart", "## template: jinja", "#cloud-boothook", "#part-handler", "Content-Type:", "MIME-Version:", "From "} {
			if strings.HasPrefix(first, mark) {
				return
			}
		}
		docs, problems := strictyaml.Documents(t.name, []byte(t.data))
		if len(problems) == 0 && len(docs) == 1 && docs[0].Root != nil && docs[0].Root.Kind() == strictyaml.Mapping {
			mend := "write #cloud-config on a line of its own before it"
			if strings.HasPrefix(strings.ReplaceAll(strings.ToLower(first), " ", ""), "#cloud-config") {
				mend = "write the first line as #cloud-config"
				l.report("cloud-init-header", place{text: t, line: 1, column: 1}, mend, fmt.Sprintf("the first line is %q", first), edit{t, 0, len(t.line(1)), "#cloud-config"})
				return
			}
			l.report("cloud-init-header", place{text: t, line: 1, column: 1}, mend, "the user data does not begin with #cloud-config", edit{t, 0, 0, "#cloud-config\n"})
		}
		return
	}
	docs, problems := strictyaml.Documents(t.name, []byte(t.data))
	for _, d := range docs {
		problems = append(problems, d.Problems...)
	}
	for _, p := range problems {
		l.report("yaml-syntax", place{text: t, line: max(1, p.Line), column: p.Column}, "correct it: cloud-init ignores the user data otherwise", p.Message)
	}
	if len(problems) > 0 || len(docs) != 1 || docs[0].Root == nil || docs[0].Root.Kind() != strictyaml.Mapping {
		return
	}
	d := &doc{text: t, root: docs[0].Root}
	known := cloudInitKeys()
	for _, e := range d.root.Entries() {
		if slices.Contains(known, e.Key) || hasHole(e.Key) {
			continue
		}
		mended := false
		for _, k := range known {
			if strings.EqualFold(k, e.Key) || k == strings.ReplaceAll(e.Key, "-", "_") {
				var edits []edit
				if d.root.Get(k) == nil {
					edits = d.replaceKey(e, k)
				}
				l.report("cloud-init-key", d.atKey(e, e.Key), "write "+k, fmt.Sprintf("cloud-init knows no key %q: it is written %s", e.Key, k), edits...)
				mended = true
				break
			}
		}
		if !mended {
			if hint := near(e.Key, known, ""); hint != "" {
				l.report("cloud-init-key", d.atKey(e, e.Key), hint, fmt.Sprintf("cloud-init knows no key %q", e.Key))
			} else {
				l.reportAs(Warning, "cloud-init-key", d.atKey(e, e.Key), "remove it, or look up how it is written", fmt.Sprintf("cloud-init knows no key %q", e.Key))
			}
		}
	}
	for _, f := range itemsOf(d.root.Get("write_files")) {
		content := f.Get("content")
		name := textOf(f.Get("path"))
		if textOf(content) == "" || textOf(f.Get("encoding")) != "" {
			continue
		}
		if t, ok := d.literal(content, name); ok && l.wouldRecognise(t) {
			t.inside = name
			l.text(t)
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

// diskSizes are the disks that the files make, in bytes.
func (l *linter) diskSizes() (disks []disk) {
	add := func(o *object, request *node, path string, what string) {
		if textOf(request) == "" {
			return
		}
		q, err := resource.ParseQuantity(request.Text())
		if err != nil || q.Value() <= 0 {
			return
		}
		disks = append(disks, disk{what: what, bytes: q.Value(), text: request.Text(), at: o.doc.at(request, path), of: o})
	}
	claims := func(o *object, spec *node, path, what string) {
		for _, kind := range []string{"pvc", "storage"} {
			add(o, dig(spec, kind, "resources", "requests", "storage"), strictyaml.Key(path, kind+".resources.requests.storage"), what)
		}
	}
	for _, o := range l.objects {
		switch o.kind {
		case "DataVolume":
			claims(o, o.get("spec"), o.key("spec"), o.String())
		case "PersistentVolumeClaim":
			add(o, o.get("spec", "resources", "requests", "storage"), o.key("spec", "resources", "requests", "storage"), o.String())
		case "VirtualMachine":
			for i, t := range itemsOf(o.get("spec", "dataVolumeTemplates")) {
				claims(o, t.Get("spec"), strictyaml.Key(strictyaml.Index(o.key("spec", "dataVolumeTemplates"), i), "spec"), "the disk of "+o.String())
			}
			for i, v := range itemsOf(o.get("spec", "template", "spec", "volumes")) {
				add(o, dig(v, "emptyDisk", "capacity"), strictyaml.Key(strictyaml.Index(o.key("spec", "template", "spec", "volumes"), i), "emptyDisk.capacity"), "the empty disk of "+o.String())
			}
		}
	}
	return disks
}

// disk is a disk that some file makes.
type disk struct {
	what  string
	bytes int64
	text  string // as written
	at    place
	of    *object
}
