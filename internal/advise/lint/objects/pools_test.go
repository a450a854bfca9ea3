package objects

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/lint/linttest"
)

func TestPools(t *testing.T)          { looks().Check(t, pools()) }
func TestPoolLabels(t *testing.T)     { looks().Check(t, poolLabelsOf()) }
func TestKubelets(t *testing.T)       { looks().Check(t, kubelets()) }
func TestMachineConfigs(t *testing.T) { looks().Check(t, machineConfigs()) }

// pool is a MachineConfigPool: its specification begins on line 5.
func pool(name, spec string) string {
	return "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfigPool\nmetadata: {name: " + name + "}\nspec:\n" + indented("  ", spec)
}

// poolOf is a MachineConfigPool that selects the configuration of roles.
func poolOf(name, roles string) string {
	return pool(name, "machineConfigSelector:\n  matchExpressions:\n  - {key: machineconfiguration.openshift.io/role, operator: In, values: ["+roles+"]}")
}

// kubeletConfig is a KubeletConfig: its settings stand on line 6.
func kubeletConfig(name, labels, settings string) string {
	return "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nmetadata: {name: " + name + "}\nspec:\n  machineConfigPoolSelector: {matchLabels: {" + labels + "}}\n  kubeletConfig: {" + settings + "}\n"
}

// pools hold pools that select what is not their own.
func pools() linttest.Table {
	return linttest.Table{File: "a.yaml", Rows: []linttest.Row{
		{
			Why:   "the pool selects the configuration of another",
			Fires: poolOf("zone-0", "zone-2, worker"),
			Want:  `a.yaml:7:76: error: the pool zone-0 selects the configuration of zone-2 and worker, and none for zone-0 [pool-selects-other]`,
			But:   "its own name is among the roles; a template fills in a role or the name",
			Near:  poolOf("zone-0", "worker, zone-2, zone-0") + "---\n" + poolOf("zone-1", "worker, \"${ZONE}\"") + "---\n" + poolOf("\"${ZONE}\"", "worker, zone-2"),
		},
		{
			Why:   "a selector of one label selects one role",
			Fires: pool("worker", "machineConfigSelector: {matchLabels: {machineconfiguration.openshift.io/role: master}}"),
			Want:  `a.yaml:5:81: error: the pool worker selects the configuration of master, and none for worker [pool-selects-other]`,
			But:   "it selects its own; other labels and other operators are not roles",
			Near:  pool("worker", "machineConfigSelector: {matchLabels: {machineconfiguration.openshift.io/role: worker}}") + "---\n" + pool("zone-0", "machineConfigSelector:\n  matchExpressions:\n  - {key: machineconfiguration.openshift.io/role, operator: NotIn, values: [zone-2]}\n  - {key: other, operator: In, values: [zone-2]}"),
		},
		{
			Why:   "a pool of its own lacks what every worker has",
			Fires: poolOf("zone-0", "zone-0"),
			Want:  `a.yaml:7:75: warning: the pool zone-0 selects the configuration of zone-0 only [pool-without-worker]`,
			But:   "it takes the worker's configuration; the control plane must not",
			Near:  poolOf("zone-0", "zone-0, worker") + "---\n" + poolOf("master", "master") + "---\n" + poolOf("arbiter", "arbiter"),
		},
		{
			Why:   "the pool selects the nodes of another",
			Fires: pool("zone-0", "nodeSelector: {matchLabels: {node-role.kubernetes.io/zone-1: \"\"}}"),
			Want:  `a.yaml:5:32: error: the pool zone-0 selects the nodes of zone-1 [pool-selects-other]`,
			But:   "nodes may be its own, any worker, chosen by another label or by a template",
			Near:  pool("zone-0", "nodeSelector: {matchLabels: {node-role.kubernetes.io/zone-0: \"\", node-role.kubernetes.io/worker: \"\", zone: zone-1, \"node-role.kubernetes.io/${ZONE}\": \"\"}}"),
		},
		{
			Why:   "the commands give nodes a role that is written almost like it",
			Fires: "-- a.yaml --\n" + pool("zone0", "nodeSelector: {matchLabels: {node-role.kubernetes.io/zone0: \"\"}}") + "-- b.labels --\nNode n1 node-role.kubernetes.io/zone-0=\n",
			Want:  `a.yaml:5:32: error: the pool zone0 selects nodes of the role zone0, and the commands here give nodes the roles zone-0 [pool-selects-other]`,
			But:   "a node gets this role; other labels are none",
			Near:  "-- a.yaml --\n" + pool("zone0", "nodeSelector: {matchLabels: {node-role.kubernetes.io/zone0: \"\"}}") + "-- b.labels --\nNode n1 node-role.kubernetes.io/zone-0=\nNode n2 node-role.kubernetes.io/zone0=\n",
		},
		{
			But:  "a role that is nothing like it is another pool's; the installer gives nodes the role worker",
			Near: "-- a.yaml --\n" + pool("zone0", "nodeSelector: {matchLabels: {node-role.kubernetes.io/zone0: \"\"}}") + "-- c.yaml --\n" + pool("zone1", "nodeSelector: {matchLabels: {node-role.kubernetes.io/worker: \"\"}}") + "-- b.labels --\nNode n1 node-role.kubernetes.io/infra=\nNode n1 node-role.kubernetes.io/workers=\nMachineConfigPool zone0 node-role.kubernetes.io/zone-0=\n",
		},
	}}
}

