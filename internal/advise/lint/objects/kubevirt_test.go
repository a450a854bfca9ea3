package objects

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/lint/linttest"
)

func TestMachines(t *testing.T)    { looks().Check(t, machines()) }
func TestMigrations(t *testing.T)  { looks().Check(t, migrations()) }
func TestDataVolumes(t *testing.T) { looks().Check(t, dataVolumes()) }
func TestClones(t *testing.T)      { looks().Check(t, clones()) }
func TestCloudInits(t *testing.T)  { looks().Check(t, cloudInits()) }
func TestUserData(t *testing.T)    { looks().Check(t, userData()) }

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
func machines() linttest.Table {
	return linttest.Table{File: "a.yaml", Rows: []linttest.Row{
		{
			Why:   "running and runStrategy exclude each other",
			Fires: machineWith("running: true\n  runStrategy: Always", bareMachine),
			Want:  `a.yaml:5:3: error: both running and runStrategy [vm-running]`,
			But:   "runStrategy stands alone",
			Near:  machineWith("runStrategy: Always", bareMachine),
		},
		{
			Why:   "running is to be removed",
			Fires: machineWith("running: false", bareMachine),
			Want:  `a.yaml:5:3: warning: spec.running is deprecated, and is to be removed [deprecated-field]`,
			But:   "a key without a value says nothing",
			Near:  machineWith("running:\n  runStrategy: Halted", bareMachine),
		},
		{
			Why:   "KubeVirt refuses a request above its limit",
			Fires: machine("domain: {devices: {}, resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}}"),
			Want:  `a.yaml:8:60: error: the machine requests 2Gi of memory, and its limit is 1Gi [vm-resources]`,
			But:   "they are equal in two units, or one is missing",
			Near:  machine("domain: {devices: {}, resources: {requests: {memory: 1024Mi, cpu: 1}, limits: {memory: 1Gi}}}"),
		},
		{
			Why:   "a disk and its volume have different names",
			Fires: machine(oneDisk + "volumes: [{name: rot, containerDisk: {image: a}}]"),
			Want: `a.yaml:8:41: error: there is no volume "root" for this disk [vm-volume]
a.yaml:9:24: error: there is no disk "rot" for this volume [vm-volume]`,
			But:  "a filesystem mounts a volume, too",
			Near: machine("domain: {devices: {disks: [{name: root}], filesystems: [{name: shared, virtiofs: {}}]}}\nvolumes: [{name: root, containerDisk: {image: a}}, {name: shared, configMap: {name: a}}]"),
		},
		{
			Why:   "the name of a disk stands a level too deep: that is the one fault",
			Fires: machine("domain: {devices: {disks: [{disk: {name: root}}]}}\nvolumes: [{name: root, containerDisk: {image: a}}]"),
			Want:  `a.yaml:8:42: error: spec.template.spec.domain.devices.disks[0].disk has no field "name": it is a field of spec.template.spec.domain.devices.disks[0] [wrong-level]`,
			But:   "it stands at its level",
			Near:  machine("domain: {devices: {disks: [{name: root, disk: {}}]}}\nvolumes: [{name: root, containerDisk: {image: a}}]"),
		},
		{
			But:  "a name that a template fills in may be any",
			Near: machine("domain: {devices: {disks: [{name: root}]}}\nvolumes: [{name: \"${NAME}\", containerDisk: {image: a}}]"),
		},
		{
			Why:   "an interface needs a network",
			Fires: machine("domain: {devices: {interfaces: [{name: net-0, bridge: {}}]}}\nnetworks: [{name: net-1, multus: {networkName: a}}, {name: net-0, multus: {networkName: b}}]"),
			Want:  `a.yaml:9:25: error: there is no interface "net-1" for this network [vm-volume]`,
			But:   "each network has an interface",
			Near:  machine("domain: {devices: {interfaces: [{name: net-0, bridge: {}}, {name: net-1, bridge: {}}]}}\nnetworks: [{name: net-1, multus: {networkName: a}}, {name: net-0, multus: {networkName: b}}]"),
		},
		{
			Why:   "a disk without a name has no volume",
			Fires: machine("domain: {devices: {disks: [{disk: {bus: sata}}]}}"),
			Want:  `a.yaml:8:34: error: the disk has no name [missing-name]`,
			But:   "the disk has a name",
			Near:  machine("domain: {devices: {disks: [{name: root, disk: {bus: sata}}]}}\nvolumes: [{name: root, containerDisk: {image: a}}]"),
		},
		{
			Why:   "masquerade translates addresses of the pod network only",
			Fires: machine("domain: {devices: {interfaces: [{name: a, masquerade: {}}]}}\nnetworks: [{name: a, multus: {networkName: b}}]"),
			Want:  `a.yaml:8:49: error: masquerade works with the pod network only, and this one is of multus [vm-volume]`,
			But:   "this is the pod network",
			Near:  machine("domain: {devices: {interfaces: [{name: a, masquerade: {}}]}}\nnetworks: [{name: a, pod: {}}]"),
		},
		{
			Why:   "two devices cannot boot first",
			Fires: machine("domain: {devices: {disks: [{name: root, bootOrder: 1}], interfaces: [{name: a, bridge: {}, bootOrder: 1}]}}\nnetworks: [{name: a, pod: {}}]\nvolumes: [{name: root, containerDisk: {image: a}}]"),
			Want:  `a.yaml:8:109: error: bootOrder 1 stands here a second time, first on line 8 [vm-volume]`,
			But:   "one boots first, one second; others have no place",
			Near:  machine("domain: {devices: {disks: [{name: root, bootOrder: 1}, {name: more}, {name: most}], interfaces: [{name: a, bridge: {}, bootOrder: 2}]}}\nnetworks: [{name: a, pod: {}}]\nvolumes: [{name: root, containerDisk: {image: a}}, {name: more, containerDisk: {image: a}}, {name: most, containerDisk: {image: a}}]"),
		},
		{
			Why:   "instances, replica sets and pools hold machines, too",
			Fires: "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: a}\nspec:\n  domain: {devices: {disks: [{name: root}]}}\n---\napiVersion: kubevirt.io/v1\nkind: VirtualMachineInstanceReplicaSet\nmetadata: {name: a}\nspec:\n  selector: {}\n  template:\n    spec:\n      domain: {devices: {disks: [{name: root}]}}\n---\napiVersion: pool.kubevirt.io/v1beta1\nkind: VirtualMachinePool\nmetadata: {name: a}\nspec:\n  selector: {}\n  virtualMachineTemplate:\n    spec:\n      runStrategy: Always\n      template:\n        spec:\n          domain: {devices: {disks: [{name: root}]}}\n",
			Want: `a.yaml:5:37: error: there is no volume "root" for this disk [vm-volume]
a.yaml:14:41: error: there is no volume "root" for this disk [vm-volume]
a.yaml:26:45: error: there is no volume "root" for this disk [vm-volume]`,
			But:  "a machine without disks needs no volume",
			Near: "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: a}\nspec:\n  domain: {devices: {}}\n",
		},
		{
			Why:   "past 100 clones Ceph may not purge them",
			Fires: "apiVersion: cdi.kubevirt.io/v1beta1\nkind: StorageProfile\nmetadata: {name: a}\nspec:\n  cloneStrategy: csi-clone\n",
			Want:  `a.yaml:5:18: warning: cloneStrategy is csi-clone [csi-clone]`,
			But:   "copies scale",
			Near:  "apiVersion: cdi.kubevirt.io/v1beta1\nkind: StorageProfile\nmetadata: {name: a}\nspec:\n  cloneStrategy: copy\n",
		},
	}}
}

