package objects

import (
	"strings"
	"testing"
)

func TestMachines(t *testing.T)    { machines().check(t) }
func TestMigrations(t *testing.T)  { migrations().check(t) }
func TestDataVolumes(t *testing.T) { dataVolumes().check(t) }
func TestClones(t *testing.T)      { clones().check(t) }
func TestCloudInits(t *testing.T)  { cloudInits().check(t) }
func TestUserData(t *testing.T)    { userData().check(t) }

// machine is a VirtualMachine that always runs: its template's specification
// begins on line 8.
func machine(spec string) string {
	return machineWith("runStrategy: Always", spec)
}

// machineWith is a VirtualMachine with a line of its own before the template.
func machineWith(line, spec string) string {
	return "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: a}\nspec:\n  " + line + "\n  template:\n    spec:\n" + indented("      ", spec)
}

// indented writes an indent before each line.
func indented(indent, text string) string {
	return indent + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+indent) + "\n"
}

const (
	bareMachine = "domain: {devices: {}}"
	oneDisk     = "domain: {devices: {disks: [{name: root}]}}\n"
	oneDiskOf   = oneDisk + "volumes: [{name: root, dataVolume: {name: root-a}}]"
)

// machines hold virtual machines that KubeVirt refuses.
func machines() table {
	return table{"a.yaml", []row{
		{
			why:   "running and runStrategy exclude each other",
			fires: machineWith("running: true\n  runStrategy: Always", bareMachine),
			want:  `a.yaml:5:3: error: both running and runStrategy [vm-running]`,
			but:   "runStrategy stands alone",
			near:  machineWith("runStrategy: Always", bareMachine),
		},
		{
			why:   "running is to be removed",
			fires: machineWith("running: false", bareMachine),
			want:  `a.yaml:5:3: warning: spec.running is deprecated, and is to be removed [deprecated-field]`,
			but:   "a key without a value says nothing",
			near:  machineWith("running:\n  runStrategy: Halted", bareMachine),
		},
		{
			why:   "a disk and its volume have different names",
			fires: machine(oneDisk + "volumes: [{name: rot, containerDisk: {image: a}}]"),
			want: `a.yaml:8:41: error: there is no volume "root" for this disk [vm-volume]
a.yaml:9:24: error: there is no disk "rot" for this volume [vm-volume]`,
			but:  "a filesystem mounts a volume, too",
			near: machine("domain: {devices: {disks: [{name: root}], filesystems: [{name: shared, virtiofs: {}}]}}\nvolumes: [{name: root, containerDisk: {image: a}}, {name: shared, configMap: {name: a}}]"),
		},
		{
			why:   "the name of a disk stands a level too deep: that is the one fault",
			fires: machine("domain: {devices: {disks: [{disk: {name: root}}]}}\nvolumes: [{name: root, containerDisk: {image: a}}]"),
			want:  `a.yaml:8:42: error: spec.template.spec.domain.devices.disks[0].disk has no field "name": it is a field of spec.template.spec.domain.devices.disks[0] [wrong-level]`,
			but:   "it stands at its level",
			near:  machine("domain: {devices: {disks: [{name: root, disk: {}}]}}\nvolumes: [{name: root, containerDisk: {image: a}}]"),
		},
		{
			but:  "a name that a template fills in may be any",
			near: machine("domain: {devices: {disks: [{name: root}]}}\nvolumes: [{name: \"${NAME}\", containerDisk: {image: a}}]"),
		},
		{
			why:   "an interface needs a network",
			fires: machine("domain: {devices: {interfaces: [{name: net-0, bridge: {}}]}}\nnetworks: [{name: net-1, multus: {networkName: a}}, {name: net-0, multus: {networkName: b}}]"),
			want:  `a.yaml:9:25: error: there is no interface "net-1" for this network [vm-volume]`,
			but:   "each network has an interface",
			near:  machine("domain: {devices: {interfaces: [{name: net-0, bridge: {}}, {name: net-1, bridge: {}}]}}\nnetworks: [{name: net-1, multus: {networkName: a}}, {name: net-0, multus: {networkName: b}}]"),
		},
		{
			why:   "a disk without a name has no volume",
			fires: machine("domain: {devices: {disks: [{disk: {bus: sata}}]}}"),
			want:  `a.yaml:8:34: error: the disk has no name [missing-name]`,
			but:   "the disk has a name",
			near:  machine("domain: {devices: {disks: [{name: root, disk: {bus: sata}}]}}\nvolumes: [{name: root, containerDisk: {image: a}}]"),
		},
		{
			why:   "masquerade translates addresses of the pod network only",
			fires: machine("domain: {devices: {interfaces: [{name: a, masquerade: {}}]}}\nnetworks: [{name: a, multus: {networkName: b}}]"),
			want:  `a.yaml:8:49: error: masquerade works with the pod network only, and this one is of multus [vm-volume]`,
			but:   "this is the pod network",
			near:  machine("domain: {devices: {interfaces: [{name: a, masquerade: {}}]}}\nnetworks: [{name: a, pod: {}}]"),
		},
		{
			why:   "two devices cannot boot first",
			fires: machine("domain: {devices: {disks: [{name: root, bootOrder: 1}], interfaces: [{name: a, bridge: {}, bootOrder: 1}]}}\nnetworks: [{name: a, pod: {}}]\nvolumes: [{name: root, containerDisk: {image: a}}]"),
			want:  `a.yaml:8:109: error: bootOrder 1 stands here a second time, first on line 8 [vm-volume]`,
			but:   "one boots first, one second; others have no place",
			near:  machine("domain: {devices: {disks: [{name: root, bootOrder: 1}, {name: more}, {name: most}], interfaces: [{name: a, bridge: {}, bootOrder: 2}]}}\nnetworks: [{name: a, pod: {}}]\nvolumes: [{name: root, containerDisk: {image: a}}, {name: more, containerDisk: {image: a}}, {name: most, containerDisk: {image: a}}]"),
		},
		{
			why:   "instances, replica sets and pools hold machines, too",
			fires: "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: a}\nspec:\n  domain: {devices: {disks: [{name: root}]}}\n---\napiVersion: kubevirt.io/v1\nkind: VirtualMachineInstanceReplicaSet\nmetadata: {name: a}\nspec:\n  selector: {}\n  template:\n    spec:\n      domain: {devices: {disks: [{name: root}]}}\n---\napiVersion: pool.kubevirt.io/v1beta1\nkind: VirtualMachinePool\nmetadata: {name: a}\nspec:\n  selector: {}\n  virtualMachineTemplate:\n    spec:\n      runStrategy: Always\n      template:\n        spec:\n          domain: {devices: {disks: [{name: root}]}}\n",
			want: `a.yaml:5:37: error: there is no volume "root" for this disk [vm-volume]
a.yaml:14:41: error: there is no volume "root" for this disk [vm-volume]
a.yaml:26:45: error: there is no volume "root" for this disk [vm-volume]`,
			but:  "a machine without disks needs no volume",
			near: "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: a}\nspec:\n  domain: {devices: {}}\n",
		},
		{
			why:   "past 100 clones Ceph may not purge them",
			fires: "apiVersion: cdi.kubevirt.io/v1beta1\nkind: StorageProfile\nmetadata: {name: a}\nspec:\n  cloneStrategy: csi-clone\n",
			want:  `a.yaml:5:18: warning: cloneStrategy is csi-clone [csi-clone]`,
			but:   "copies scale",
			near:  "apiVersion: cdi.kubevirt.io/v1beta1\nkind: StorageProfile\nmetadata: {name: a}\nspec:\n  cloneStrategy: copy\n",
		},
	}}
}

