package host

import (
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
)

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
		t.Cite(s.rows...)
	}
	slices.Sort(names)
	for _, format := range formats {
		switch format {
		case "sysctl":
			for _, name := range names {
				t.File("etc/sysctl.d/"+name, sysctlFile(list, name, assign), "sysctl, on the host as /etc/sysctl.d/"+name)
			}
			t.Command("sysctl --system", "after copying etc/sysctl.d to the host: until the next start too")
		case "tuned":
			t.File("etc/tuned/plimsoll/tuned.conf", tunedProfile(list, "throughput-performance\n\n[sysctl]"), "tuned, on a host as /etc/tuned/plimsoll/tuned.conf: tuned-adm profile plimsoll")
			t.File("tuned-"+t.Pool.Value+".yaml", tunedObject(list, t.Pool.Value), "the node tuning operator of OpenShift: oc apply -f")
			t.Cite("openshift-tuned")
		case "machineconfig":
			t.File("machineconfig-"+t.Pool.Value+"-sysctl.yaml", sysctlMachineConfig(list, names, t.Pool.Value), "the machine config operator of OpenShift: oc apply -f; it reboots the pool's nodes")
			t.Warn("a MachineConfig reboots every node of its pool; a Tuned object (--format tuned) does not")
			t.Cite("V33", "openshift-machineconfig")
		case "ansible":
			t.File("ansible-sysctl.yaml", ansiblePlay(list), "ansible-playbook, with the collection ansible.posix")
		}
	}
}

// sysctlFile returns the settings of one file, or of all for "", with comments on lines of their own.
func sysctlFile(list []setting, name string, equals func(setting) string) string {
	var b strings.Builder
	for _, s := range list {
		if s.file == name || name == "" {
			b.WriteString("# " + s.why + "\n" + s.name + equals(s) + s.value() + "\n")
		}
	}
	return b.String()
}

func assign(setting) string { return " = " }

// raise returns tuned's assignment: "=>" only raises a number.
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
	return answer.Manifest(answer.Object("tuned.openshift.io/v1", "Tuned", answer.Mapping{{"name", name}, {"namespace", "openshift-cluster-node-tuning-operator"}}, answer.Mapping{
		{"profile", []answer.Mapping{{{"name", name}, {"data", tunedProfile(list, "openshift-node\n[sysctl]")}}}},
		{"recommend", []answer.Mapping{{{"match", []answer.Mapping{{{"label", "node-role.kubernetes.io/" + pool}}}}, {"priority", 20}, {"profile", name}}}},
	}), "")
}

func sysctlMachineConfig(list []setting, names []string, pool string) string {
	var files []answer.Mapping
	for _, name := range names {
		files = append(files, answer.Ignite("/etc/sysctl.d/"+name, sysctlFile(list, name, assign)))
	}
	return answer.Manifest(answer.MachineConfigOf("99-"+pool+"-plimsoll-sysctl", pool, files), "Kernel settings. It reboots the nodes of the pool "+pool+".")
}

func ansiblePlay(list []setting) string {
	var tasks []answer.Mapping
	for _, s := range list {
		tasks = append(tasks, answer.Mapping{{"name", s.why}, {"ansible.posix.sysctl", answer.Mapping{
			{"name", s.name}, {"value", s.value()}, {"sysctl_file", "/etc/sysctl.d/" + s.file}, {"state", "present"}, {"reload", true},
		}}})
	}
	return answer.Manifest([]answer.Mapping{{{"name", "Kernel settings for network and density"}, {"hosts", "all"}, {"become", true}, {"tasks", tasks}}}, "")
}