// poolLabelsOf holds selectors of KubeletConfigs, and the labels of pools.
func poolLabelsOf() linttest.Table {
	labelled := func(label string) string {
		return "-- b.yaml --\napiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfigPool\nmetadata: {name: worker, labels: {" + label + "}}\nspec: {}\n"
	}
	return linttest.Table{File: "a.yaml", Rows: []linttest.Row{
		{
			Why:   "without a selector no pool gets the settings",
			Fires: "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nmetadata: {name: a}\nspec:\n  kubeletConfig: {maxPods: 250}\n",
			Want:  `a.yaml:4:1: error: the KubeletConfig selects no pool [kubeletconfig-selector]`,
			But:   "every cluster has a pool worker, with a label of its name; without settings nothing is lost",
			Near:  kubeletConfig("a", "pools.operator.machineconfiguration.openshift.io/worker: \"\"", "maxPods: 250") + "---\napiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nmetadata: {name: b}\nspec: {}\n",
		},
		{
			Why:   "a command labels the pool with another value",
			Fires: "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled", "maxPods: 250") + "-- b.labels --\nMachineConfigPool worker kubelet=enable\n",
			Want:  `a.yaml:5:54: error: the selector of KubeletConfig a wants kubelet=enabled, and a command in b.labels:1 labels the pool worker with kubelet=enable [kubeletconfig-selector]`,
			But:   "the command labels it with the value of the selector",
			Near:  "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled", "maxPods: 250") + "-- b.labels --\nMachineConfigPool worker kubelet=enabled\n",
		},
		{
			Why:   "a command labels all pools with another value",
			Fires: "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled", "maxPods: 250") + "-- b.labels --\nMachineConfigPool * kubelet=enable\n",
			Want:  `a.yaml:5:54: error: the selector of KubeletConfig a wants kubelet=enabled, and a command in b.labels:1 labels all pools with kubelet=enable [kubeletconfig-selector]`,
			But:   "the pool master is one of all, and gets the label, too",
			Near:  "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled, pools.operator.machineconfiguration.openshift.io/master: \"\"", "maxPods: 250") + "-- b.labels --\nMachineConfigPool * kubelet=enabled\n",
		},
		{
			Why:   "the pool has another value of the label",
			Fires: "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled", "maxPods: 250") + labelled("kubelet: enable"),
			Want:  `a.yaml:5:54: error: the selector of KubeletConfig a wants kubelet=enabled, and the pool worker has kubelet=enable [kubeletconfig-selector]`,
			But:   "the pool has the label, among others",
			Near:  "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled", "maxPods: 250") + labelled("kubelet: enabled, more: b"),
		},
		{
			Why:   "no pool has the label",
			Fires: "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled", "maxPods: 250") + labelled("pids: many"),
			Want:  `a.yaml:5:54: error: the selector of KubeletConfig a wants kubelet=enabled, and no pool here has that label [kubeletconfig-selector]`,
			But:   "the machine config operator labels the pool worker itself; a template fills in a value",
			Near:  kubeletConfig("a", "machineconfiguration.openshift.io/mco-built-in: \"\"", "maxPods: 250") + "---\n" + kubeletConfig("b", "kubelet: \"${VALUE}\"", "maxPods: 250"),
		},
		{
			Why:   "a label of a node, or another label of the pool, is not the one",
			Fires: "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled", "maxPods: 250") + "-- b.labels --\nNode n1 kubelet=enable\nMachineConfigPool worker other=enable\n",
			Want:  `a.yaml:5:54: error: the selector of KubeletConfig a wants kubelet=enabled, and no pool here has that label [kubeletconfig-selector]`,
			But:   "expressions may select any pool",
			Near:  "-- a.yaml --\n" + strings.Replace(kubeletConfig("a", "kubelet: enabled", "maxPods: 250"), "{matchLabels:", "{matchExpressions: [{key: a, operator: Exists}], matchLabels:", 1) + "-- b.labels --\nMachineConfigPool worker other=enable\n",
		},
		{
			Why:   "the pools master and worker both have the operator's label: one KubeletConfig takes settings from the other",
			Fires: kubeletConfig("a", "machineconfiguration.openshift.io/mco-built-in: \"\"", "maxPods: 250") + "---\n" + kubeletConfig("b", "pools.operator.machineconfiguration.openshift.io/master: \"\"", "podPidsLimit: 9"),
			Want:  `a.yaml:10:18: error: KubeletConfig b is for the pool master, and so is KubeletConfig a on line 3: made later, this one takes away maxPods [kubeletconfig-shadowed]`,
			But:   "a manifest of the pool need not write the operator's label",
			Near:  "-- a.yaml --\n" + kubeletConfig("a", "machineconfiguration.openshift.io/mco-built-in: \"\"", "maxPods: 250") + labelled("a: b"),
		},
		{
			Why:   "no pool is given: a note says that nothing was checked",
			Fires: kubeletConfig("a", "kubelet: enabled", "maxPods: 250"),
			Want:  `a.yaml:5:54: note: no MachineConfigPool and no command that labels one is among the files: whether the selector of KubeletConfig a matches was not checked [kubeletconfig-selector]`,
			But:   "of the label of its name it is known that the pool master has it",
			Near:  kubeletConfig("a", "pools.operator.machineconfiguration.openshift.io/master: \"\"", "maxPods: 250"),
		},
		{
			Why:   "two KubeletConfigs of one pool are not merged: the later one takes settings away",
			Fires: "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled", "maxPods: 250, podPidsLimit: 9") + "---\n" + kubeletConfig("b", "pools.operator.machineconfiguration.openshift.io/worker: \"\"", "maxPods: 300") + labelled("kubelet: enabled"),
			Want:  `a.yaml:10:18: error: KubeletConfig b is for the pool worker, and so is KubeletConfig a on line 3: made later, this one takes away podPidsLimit [kubeletconfig-shadowed]`,
			But:   "each is for a pool of its own",
			Near:  kubeletConfig("a", "pools.operator.machineconfiguration.openshift.io/master: \"\"", "maxPods: 250, podPidsLimit: 9") + "---\n" + kubeletConfig("b", "pools.operator.machineconfiguration.openshift.io/worker: \"\"", "maxPods: 300"),
		},
		{
			But:  "an expression may take the other away from the pool",
			Near: kubeletConfig("a", "pools.operator.machineconfiguration.openshift.io/worker: \"\"", "maxPods: 250") + "---\n" + strings.Replace(kubeletConfig("b", "pools.operator.machineconfiguration.openshift.io/worker: \"\"", "maxPods: 300"), "{matchLabels:", "{matchExpressions: [{key: a, operator: Exists}], matchLabels:", 1),
		},
		{
			But:  "the same KubeletConfig stands there in two states",
			Near: "-- a.yaml --\n" + kubeletConfig("a", "pools.operator.machineconfiguration.openshift.io/worker: \"\"", "maxPods: 250") + "-- b.yaml --\n" + kubeletConfig("a", "pools.operator.machineconfiguration.openshift.io/worker: \"\"", "maxPods: 300"),
		},
	}}
}