// migrations hold machines that cannot migrate live.
func migrations() table {
	return table{"a.yaml", []row{
		{
			why:   "the disk is a file of one host",
			fires: machine("evictionStrategy: LiveMigrate\n" + oneDisk + "volumes:\n- name: root\n  hostDisk: {path: /a, type: Disk}"),
			want:  `a.yaml:12:19: warning: evictionStrategy is LiveMigrate, and the disk is a file of one host [not-migratable]`,
			but:   "a machine that is shut down on a drain may have such a disk",
			near:  machine("evictionStrategy: None\n" + oneDisk + "volumes:\n- name: root\n  hostDisk: {path: /a, type: Disk}"),
		},
		{
			why:   "one node can mount the disk",
			fires: machineWith("runStrategy: Always\n  dataVolumeTemplates: [{metadata: {name: root-a}, spec: {pvc: {accessModes: [ReadWriteOnce]}}}]", "evictionStrategy: LiveMigrate\n"+oneDiskOf),
			want:  `a.yaml:6:79: warning: evictionStrategy is LiveMigrate, and the disk root-a can be mounted by one node only (ReadWriteOnce) [not-migratable]`,
			but:   "several nodes can; without a mode the storage profile has one",
			near:  machineWith("runStrategy: Always\n  dataVolumeTemplates: [{metadata: {name: root-a}, spec: {pvc: {accessModes: [ReadWriteMany]}, storage: {}}}]", "evictionStrategy: LiveMigrate\n"+oneDiskOf),
		},
		{
			but:  "a template fills in the mode",
			near: machineWith("runStrategy: Always\n  dataVolumeTemplates: [{metadata: {name: root-a}, spec: {pvc: {accessModes: [\"${MODE}\"]}}}]", "evictionStrategy: LiveMigrate\n"+oneDiskOf),
		},
		{
			why:   "a bridge to the pod network does not migrate",
			fires: machine("evictionStrategy: LiveMigrate\ndomain: {devices: {interfaces: [{name: a, bridge: {}}]}}\nnetworks: [{name: a, pod: {}}]"),
			want:  `a.yaml:9:49: warning: evictionStrategy is LiveMigrate (line 8), and a bridge to the pod network does not migrate [not-migratable]`,
			but:   "masquerade migrates, and so does a bridge to a network of multus",
			near:  machine("evictionStrategy: LiveMigrate\ndomain: {devices: {interfaces: [{name: a, masquerade: {}}, {name: b, bridge: {}}]}}\nnetworks: [{name: a, pod: {}}, {name: b, multus: {networkName: c}}]"),
		},
	}}
}