// migrations hold machines that cannot migrate live.
func migrations() linttest.Table {
	return linttest.Table{File: "a.yaml", Rows: []linttest.Row{
		{
			Why:   "the disk is a file of one host",
			Fires: machine("evictionStrategy: LiveMigrate\n" + oneDisk + "volumes:\n- name: root\n  hostDisk: {path: /a, type: Disk}"),
			Want:  `a.yaml:12:19: warning: evictionStrategy is LiveMigrate, and the disk is a file of one host [not-migratable]`,
			But:   "a machine that is shut down on a drain may have such a disk",
			Near:  machine("evictionStrategy: None\n" + oneDisk + "volumes:\n- name: root\n  hostDisk: {path: /a, type: Disk}"),
		},
		{
			Why:   "one node can mount the disk",
			Fires: machineWith("runStrategy: Always\n  dataVolumeTemplates: [{metadata: {name: root-a}, spec: {pvc: {accessModes: [ReadWriteOnce]}}}]", "evictionStrategy: LiveMigrate\n"+oneDiskOf),
			Want:  `a.yaml:6:79: warning: evictionStrategy is LiveMigrate, and the disk root-a can be mounted by one node only (ReadWriteOnce) [not-migratable]`,
			But:   "several nodes can; without a mode the storage profile has one",
			Near:  machineWith("runStrategy: Always\n  dataVolumeTemplates: [{metadata: {name: root-a}, spec: {pvc: {accessModes: [ReadWriteMany]}, storage: {}}}]", "evictionStrategy: LiveMigrate\n"+oneDiskOf),
		},
		{
			But:  "a template fills in the mode",
			Near: machineWith("runStrategy: Always\n  dataVolumeTemplates: [{metadata: {name: root-a}, spec: {pvc: {accessModes: [\"${MODE}\"]}}}]", "evictionStrategy: LiveMigrate\n"+oneDiskOf),
		},
		{
			Why:   "a bridge to the pod network does not migrate",
			Fires: machine("evictionStrategy: LiveMigrate\ndomain: {devices: {interfaces: [{name: a, bridge: {}}]}}\nnetworks: [{name: a, pod: {}}]"),
			Want:  `a.yaml:9:49: warning: evictionStrategy is LiveMigrate (line 8), and a bridge to the pod network does not migrate [not-migratable]`,
			But:   "masquerade migrates, and so does a bridge to a network of multus",
			Near:  machine("evictionStrategy: LiveMigrate\ndomain: {devices: {interfaces: [{name: a, masquerade: {}}, {name: b, bridge: {}}]}}\nnetworks: [{name: a, pod: {}}, {name: b, multus: {networkName: c}}]"),
		},
	}}
}

