package tune

import (
	"encoding/base64"
	"slices"
	"strings"
)

// hostFiles writes settings in the forms that were asked for.
func (a *Answer) hostFiles(list []setting, p Host) {
	formats := p.Formats
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
		a.cite(s.rows...)
	}
	slices.Sort(names)
	for _, format := range formats {
		switch format {
		case "sysctl":
			for _, name := range names {
				a.file("etc/sysctl.d/"+name, sysctlFile(list, name), "sysctl, on the host as /etc/sysctl.d/"+name)
			}
			a.command("sysctl --system", "after copying etc/sysctl.d to the host: until the next start too")
		case "tuned":
			a.file("etc/tuned/plimsoll/tuned.conf", "[main]\nsummary=Settings for network and density\ninclude=throughput-performance\n\n[sysctl]\n"+tunedLines(list), "tuned, on a host as /etc/tuned/plimsoll/tuned.conf: tuned-adm profile plimsoll")
			a.file("tuned-"+p.Pool.Value+".yaml", tunedObject(list, p.Pool.Value), "the node tuning operator of OpenShift: oc apply -f")
			a.cite("openshift-tuned")
		case "machineconfig":
			a.file("machineconfig-"+p.Pool.Value+"-sysctl.yaml", sysctlMachineConfig(list, names, p.Pool.Value), "the machine config operator of OpenShift: oc apply -f; it reboots the pool's nodes")
			a.warn("a MachineConfig reboots every node of its pool; a Tuned object (--format tuned) does not")
			a.cite("V33", "openshift-machineconfig")
		case "ansible":
			a.file("ansible-sysctl.yaml", ansiblePlay(list), "ansible-playbook, with the collection ansible.posix")
		}
	}
}

func sysctlFile(list []setting, name string) string {
	var b strings.Builder
	for _, s := range list {
		if s.file == name {
			// Comments have lines of their own: behind a value they would be
			// part of it.
			b.WriteString("# " + s.why + "\n" + s.name + " = " + numbers(s.want) + "\n")
		}
	}
	return b.String()
}

func tunedLines(list []setting) string {
	var b strings.Builder
	for _, s := range list {
		b.WriteString("# " + s.why + "\n" + s.name + "=" + numbers(s.want) + "\n")
	}
	return b.String()
}

type tunedCR struct {
	APIVersion string    `yaml:"apiVersion"`
	Kind       string    `yaml:"kind"`
	Metadata   meta      `yaml:"metadata"`
	Spec       tunedSpec `yaml:"spec"`
}

type tunedSpec struct {
	Profile   []tunedProfile   `yaml:"profile"`
	Recommend []tunedRecommend `yaml:"recommend"`
}

type tunedProfile struct {
	Name string `yaml:"name"`
	Data string `yaml:"data"`
}

type tunedRecommend struct {
	Match    []tunedMatch `yaml:"match"`
	Priority int          `yaml:"priority"`
	Profile  string       `yaml:"profile"`
}

type tunedMatch struct {
	Label string `yaml:"label"`
}

func tunedObject(list []setting, pool string) string {
	name := "plimsoll-" + pool
	return manifest(tunedCR{
		APIVersion: "tuned.openshift.io/v1", Kind: "Tuned",
		Metadata: meta{Name: name, Namespace: "openshift-cluster-node-tuning-operator"},
		Spec: tunedSpec{
			Profile:   []tunedProfile{{name, "[main]\nsummary=Settings for network and density\ninclude=openshift-node\n[sysctl]\n" + tunedLines(list)}},
			Recommend: []tunedRecommend{{[]tunedMatch{{"node-role.kubernetes.io/" + pool}}, 20, name}},
		},
	})
}

type machineConfig struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   meta              `yaml:"metadata"`
	Spec       machineConfigSpec `yaml:"spec"`
}

type machineConfigSpec struct {
	Config ignition `yaml:"config"`
}

type ignition struct {
	Ignition ignitionVersion `yaml:"ignition"`
	Storage  ignitionStorage `yaml:"storage"`
}

type ignitionVersion struct {
	Version string `yaml:"version"`
}

type ignitionStorage struct {
	Files []ignitionFile `yaml:"files"`
}

type ignitionFile struct {
	Path      string         `yaml:"path"`
	Mode      int            `yaml:"mode"`
	Overwrite bool           `yaml:"overwrite"`
	Contents  ignitionSource `yaml:"contents"`
}

type ignitionSource struct {
	Source string `yaml:"source"`
}

// ignitionRelease is the version of Ignition's configuration that OpenShift
// takes since 4.7. Version 2's fields filesystem and networkd are not in it.
const ignitionRelease = "3.2.0"

// machineConfigOf makes a MachineConfig that puts files on the nodes of a pool.
func machineConfigOf(name, role string, files []ignitionFile) machineConfig {
	return machineConfig{
		APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfig",
		Metadata: meta{Name: name, Labels: map[string]string{"machineconfiguration.openshift.io/role": role}},
		Spec:     machineConfigSpec{ignition{ignitionVersion{ignitionRelease}, ignitionStorage{files}}},
	}
}

// ignite is a file as Ignition writes it, readable by all.
func ignite(path, content string) ignitionFile {
	return ignitionFile{path, 0o644, true, ignitionSource{"data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(content))}}
}

func sysctlMachineConfig(list []setting, names []string, pool string) string {
	var files []ignitionFile
	for _, name := range names {
		files = append(files, ignite("/etc/sysctl.d/"+name, sysctlFile(list, name)))
	}
	return manifest(machineConfigOf("99-"+pool+"-plimsoll-sysctl", pool, files), "Kernel settings. It reboots the nodes of the pool "+pool+".")
}

type ansiblePlayBook struct {
	Name   string        `yaml:"name"`
	Hosts  string        `yaml:"hosts"`
	Become bool          `yaml:"become"`
	Tasks  []ansibleTask `yaml:"tasks"`
}

type ansibleTask struct {
	Name   string        `yaml:"name"`
	Sysctl ansibleSysctl `yaml:"ansible.posix.sysctl"`
}

type ansibleSysctl struct {
	Name   string `yaml:"name"`
	Value  string `yaml:"value"`
	File   string `yaml:"sysctl_file"`
	State  string `yaml:"state"`
	Reload bool   `yaml:"reload"`
}

func ansiblePlay(list []setting) string {
	play := ansiblePlayBook{Name: "Kernel settings for network and density", Hosts: "all", Become: true}
	for _, s := range list {
		play.Tasks = append(play.Tasks, ansibleTask{s.why, ansibleSysctl{s.name, numbers(s.want), "/etc/sysctl.d/" + s.file, "present", true}})
	}
	return manifest([]ansiblePlayBook{play})
}