// dataVolumes hold machines that make DataVolumes for their volumes.
func dataVolumes() table {
	templates := func(metadata string) string {
		return "runStrategy: Always\n  dataVolumeTemplates:\n  - metadata: " + metadata + "\n    spec: {}"
	}
	return table{"a.yaml", []row{
		{
			why:   "nobody makes the DataVolume that is mounted",
			fires: machineWith(templates("{name: root-b}"), oneDiskOf),
			want:  `a.yaml:12:49: error: the volume mounts the DataVolume root-a, and dataVolumeTemplates make root-b [vm-datavolume]`,
			but:   "another file makes it",
			near:  machineWith(templates("{name: root-b}"), oneDiskOf) + "---\napiVersion: cdi.kubevirt.io/v1beta1\nkind: DataVolume\nmetadata: {name: root-a}\nspec: {}\n",
		},
		{
			but:  "a name that a template fills in may be any",
			near: machineWith(templates("{name: \"root-${N}\"}"), oneDiskOf),
		},
		{
			but:  "a volume that a template names may mount it",
			near: machineWith(templates("{name: root-a}"), oneDisk+"volumes: [{name: root, dataVolume: {name: \"${NAME}\"}}]"),
		},
		{
			why:   "a template without a name makes nothing",
			fires: machineWith(templates("{labels: {a: b}}"), oneDiskOf),
			want:  `a.yaml:7:5: error: the DataVolume template has no name [missing-name]`,
			but:   "it has a name",
			near:  machineWith(templates("{name: root-a, labels: {a: b}}"), oneDiskOf),
		},
		{
			why:   "no volume mounts what the template makes",
			fires: machineWith(templates("{name: root-a}"), bareMachine),
			want:  `a.yaml:7:22: error: no volume of the machine mounts the DataVolume root-a [vm-datavolume]`,
			but:   "a volume may mount the claim of the DataVolume",
			near:  machineWith(templates("{name: root-a}"), oneDisk+"volumes: [{name: root, persistentVolumeClaim: {claimName: root-a}}]"),
		},
	}}
}

