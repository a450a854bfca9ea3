package lint

// Rule is one thing that is looked for.
type Rule struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	Title    string   `json:"title"` // what is found, in a few words
	Why      string   `json:"why"`   // what it costs
	// Source is where that is known from: a row of the seed documents (V17), an
	// official page, or both.
	Source string `json:"source"`
}

// Rules are all rules, grouped by what they look at.
func Rules() []Rule {
	return []Rule{
		// Any YAML.
		{"duplicate-key", Error, "a key that stands twice in a mapping",
			"one of the two is dropped without a word, or the file is refused", "YAML 1.2.2 section 3.2.1.3; V18"},
		{"yaml-syntax", Error, "a block of a text that is not valid YAML",
			"whoever copies it gets an error, or less than was meant", "YAML 1.2.2; V18"},

		// Kubernetes.
		{"unknown-field", Error, "a field that the kind does not have",
			"the API server drops it, or refuses the object: the setting never takes effect", "V18-V20; https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation"},
		{"wrong-level", Error, "a field at the wrong level",
			"the API server drops it, or refuses the object: the setting never takes effect", "V18, V19; https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation"},
		{"wrong-type", Error, "a value of the wrong type",
			"the object is refused", "V19; https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation"},
		{"bad-quantity", Error, "a quantity that cannot be read",
			"the object is refused", "https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/"},
		{"bad-value", Error, "a value that there is not",
			"the object is refused", "V19; the published API types"},
		{"missing-name", Error, "a name that is missing",
			"the object is refused", "V18-V20; https://kubernetes.io/docs/concepts/overview/working-with-objects/names/"},
		{"deprecated-field", Warning, "a field, label or annotation that is deprecated",
			"it is ignored today, or will be by a later release", "V18; https://kubernetes.io/docs/reference/labels-annotations-taints/"},
		{"file-mode", Error, "a file mode whose octal digits were read as decimal",
			"the file gets other permissions than were meant", "https://coreos.github.io/ignition/configuration-v3_4/; https://kubernetes.io/docs/concepts/storage/volumes/"},

		// Virtual machines.
		{"vm-volume", Error, "disks and volumes, or interfaces and networks, that do not match",
			"KubeVirt refuses the machine", "V18-V20; https://kubevirt.io/user-guide/storage/disks_and_volumes/"},
		{"vm-datavolume", Error, "a volume that names another DataVolume than the template makes",
			"the machine waits for ever for a DataVolume that nobody makes", "V22; https://kubevirt.io/user-guide/storage/disks_and_volumes/#datavolumetemplates"},
		{"clone-source", Error, "a clone of something that is not made here",
			"the clone stays Pending: its source does not exist", "V22; https://github.com/kubevirt/containerized-data-importer/blob/main/doc/clone-datavolume.md"},
		{"csi-clone", Warning, "CSI clones as the cloning strategy",
			"above 100 clones Ceph may not purge them, not even by hand, and past 250 it flattens images while it clones", "V23-V25"},
		{"not-migratable", Warning, "a machine that is to migrate live and cannot",
			"its eviction is refused, so that the drain of its node never ends", "V31, V34; https://kubevirt.io/user-guide/compute/live_migration/#limitations"},
		{"vm-running", Error, "both running and runStrategy",
			"KubeVirt refuses the machine: they exclude each other", "https://kubevirt.io/user-guide/compute/run_strategies/"},
		{"cloud-init-key", Error, "a key that cloud-init does not know",
			"cloud-init ignores it: the password, the command or the file is not there in the guest", "V19; https://cloudinit.readthedocs.io/en/latest/reference/modules.html"},
		{"cloud-init-value", Error, "a value that is no list where cloud-init wants one",
			"cloud-init leaves the module out: no command is run, no file is written", "V19; https://cloudinit.readthedocs.io/en/latest/reference/modules.html"},
		{"cloud-init-level", Error, "a key of cloud-init that stands outside of its user data",
			"KubeVirt drops it: cloud-init never sees it", "V19; https://kubevirt.io/user-guide/user_workloads/startup_scripts/"},
		{"cloud-init-header", Error, "user data without #cloud-config on its first line",
			"cloud-init does not know what it is, and ignores all of it", "V19; https://cloudinit.readthedocs.io/en/latest/explanation/format.html"},
		{"cloud-init-size", Error, "user data of more than 2048 bytes in the manifest",
			"KubeVirt refuses the machine", "https://kubevirt.io/user-guide/user_workloads/startup_scripts/"},

		// OpenShift's machine configuration.
		{"kubeletconfig-selector", Error, "a KubeletConfig whose selector matches no pool",
			"no node gets it: maxPods stays at its default", "V17; https://docs.openshift.com/container-platform/latest/machine_configuration/machine-configs-custom.html"},
		{"kubeletconfig-shadowed", Error, "two KubeletConfigs for one pool",
			"they are not merged: the pool gets the later one alone, and the fields of the other are lost", "V15, V16; https://docs.openshift.com/container-platform/latest/machine_configuration/machine-configs-custom.html"},
		{"kubeletconfig-field", Error, "a kubelet field that a KubeletConfig may not set",
			"the operator refuses the whole KubeletConfig", "V15; https://github.com/openshift/machine-config-operator/blob/master/docs/KubeletConfigDesign.md"},
		{"kubelet-range", Error, "a kubelet setting out of its range",
			"the kubelet does not start with it", "V15, V16; https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/"},
		{"pool-selects-other", Error, "a pool that selects the configuration or the nodes of another",
			"what is meant for the pool never reaches it, and what is meant for the other reboots its nodes", "V32; https://docs.openshift.com/container-platform/latest/machine_configuration/index.html"},
		{"pool-without-worker", Warning, "a pool of its own that does not take the worker's configuration",
			"its nodes lack what every worker has, and updates of it", "V31; https://docs.openshift.com/container-platform/latest/machine_configuration/index.html"},
		{"machineconfig-role", Error, "a MachineConfig for a role that no pool has",
			"no node gets it", "V33; https://docs.openshift.com/container-platform/latest/machine_configuration/index.html"},
		{"ignition-field", Error, "a field of Ignition 2 in a configuration of version 3",
			"Ignition 3 refuses or ignores it: the pool degrades, or the file is missing", "V33; https://coreos.github.io/ignition/migrating-configs/"},
		{"ignition-version", Error, "an Ignition configuration without a known version",
			"the operator cannot read it: the pool degrades", "V33; https://coreos.github.io/ignition/specs/"},
		{"ignition-name", Error, "a path or the name of a unit that Ignition refuses",
			"Ignition refuses the configuration: the pool degrades", "V33; https://coreos.github.io/ignition/specs/"},
		{"ignition-source", Error, "a file content that cannot be decoded",
			"the operator refuses the MachineConfig", "V33; RFC 2397"},
		{"pods-above-subnet", Error, "more pods per node than the node's subnet has addresses",
			"pods past the last address wait for ever in ContainerCreating", "D3, R15; https://docs.openshift.com/container-platform/latest/installing/installing_bare_metal/installing-bare-metal.html"},

		// Networks.
		{"subnet", Error, "a range of addresses that cannot be",
			"the installer refuses it, or nodes get no subnet; it cannot be changed afterwards", "R15, R16; https://docs.openshift.com/container-platform/latest/networking/cidr-range-definitions.html"},
		{"subnet-overlap", Error, "two ranges of addresses that overlap",
			"packets go to the wrong one; it cannot be changed afterwards", "R15, R16; https://docs.openshift.com/container-platform/latest/networking/cidr-range-definitions.html"},

		// The kernel.
		{"sysctl-comment", Warning, "a comment behind a sysctl value",
			"a sysctl file has comments on lines of their own only: this one is written to the kernel as part of the value; of numbers the kernel takes those before it, a word or a range it refuses (tried with sysctl and systemd-sysctl on Linux 6.18)", "V3, V4, V7-V11; man 5 sysctl.conf"},
		{"neighbour-thresholds", Warning, "a text that has neighbour entries refused at twice a threshold",
			"who sizes the table by it expects twice the entries that gc_thresh3 allows", "V4; https://docs.kernel.org/networking/ip-sysctl.html"},
		{"sysctl-key", Error, "a sysctl key that there is not",
			"it fails when the file is loaded, and the value stays as it was", "V3-V11; https://docs.kernel.org/admin-guide/sysctl/"},
		{"sysctl-value", Error, "a sysctl value that the kernel refuses",
			"it fails when the file is loaded, and the value stays as it was", "V3-V11; https://docs.kernel.org/networking/ip-sysctl.html"},
		{"sysctl-order", Error, "sysctl values that must rise and do not",
			"the lower bound above the upper one is never reached", "V4; https://man7.org/linux/man-pages/man7/arp.7.html"},
		{"sysctl-twice", Warning, "one sysctl key with two values",
			"the one that is loaded last wins", "man 5 sysctl.d"},
		{"sysctl-tcp-buffers", Warning, "socket buffers that TCP does not use",
			"net.core.*mem_max bounds only what a program asks for with SO_RCVBUF and SO_SNDBUF, and net.core.wmem_default is overridden for TCP: its own buffers stay at net.ipv4.tcp_rmem and tcp_wmem", "V6-V9; https://docs.kernel.org/networking/ip-sysctl.html"},
		{"window-scaling", Warning, "TCP window scaling that is turned off",
			"no connection has more than 64 KiB under way: 25 Mb/s at 20 ms", "V5; RFC 7323"},

		// Ceph, HAProxy and commands.
		{"ceph-pool-key", Error, "a pool setting that Ceph does not have",
			"the command fails, and what it was to turn off stays on", "V13; https://docs.ceph.com/en/latest/rados/operations/pools/#setting-pool-values"},
		{"ceph-config-key", Error, "a configuration key that Ceph does not have",
			"the command fails, or the value is never read", "V14; https://docs.ceph.com/en/latest/mgr/prometheus/"},
		{"ceph-value", Error, "a Ceph setting that cannot have this value",
			"the command fails", "V12-V14; https://docs.ceph.com/en/latest/rados/operations/placement-groups/"},
		{"ceph-pg-num", Warning, "a number of placement groups that is no power of two",
			"some groups are twice as large as others, and so is the load of their OSDs", "V12; https://docs.ceph.com/en/latest/rados/operations/placement-groups/"},
		{"ceph-autoscaler", Warning, "a number of placement groups that the autoscaler will change back",
			"the autoscaler is on for a pool unless it was turned off: it moves pg_num to its own value, with all the data that this moves", "V13; https://docs.ceph.com/en/latest/rados/operations/placement-groups/#autoscaling-placement-groups"},
		{"gluster-multiplex-off", Warning, "brick multiplexing that is turned off",
			"every brick gets a process, a port and memory of its own", "C1, C15"},
		{"patch-syntax", Error, "a patch that is neither JSON nor YAML",
			"the command fails", "V35; https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/"},
		{"annotation-type", Error, "an annotation or label that is no text",
			"the object is refused", "V35; https://kubernetes.io/docs/concepts/overview/working-with-objects/annotations/"},
		{"cluster-scoped", Warning, "a namespace for what has none",
			"the namespace is ignored: the change is for the whole cluster", "V25"},
		{"counts-header", Warning, "a count of lines that counts the header",
			"the count is too high by one, and counts what is not meant", "C10"},
		{"bdp-formula", Error, "a buffer size that is no bandwidth-delay product",
			"the round trip in seconds times the link in Mb/s is Mbit: times 1024^2 it is 8.4 times the bytes that are under way", "V7"},
		{"bc-syntax", Error, "a bc expression that cannot be read",
			"bc answers with a syntax error: the logarithm is the letter l", "V12; man 1 bc"},
		{"haproxy-cpu-map", Warning, "all threads of HAProxy on one CPU",
			"the first argument of cpu-map is HAProxy's own process number: with threads, this puts all of them on that one CPU", "R10; https://docs.haproxy.org/2.8/configuration.html#cpu-map"},

		// Data sets.
		{"data-set-claim", Warning, "a sentence that gives another size than the files have",
			"whoever sizes the disk by it makes it too small", "V30"},
	}
}
