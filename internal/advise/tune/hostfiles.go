package tune

import (
	"slices"
	"strings"
)

// files writes settings in the forms that were asked for.
func (t *hostTuner) files(list []setting) {
	formats := t.Formats
	if len(formats) == 0 {
		formats = []string{"sysctl"}
	}
	if len(list) == 0 {
		return
	}
	var names []string
	for _, s := range list {
		if !slices.Contains(names, s.file) {
			names = append(names, s.file)
		}
		t.cite(s.rows...)
	}
	slices.Sort(names)
	for _, format := range formats {
		switch format {
		case "sysctl":
			for _, name := range names {
				t.file("etc/sysctl.d/"+name, sysctlFile(list, name, assign), "sysctl, on the host as /etc/sysctl.d/"+name)
			}
			t.command("sysctl --system", "after copying etc/sysctl.d to the host: until the next start too")
		case "tuned":
			t.file("etc/tuned/plimsoll/tuned.conf", tunedProfile(list, "throughput-performance\n\n[sysctl]"), "tuned, on a host as /etc/tuned/plimsoll/tuned.conf: tuned-adm profile plimsoll")
			t.file("tuned-"+t.Pool.Value+".yaml", tunedObject(list, t.Pool.Value), "the node tuning operator of OpenShift: oc apply -f")
			t.cite("openshift-tuned")
		case "machineconfig":
			t.file("machineconfig-"+t.Pool.Value+"-sysctl.yaml", sysctlMachineConfig(list, names, t.Pool.Value), "the machine config operator of OpenShift: oc apply -f; it reboots the pool's nodes")
			t.warn("a MachineConfig reboots every node of its pool; a Tuned object (--format tuned) does not")
			t.cite("V33", "openshift-machineconfig")
		case "ansible":
			t.file("ansible-sysctl.yaml", ansiblePlay(list), "ansible-playbook, with the collection ansible.posix")
		}
	}
}

// sysctlFile is the settings of one file; of all of them for "". Comments have
// lines of their own: behind a value they would be part of it.
func sysctlFile(list []setting, name string, equals func(setting) string) string {
	var b strings.Builder
	for _, s := range list {
		if s.file == name || name == "" {
			b.WriteString("# " + s.why + "\n" + s.name + equals(s) + s.value() + "\n")
		}
	}
	return b.String()
}

// assign is how sysctl sets a value.
func assign(setting) string { return " = " }

// raise is how tuned does: with > a number is only ever raised.
func raise(s setting) string {
	if s.atLeast && len(s.want) == 1 {
		return "=>"
	}
	return "="
}

func tunedProfile(list []setting, include string) string {
	return "[main]\nsummary=Settings for network and density\ninclude=" + include + "\n" + sysctlFile(list, "", raise)
}

func tunedObject(list []setting, pool string) string {
	name := "plimsoll-" + pool
	return manifest(object("tuned.openshift.io/v1", "Tuned", mapping{{"name", name}, {"namespace", "openshift-cluster-node-tuning-operator"}}, mapping{
		{"profile", []mapping{{{"name", name}, {"data", tunedProfile(list, "openshift-node\n[sysctl]")}}}},
		{"recommend", []mapping{{{"match", []mapping{{{"label", "node-role.kubernetes.io/" + pool}}}}, {"priority", 20}, {"profile", name}}}},
	}), "")
}

func sysctlMachineConfig(list []setting, names []string, pool string) string {
	var files []mapping
	for _, name := range names {
		files = append(files, ignite("/etc/sysctl.d/"+name, sysctlFile(list, name, assign)))
	}
	return manifest(machineConfigOf("99-"+pool+"-plimsoll-sysctl", pool, files), "Kernel settings. It reboots the nodes of the pool "+pool+".")
}

func ansiblePlay(list []setting) string {
	var tasks []mapping
	for _, s := range list {
		tasks = append(tasks, mapping{{"name", s.why}, {"ansible.posix.sysctl", mapping{
			{"name", s.name}, {"value", s.value()}, {"sysctl_file", "/etc/sysctl.d/" + s.file}, {"state", "present"}, {"reload", true},
		}}})
	}
	return manifest([]mapping{{{"name", "Kernel settings for network and density"}, {"hosts", "all"}, {"become", true}, {"tasks", tasks}}}, "")
}