// clones hold clones and what they clone.
func clones() table {
	made := func(name, size string) string {
		return "apiVersion: cdi.kubevirt.io/v1beta1\nkind: DataVolume\nmetadata: {name: " + name + ", namespace: a}\nspec: {pvc: {resources: {requests: {storage: " + size + "}}}}\n"
	}
	clone := func(source, size string) string {
		return "apiVersion: cdi.kubevirt.io/v1beta1\nkind: DataVolume\nmetadata: {name: copy, namespace: a}\nspec:\n  source: {pvc: " + source + "}\n  pvc: {resources: {requests: {storage: " + size + "}}}\n"
	}
	return table{"a.yaml", []row{
		{
			why:   "one letter differs: the clone stays Pending",
			fires: made("golden", "5Gi") + "---\n" + clone("{name: goldn, namespace: a}", "5Gi"),
			want:  `a.yaml:10:24: error: it clones goldn, and nothing here makes that [clone-source]`,
			but:   "it clones what is made here",
			near:  made("golden", "5Gi") + "---\n" + clone("{name: golden, namespace: a}", "5Gi"),
		},
		{
			why:   "the one name that has all parts of this one was meant",
			fires: made("rhel.clone-dv", "5Gi") + "---\n" + made("fedora-clone-dv", "5Gi") + "---\n" + clone("{name: rhel-dv, namespace: a}", "5Gi"),
			want:  `a.yaml:15:24: error: it clones rhel-dv, and nothing here makes that [clone-source]`,
			but:   "it clones what is made here",
			near:  made("rhel-clone-dv", "5Gi") + "---\n" + clone("{name: rhel-clone-dv, namespace: a}", "5Gi"),
		},
		{
			why:   "nothing here is named like it: it may be in the cluster",
			fires: made("golden", "5Gi") + "---\n" + clone("{name: windows, namespace: a}", "5Gi"),
			want:  `a.yaml:10:24: warning: it clones windows, and nothing here makes that [clone-source]`,
			but:   "a template fills in the name",
			near:  made("golden", "5Gi") + "---\n" + clone("{name: \"${IMAGE}\", namespace: a}", "5Gi"),
		},
		{
			why:   "it is made in another namespace",
			fires: made("golden", "5Gi") + "---\n" + clone("{name: golden, namespace: b}", "5Gi"),
			want:  `a.yaml:10:24: error: it clones golden of the namespace b, and golden is made in a [clone-source]`,
			but:   "a template fills in the namespace",
			near:  made("golden", "5Gi") + "---\n" + clone("{name: golden, namespace: \"${NAMESPACE}\"}", "5Gi"),
		},
		{
			why:   "the clone is smaller than its source",
			fires: made("golden", "5Gi") + "---\n" + clone("{name: golden, namespace: a}", "4Gi"),
			want:  `a.yaml:11:41: error: it asks for 4Gi, and golden, which it clones, has 5Gi (on line 4) [clone-source]`,
			but:   "5120Mi are as much as 5Gi",
			near:  made("golden", "5Gi") + "---\n" + clone("{name: golden, namespace: a}", "5120Mi"),
		},
		{
			but:  "without a namespace it may be another of the same name that is larger",
			near: strings.Replace(made("golden", "5Gi"), ", namespace: a", "", 1) + "---\n" + clone("{name: golden, namespace: a}", "4Gi"),
		},
		{
			why:   "a machine's template clones, too",
			fires: made("golden", "5Gi") + "---\n" + machineWith("runStrategy: Always\n  dataVolumeTemplates: [{metadata: {name: root-a}, spec: {source: {pvc: {name: goldn, namespace: a}}}}]", oneDiskOf),
			want:  `a.yaml:11:80: error: it clones goldn, and nothing here makes that [clone-source]`,
			but:   "it clones what is made here",
			near:  made("golden", "5Gi") + "---\n" + machineWith("runStrategy: Always\n  dataVolumeTemplates: [{metadata: {name: root-a}, spec: {source: {pvc: {name: golden, namespace: a}}}}]", oneDiskOf),
		},
		{
			why:   "nothing of the namespace is given: a note says that nothing was checked",
			fires: clone("{name: golden, namespace: b}", "5Gi"),
			want:  `a.yaml:5:24: note: DataVolume copy clones golden: no DataVolume or claim of its namespace is among the files, so whether there is one was not checked [clone-source]`,
			but:   "a claim of the namespace is given",
			near:  clone("{name: golden, namespace: b}", "5Gi") + "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: golden, namespace: b}\n",
		},
	}}
}