// kubelets hold settings of kubelets.
func kubelets() linttest.Table {
	const worker = "pools.operator.machineconfiguration.openshift.io/worker: \"\""
	const other = "pools.operator.machineconfiguration.openshift.io/master: \"\""
	set := func(lines string) string {
		return "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + lines
	}
	return linttest.Table{File: "a.yaml", Rows: []linttest.Row{
		{
			Why:   "the operator refuses settings that are its own",
			Fires: kubeletConfig("a", worker, "failSwapOn: false, featureGates: {A: true}"),
			Want: `a.yaml:6:38: error: featureGates belongs to the operator [kubeletconfig-field]
a.yaml:6:19: error: failSwapOn belongs to the operator [kubeletconfig-field]`,
			But:  "in the kubelet's own file they belong to the user",
			Near: set("failSwapOn: false\nfeatureGates: {A: true}\n"),
		},
		{
			Why:   "systemReserved and autoSizingReserved exclude each other",
			Fires: kubeletConfig("a", worker, "systemReserved: {cpu: 500m}") + "  autoSizingReserved: true\n",
			Want:  `a.yaml:6:19: error: systemReserved beside autoSizingReserved: true [kubeletconfig-field]`,
			But:   "sizing is off, or nothing is reserved",
			Near:  kubeletConfig("a", worker, "systemReserved: {cpu: 500m}") + "  autoSizingReserved: false\n---\n" + kubeletConfig("b", other, "systemReserved: {}") + "  autoSizingReserved: true\n",
		},
		{
			Why:   "the kubelet does not start with a number out of its range",
			Fires: set("maxPods: 0\npodPidsLimit: -2\nnodeStatusMaxImages: -2\nimageGCHighThresholdPercent: 101\nregistryBurst: -1\nkubeAPIBurst: -1\nkubeAPIQPS: -1\neventBurst: -1\noomScoreAdj: 1001\npodsPerCore: -1\nmaxOpenFiles: -1\n"),
			Want: `a.yaml:3:10: error: maxPods is 0 [kubelet-range]
a.yaml:4:15: error: podPidsLimit is -2 [kubelet-range]
a.yaml:5:22: error: nodeStatusMaxImages is -2 [kubelet-range]
a.yaml:6:30: error: imageGCHighThresholdPercent is 101 [kubelet-range]
a.yaml:7:16: error: registryBurst is -1 [kubelet-range]
a.yaml:8:15: error: kubeAPIBurst is -1 [kubelet-range]
a.yaml:9:13: error: kubeAPIQPS is -1 [kubelet-range]
a.yaml:10:13: error: eventBurst is -1 [kubelet-range]
a.yaml:11:14: error: oomScoreAdj is 1001 [kubelet-range]
a.yaml:12:14: error: podsPerCore is -1 [kubelet-range]
a.yaml:13:15: error: maxOpenFiles is -1 [kubelet-range]`,
			But:  "these are the bounds",
			Near: set("maxPods: 1\npodPidsLimit: -1\nnodeStatusMaxImages: -1\nimageGCHighThresholdPercent: 100\nregistryBurst: 0\nkubeAPIBurst: 0\nkubeAPIQPS: 0\neventBurst: 0\noomScoreAdj: -1000\npodsPerCore: 0\nmaxOpenFiles: 0\n"),
		},
		{
			Why:   "images are never removed: the default of the high threshold is 85",
			Fires: set("imageGCLowThresholdPercent: 85\n"),
			Want:  `a.yaml:3:29: error: imageGCLowThresholdPercent is 85, imageGCHighThresholdPercent 85 [kubelet-range]`,
			But:   "the low threshold is below it",
			Near:  set("imageGCLowThresholdPercent: 84\n"),
		},
		{
			Why:   "the default of the low threshold is 80",
			Fires: set("imageGCHighThresholdPercent: 80\n"),
			Want:  `a.yaml:3:30: error: imageGCLowThresholdPercent is 80, imageGCHighThresholdPercent 80 [kubelet-range]`,
			But:   "both are set, in order",
			Near:  set("imageGCHighThresholdPercent: 80\nimageGCLowThresholdPercent: 79\n"),
		},
		{
			Why:   "a soft threshold needs a grace period",
			Fires: set("evictionSoft:\n  memory.available: 1Gi\n  nodefs.available: 10%\nevictionSoftGracePeriod: {memory.available: 1m}\n"),
			Want:  `a.yaml:5:3: error: evictionSoft has nodefs.available without a grace period [kubelet-range]`,
			But:   "a hard threshold acts at once",
			Near:  set("evictionHard:\n  memory.available: 100Mi\n  nodefs.available: 10%\n  nodefs.inodesFree: 5%\n  imagefs.available: 15%\n"),
		},
		{
			Why:   "the kubelet refuses to reserve less than nothing",
			Fires: set("systemReserved: {cpu: -200m}\n"),
			Want:  `a.yaml:3:23: error: systemReserved.cpu is negative: -200m [kubelet-range]`,
			But:   "nothing may be reserved",
			Near:  set("systemReserved: {cpu: \"0\", memory: 1Gi}\n"),
		},
		{
			Why:   "the kubelet drops the defaults that evictionHard does not name",
			Fires: set("evictionHard:\n  memory.available: 500Mi\n"),
			Want:  `a.yaml:3:1: warning: evictionHard without nodefs.available, nodefs.inodesFree, imagefs.available [kubelet-eviction]`,
			But:   "the defaults are merged, or nothing is set",
			Near:  set("evictionHard:\n  memory.available: 500Mi\nmergeDefaultEvictionSettings: true\n") + "---\n" + set("evictionHard: {}\n"),
		},
		{
			Why:   "podsPerCore keeps small nodes below maxPods",
			Fires: set("maxPods: 250\npodsPerCore: 9\n"),
			Want:  `a.yaml:4:14: warning: podsPerCore is 9: maxPods 250 is reached on nodes of 28 cores and more only [kubelet-range]`,
			But:   "0 is no limit",
			Near:  set("maxPods: 250\npodsPerCore: 0\n"),
		},
	}}
}