// dataVolumes hold machines that make DataVolumes for their volumes.
func dataVolumes() linttest.Table {
	templates := func(metadata string) string {
		return "runStrategy: Always\n  dataVolumeTemplates:\n  - metadata: " + metadata + "\n    spec: {}"
	}
	return linttest.Table{File: "a.yaml", Rows: []linttest.Row{
		{
			Why:   "nobody makes the DataVolume that is mounted",
			Fires: machineWith(templates("{name: root-b}"), oneDiskOf),
			Want:  `a.yaml:12:49: error: the volume mounts the DataVolume root-a, and dataVolumeTemplates make root-b [vm-datavolume]`,
			But:   "another file makes it",
			Near:  machineWith(templates("{name: root-b}"), oneDiskOf) + "---\napiVersion: cdi.kubevirt.io/v1beta1\nkind: DataVolume\nmetadata: {name: root-a}\nspec: {}\n",
		},
		{
			But:  "a name that a template fills in may be any",
			Near: machineWith(templates("{name: \"root-${N}\"}"), oneDiskOf),
		},
		{
			But:  "a volume that a template names may mount it",
			Near: machineWith(templates("{name: root-a}"), oneDisk+"volumes: [{name: root, dataVolume: {name: \"${NAME}\"}}]"),
		},
		{
			Why:   "a template without a name makes nothing",
			Fires: machineWith(templates("{labels: {a: b}}"), oneDiskOf),
			Want:  `a.yaml:7:5: error: the DataVolume template has no name [missing-name]`,
			But:   "it has a name",
			Near:  machineWith(templates("{name: root-a, labels: {a: b}}"), oneDiskOf),
		},
		{
			Why:   "no volume mounts what the template makes",
			Fires: machineWith(templates("{name: root-a}"), bareMachine),
			Want:  `a.yaml:7:22: error: no volume of the machine mounts the DataVolume root-a [vm-datavolume]`,
			But:   "a volume may mount the claim of the DataVolume",
			Near:  machineWith(templates("{name: root-a}"), oneDisk+"volumes: [{name: root, persistentVolumeClaim: {claimName: root-a}}]"),
		},
	}}
}