// cloudInits hold machines with user data.
func cloudInits() table {
	with := func(source string) string {
		return machine(oneDisk + "volumes:\n- name: root\n  cloudInitNoCloud:\n" + indented("    ", source))
	}
	return table{"a.yaml", []row{
		{
			why:   "KubeVirt drops the key: cloud-init never sees it",
			fires: with("userData: \"#cloud-config\"\nrunCmd: [a]"),
			want:  `a.yaml:13:11: error: runCmd stands beside the user data, and is written runcmd [cloud-init-level]`,
			but:   "it stands in the user data",
			near:  with("userData: |\n  #cloud-config\n  runcmd: [a]"),
		},
		{
			why:   "elsewhere in a machine a key of cloud-init is not known at all",
			fires: machine(bareMachine + "\nruncmd: [a]"),
			want:  `a.yaml:9:7: error: spec.template.spec has no field "runcmd" [unknown-field]`,
			but:   "the machine has a hostname, as cloud-init has",
			near:  machine(bareMachine + "\nhostname: a"),
		},
		{
			why:   "the key stands beside the user data of a config drive",
			fires: machine(oneDisk + "volumes:\n- name: root\n  cloudInitConfigDrive: {userData: \"#cloud-config\", password: a}"),
			want:  `a.yaml:11:59: error: password stands beside the user data [cloud-init-level]`,
			but:   "the network's data may stand there",
			near:  machine(oneDisk + "volumes:\n- name: root\n  cloudInitConfigDrive: {userData: \"#cloud-config\", networkData: a}"),
		},
		{
			why:   "KubeVirt cannot decode the user data",
			fires: with("userDataBase64: hello!"),
			want:  `a.yaml:12:27: error: userDataBase64 is no base64 [wrong-type]`,
			but:   "it is base64",
			near:  with("userDataBase64: I2Nsb3VkLWNvbmZpZwo="),
		},
		{
			why:   "user data of 2049 bytes does not fit into the manifest",
			fires: with("userData: \"#cloud-config " + strings.Repeat("#", 2049-len("#cloud-config ")) + "\""),
			want:  `a.yaml:12:21: error: the user data has 2049 bytes, at most 2048 may stand here [cloud-init-size]`,
			but:   "2048 bytes fit, and base64 is counted as what it holds",
			near:  with("userData: \"#cloud-config " + strings.Repeat("#", 2048-len("#cloud-config ")) + "\"\nuserDataBase64: " + strings.Repeat("IyMj", 682)),
		},
	}}
}

// userData holds user data itself.
func userData() table {
	return table{"a.userdata", []row{
		{
			why:   "cloud-init ignores all of it: a space stands in the header",
			fires: "# cloud-config\nruncmd: [a]\n",
			want:  `a.userdata:1:1: error: the first line is "# cloud-config" [cloud-init-header]`,
			but:   "what follows the header is a comment",
			near:  "#cloud-config of a machine\nruncmd: [a]\n",
		},
		{
			why:   "without the header cloud-init does not know what it is",
			fires: "runcmd: [a]\n",
			want:  `a.userdata:1:1: error: the user data does not begin with #cloud-config [cloud-init-header]`,
			but:   "a script begins with a mark of its own",
			near:  "#!/bin/sh\nkey: value\n",
		},
		{
			but:  "a text that is no mapping is meant for something else",
			near: "hello\n",
		},
		{
			why:   "cloud-init ignores user data that it cannot read",
			fires: "#cloud-config\nruncmd: [a\n",
			want:  `a.userdata:2:9: error: not valid YAML: sequence end token ']' not found [yaml-syntax]`,
			but:   "a header alone is valid",
			near:  "#cloud-config\n",
		},
		{
			why:   "cloud-init writes keys in small letters, with underscores",
			fires: "#cloud-config\nRunCmd: [a]\nssh-pwauth: true\n",
			want: `a.userdata:2:1: error: cloud-init knows no key "RunCmd": it is written runcmd [cloud-init-key]
a.userdata:3:1: error: cloud-init knows no key "ssh-pwauth": it is written ssh_pwauth [cloud-init-key]`,
			but:  "two keys do have a dash",
			near: "#cloud-config\nruncmd: [a]\nssh_pwauth: true\nca-certs: {}\nlaunch-index: 0\n",
		},
		{
			why:   "one letter is missing",
			fires: "#cloud-config\npakages: [a]\n",
			want:  `a.userdata:2:1: error: cloud-init knows no key "pakages" [cloud-init-key]`,
			but:   "a template fills in a key",
			near:  "#cloud-config\npackages: [a]\n${MORE}: [a]\n",
		},
		{
			why:   "nothing that cloud-init knows is close",
			fires: "#cloud-config\nnonsense: 1\n",
			want:  `a.userdata:2:1: warning: cloud-init knows no key "nonsense" [cloud-init-key]`,
			but:   "it is known below another key",
			near:  "#cloud-config\nansible: {nonsense: 1}\n",
		},
		{
			why:   "cloud-init leaves a module out that wants a list",
			fires: "#cloud-config\nruncmd: default\nusers: root\n",
			want: `a.userdata:2:1: error: runcmd wants a list, found the text "default" [cloud-init-value]
a.userdata:3:1: error: users wants a list, found the text "root" [cloud-init-value]`,
			but:  "default is the one text that users may be, and a template may fill in a list",
			near: "#cloud-config\nruncmd: [reboot]\nusers: default\nbootcmd: ${COMMANDS}\n",
		},
	}}
}