// machineConfigs hold MachineConfigs and the roles that they are for.
func machineConfigs() linttest.Table {
	config := func(labels string) string {
		return "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: a, labels: {" + labels + "}}\nspec: {fips: true}\n"
	}
	return linttest.Table{File: "a.yaml", Rows: []linttest.Row{
		{
			Why:   "no node gets a MachineConfig without a role",
			Fires: config("other: worker"),
			Want:  `a.yaml:3:21: error: MachineConfig a has no role [machineconfig-role]`,
			But:   "every cluster has these two roles",
			Near:  config("machineconfiguration.openshift.io/role: worker") + "---\n" + config("machineconfiguration.openshift.io/role: master"),
		},
		{
			Why:   "no pool has the role",
			Fires: config("machineconfiguration.openshift.io/role: zone-1") + "---\n" + poolOf("zone-0", "worker, zone-0"),
			Want:  `a.yaml:3:70: error: no pool has the role zone-1 [machineconfig-role]`,
			But:   "a pool selects the role, whatever the pool's name; a template fills in a role",
			Near:  config("machineconfiguration.openshift.io/role: zone-1") + "---\n" + poolOf("zone-0", "worker, zone-0, zone-1") + "---\n" + config("machineconfiguration.openshift.io/role: \"${ROLE}\""),
		},
		{
			Why:   "no pool is given, and a label of a node makes none: a note says that nothing was checked",
			Fires: "-- a.yaml --\n" + config("machineconfiguration.openshift.io/role: zone-1") + "-- b.labels --\nNode zone-1 a=b\n",
			Want:  `a.yaml:3:70: note: no MachineConfigPool is among the files: whether a pool has the role zone-1 was not checked [machineconfig-role]`,
			But:   "the pool of the role is known by a command that labels it",
			Near:  "-- a.yaml --\n" + config("machineconfiguration.openshift.io/role: zone-1") + "-- b.labels --\nMachineConfigPool zone-1 a=b\n",
		},
	}}
}