// clones hold clones and what they clone.
func clones() linttest.Table {
	made := func(name, size string) string {
		return "apiVersion: cdi.kubevirt.io/v1beta1\nkind: DataVolume\nmetadata: {name: " + name + ", namespace: a}\nspec: {pvc: {resources: {requests: {storage: " + size + "}}}}\n"
	}
	clone := func(source, size string) string {
		return "apiVersion: cdi.kubevirt.io/v1beta1\nkind: DataVolume\nmetadata: {name: copy, namespace: a}\nspec:\n  source: {pvc: " + source + "}\n  pvc: {resources: {requests: {storage: " + size + "}}}\n"
	}
	return linttest.Table{File: "a.yaml", Rows: []linttest.Row{
		{
			Why:   "one letter differs: the clone stays Pending",
			Fires: made("golden", "5Gi") + "---\n" + clone("{name: goldn, namespace: a}", "5Gi"),
			Want:  `a.yaml:10:24: error: it clones goldn, and nothing here makes that [clone-source]`,
			But:   "it clones what is made here",
			Near:  made("golden", "5Gi") + "---\n" + clone("{name: golden, namespace: a}", "5Gi"),
		},
		{
			Why:   "the one name that has all parts of this one was meant",
			Fires: made("rhel.clone-dv", "5Gi") + "---\n" + made("fedora-clone-dv", "5Gi") + "---\n" + clone("{name: rhel-dv, namespace: a}", "5Gi"),
			Want:  `a.yaml:15:24: error: it clones rhel-dv, and nothing here makes that [clone-source]`,
			But:   "it clones what is made here",
			Near:  made("rhel-clone-dv", "5Gi") + "---\n" + clone("{name: rhel-clone-dv, namespace: a}", "5Gi"),
		},
		{
			Why:   "nothing here is named like it: it may be in the cluster",
			Fires: made("golden", "5Gi") + "---\n" + clone("{name: windows, namespace: a}", "5Gi"),
			Want:  `a.yaml:10:24: warning: it clones windows, and nothing here makes that [clone-source]`,
			But:   "a template fills in the name",
			Near:  made("golden", "5Gi") + "---\n" + clone("{name: \"${IMAGE}\", namespace: a}", "5Gi"),
		},
		{
			Why:   "it is made in another namespace",
			Fires: made("golden", "5Gi") + "---\n" + clone("{name: golden, namespace: b}", "5Gi"),
			Want:  `a.yaml:10:24: error: it clones golden of the namespace b, and golden is made in a [clone-source]`,
			But:   "a template fills in the namespace",
			Near:  made("golden", "5Gi") + "---\n" + clone("{name: golden, namespace: \"${NAMESPACE}\"}", "5Gi"),
		},
		{
			Why:   "the clone is smaller than its source",
			Fires: made("golden", "5Gi") + "---\n" + clone("{name: golden, namespace: a}", "4Gi"),
			Want:  `a.yaml:11:41: error: it asks for 4Gi, and golden, which it clones, has 5Gi (on line 4) [clone-source]`,
			But:   "5120Mi are as much as 5Gi",
			Near:  made("golden", "5Gi") + "---\n" + clone("{name: golden, namespace: a}", "5120Mi"),
		},
		{
			But:  "without a namespace it may be another of the same name that is larger",
			Near: strings.Replace(made("golden", "5Gi"), ", namespace: a", "", 1) + "---\n" + clone("{name: golden, namespace: a}", "4Gi"),
		},
		{
			Why:   "a machine's template clones, too",
			Fires: made("golden", "5Gi") + "---\n" + machineWith("runStrategy: Always\n  dataVolumeTemplates: [{metadata: {name: root-a}, spec: {source: {pvc: {name: goldn, namespace: a}}}}]", oneDiskOf),
			Want:  `a.yaml:11:80: error: it clones goldn, and nothing here makes that [clone-source]`,
			But:   "it clones what is made here",
			Near:  made("golden", "5Gi") + "---\n" + machineWith("runStrategy: Always\n  dataVolumeTemplates: [{metadata: {name: root-a}, spec: {source: {pvc: {name: golden, namespace: a}}}}]", oneDiskOf),
		},
		{
			Why:   "nothing of the namespace is given: a note says that nothing was checked",
			Fires: clone("{name: golden, namespace: b}", "5Gi"),
			Want:  `a.yaml:5:24: note: DataVolume copy clones golden: no DataVolume or claim of its namespace is among the files, so whether there is one was not checked [clone-source]`,
			But:   "a claim of the namespace is given",
			Near:  clone("{name: golden, namespace: b}", "5Gi") + "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: golden, namespace: b}\n",
		},
	}}
}

// cloudInits hold machines with user data.
func cloudInits() linttest.Table {
	with := func(source string) string {
		return machine(oneDisk + "volumes:\n- name: root\n  cloudInitNoCloud:\n" + indented("    ", source))
	}
	return linttest.Table{File: "a.yaml", Rows: []linttest.Row{
		{
			Why:   "KubeVirt drops the key: cloud-init never sees it",
			Fires: with("userData: \"#cloud-config\"\nrunCmd: [a]"),
			Want:  `a.yaml:13:11: error: runCmd stands beside the user data, and is written runcmd [cloud-init-level]`,
			But:   "it stands in the user data",
			Near:  with("userData: |\n  #cloud-config\n  runcmd: [a]"),
		},
		{
			Why:   "elsewhere in a machine a key of cloud-init is unknown at all",
			Fires: machine(bareMachine + "\nruncmd: [a]"),
			Want:  `a.yaml:9:7: error: spec.template.spec has no field "runcmd" [unknown-field]`,
			But:   "the machine has a hostname, as cloud-init has",
			Near:  machine(bareMachine + "\nhostname: a"),
		},
		{
			Why:   "the key stands beside the user data of a config drive",
			Fires: machine(oneDisk + "volumes:\n- name: root\n  cloudInitConfigDrive: {userData: \"#cloud-config\", password: a}"),
			Want:  `a.yaml:11:59: error: password stands beside the user data [cloud-init-level]`,
			But:   "the network's data may stand there",
			Near:  machine(oneDisk + "volumes:\n- name: root\n  cloudInitConfigDrive: {userData: \"#cloud-config\", networkData: a}"),
		},
		{
			Why:   "KubeVirt cannot decode the user data",
			Fires: with("userDataBase64: hello!"),
			Want:  `a.yaml:12:27: error: userDataBase64 is not base64 [wrong-type]`,
			But:   "it is base64",
			Near:  with("userDataBase64: I2Nsb3VkLWNvbmZpZwo="),
		},
		{
			Why:   "user data of 2049 bytes does not fit into the manifest",
			Fires: with("userData: \"#cloud-config " + strings.Repeat("#", 2049-len("#cloud-config ")) + "\""),
			Want:  `a.yaml:12:21: error: the user data has 2049 bytes, at most 2048 may stand here [cloud-init-size]`,
			But:   "2048 bytes fit, and base64 is counted as what it holds",
			Near:  with("userData: \"#cloud-config " + strings.Repeat("#", 2048-len("#cloud-config ")) + "\"\nuserDataBase64: " + strings.Repeat("IyMj", 682)),
		},
	}}
}

// userData holds user data itself.
func userData() linttest.Table {
	return linttest.Table{File: "a.userdata", Rows: []linttest.Row{
		{
			Why:   "cloud-init ignores all of it: a space stands in the header",
			Fires: "# cloud-config\nruncmd: [a]\n",
			Want:  `a.userdata:1:1: error: the first line is "# cloud-config" [cloud-init-header]`,
			But:   "what follows the header is a comment",
			Near:  "#cloud-config of a machine\nruncmd: [a]\n",
		},
		{
			Why:   "without the header cloud-init does not know what it is",
			Fires: "runcmd: [a]\n",
			Want:  `a.userdata:1:1: error: the user data does not begin with #cloud-config [cloud-init-header]`,
			But:   "a script begins with a mark of its own",
			Near:  "#!/bin/sh\nkey: value\n",
		},
		{
			But:  "a text that is no mapping is meant for something else",
			Near: "hello\n",
		},
		{
			Why:   "cloud-init ignores user data that it cannot read",
			Fires: "#cloud-config\nruncmd: [a\n",
			Want:  `a.userdata:2:9: error: not valid YAML: sequence end token ']' not found [yaml-syntax]`,
			But:   "a header alone is valid",
			Near:  "#cloud-config\n",
		},
		{
			Why:   "cloud-init writes keys in small letters, with underscores",
			Fires: "#cloud-config\nRunCmd: [a]\nssh-pwauth: true\n",
			Want: `a.userdata:2:1: error: cloud-init knows no key "RunCmd": it is written runcmd [cloud-init-key]
a.userdata:3:1: error: cloud-init knows no key "ssh-pwauth": it is written ssh_pwauth [cloud-init-key]`,
			But:  "two keys do have a dash",
			Near: "#cloud-config\nruncmd: [a]\nssh_pwauth: true\nca-certs: {}\nlaunch-index: 0\n",
		},
		{
			Why:   "one letter is missing",
			Fires: "#cloud-config\npakages: [a]\n",
			Want:  `a.userdata:2:1: error: cloud-init knows no key "pakages" [cloud-init-key]`,
			But:   "a template fills in a key",
			Near:  "#cloud-config\npackages: [a]\n${MORE}: [a]\n",
		},
		{
			Why:   "nothing that cloud-init knows is close",
			Fires: "#cloud-config\nnonsense: 1\n",
			Want:  `a.userdata:2:1: warning: cloud-init knows no key "nonsense" [cloud-init-key]`,
			But:   "it is known below another key",
			Near:  "#cloud-config\nansible: {nonsense: 1}\n",
		},
		{
			Why:   "cloud-init leaves a module out that wants a list",
			Fires: "#cloud-config\nruncmd: default\nusers: root\n",
			Want: `a.userdata:2:1: error: runcmd wants a list, found the text "default" [cloud-init-value]
a.userdata:3:1: error: users wants a list, found the text "root" [cloud-init-value]`,
			But:  "default is the one text that users may be, and a template may fill in a list",
			Near: "#cloud-config\nruncmd: [reboot]\nusers: default\nbootcmd: ${COMMANDS}\n",
		},
	}}
}
