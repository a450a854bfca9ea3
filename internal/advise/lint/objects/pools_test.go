package objects

import (
	"strings"
	"testing"
)

func TestPools(t *testing.T)          { pools().check(t) }
func TestPoolLabels(t *testing.T)     { poolLabelsOf().check(t) }
func TestKubelets(t *testing.T)       { kubelets().check(t) }
func TestMachineConfigs(t *testing.T) { machineConfigs().check(t) }

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
func pools() table {
	return table{"a.yaml", []row{
		{
			why:   "the pool selects the configuration of another",
			fires: poolOf("zone-0", "zone-2, worker"),
			want:  `a.yaml:7:76: error: the pool zone-0 selects the configuration of zone-2 and worker, and none for zone-0 [pool-selects-other]`,
			but:   "its own name is among the roles; a template fills in a role or the name",
			near:  poolOf("zone-0", "worker, zone-2, zone-0") + "---\n" + poolOf("zone-1", "worker, \"${ZONE}\"") + "---\n" + poolOf("\"${ZONE}\"", "worker, zone-2"),
		},
		{
			why:   "a selector of one label selects one role",
			fires: pool("worker", "machineConfigSelector: {matchLabels: {machineconfiguration.openshift.io/role: master}}"),
			want:  `a.yaml:5:81: error: the pool worker selects the configuration of master, and none for worker [pool-selects-other]`,
			but:   "it selects its own; other labels and other operators are not roles",
			near:  pool("worker", "machineConfigSelector: {matchLabels: {machineconfiguration.openshift.io/role: worker}}") + "---\n" + pool("zone-0", "machineConfigSelector:\n  matchExpressions:\n  - {key: machineconfiguration.openshift.io/role, operator: NotIn, values: [zone-2]}\n  - {key: other, operator: In, values: [zone-2]}"),
		},
		{
			why:   "a pool of its own lacks what every worker has",
			fires: poolOf("zone-0", "zone-0"),
			want:  `a.yaml:7:75: warning: the pool zone-0 selects the configuration of zone-0 only [pool-without-worker]`,
			but:   "it takes the worker's configuration; the control plane must not",
			near:  poolOf("zone-0", "zone-0, worker") + "---\n" + poolOf("master", "master") + "---\n" + poolOf("arbiter", "arbiter"),
		},
		{
			why:   "the pool selects the nodes of another",
			fires: pool("zone-0", "nodeSelector: {matchLabels: {node-role.kubernetes.io/zone-1: \"\"}}"),
			want:  `a.yaml:5:32: error: the pool zone-0 selects the nodes of zone-1 [pool-selects-other]`,
			but:   "nodes may be its own, any worker, chosen by another label or by a template",
			near:  pool("zone-0", "nodeSelector: {matchLabels: {node-role.kubernetes.io/zone-0: \"\", node-role.kubernetes.io/worker: \"\", zone: zone-1, \"node-role.kubernetes.io/${ZONE}\": \"\"}}"),
		},
		{
			why:   "the commands give nodes a role that is written almost like it",
			fires: "-- a.yaml --\n" + pool("zone0", "nodeSelector: {matchLabels: {node-role.kubernetes.io/zone0: \"\"}}") + "-- b.labels --\nNode n1 node-role.kubernetes.io/zone-0=\n",
			want:  `a.yaml:5:32: error: the pool zone0 selects nodes of the role zone0, and the commands here give nodes the roles zone-0 [pool-selects-other]`,
			but:   "a node gets this role; other labels are none",
			near:  "-- a.yaml --\n" + pool("zone0", "nodeSelector: {matchLabels: {node-role.kubernetes.io/zone0: \"\"}}") + "-- b.labels --\nNode n1 node-role.kubernetes.io/zone-0=\nNode n2 node-role.kubernetes.io/zone0=\n",
		},
		{
			but:  "a role that is nothing like it is another pool's; the installer gives nodes the role worker",
			near: "-- a.yaml --\n" + pool("zone0", "nodeSelector: {matchLabels: {node-role.kubernetes.io/zone0: \"\"}}") + "-- c.yaml --\n" + pool("zone1", "nodeSelector: {matchLabels: {node-role.kubernetes.io/worker: \"\"}}") + "-- b.labels --\nNode n1 node-role.kubernetes.io/infra=\nNode n1 node-role.kubernetes.io/workers=\nMachineConfigPool zone0 node-role.kubernetes.io/zone-0=\n",
		},
	}}
}

// poolLabelsOf holds selectors of KubeletConfigs, and the labels of pools.
func poolLabelsOf() table {
	labelled := func(label string) string {
		return "-- b.yaml --\napiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfigPool\nmetadata: {name: worker, labels: {" + label + "}}\nspec: {}\n"
	}
	return table{"a.yaml", []row{
		{
			why:   "without a selector no pool gets the settings",
			fires: "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nmetadata: {name: a}\nspec:\n  kubeletConfig: {maxPods: 250}\n",
			want:  `a.yaml:4:1: error: the KubeletConfig selects no pool [kubeletconfig-selector]`,
			but:   "every cluster has a pool worker, with a label of its name; without settings nothing is lost",
			near:  kubeletConfig("a", "pools.operator.machineconfiguration.openshift.io/worker: \"\"", "maxPods: 250") + "---\napiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nmetadata: {name: b}\nspec: {}\n",
		},
		{
			why:   "a command labels the pool with another value",
			fires: "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled", "maxPods: 250") + "-- b.labels --\nMachineConfigPool worker kubelet=enable\n",
			want:  `a.yaml:5:54: error: the selector of KubeletConfig a wants kubelet=enabled, and a command in b.labels:1 labels the pool worker with kubelet=enable [kubeletconfig-selector]`,
			but:   "the command labels it with the value of the selector",
			near:  "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled", "maxPods: 250") + "-- b.labels --\nMachineConfigPool worker kubelet=enabled\n",
		},
		{
			why:   "a command labels all pools with another value",
			fires: "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled", "maxPods: 250") + "-- b.labels --\nMachineConfigPool * kubelet=enable\n",
			want:  `a.yaml:5:54: error: the selector of KubeletConfig a wants kubelet=enabled, and a command in b.labels:1 labels all pools with kubelet=enable [kubeletconfig-selector]`,
			but:   "the pool master is one of all, and gets the label, too",
			near:  "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled, pools.operator.machineconfiguration.openshift.io/master: \"\"", "maxPods: 250") + "-- b.labels --\nMachineConfigPool * kubelet=enabled\n",
		},
		{
			why:   "the pool has another value of the label",
			fires: "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled", "maxPods: 250") + labelled("kubelet: enable"),
			want:  `a.yaml:5:54: error: the selector of KubeletConfig a wants kubelet=enabled, and the pool worker has kubelet=enable [kubeletconfig-selector]`,
			but:   "the pool has the label, among others",
			near:  "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled", "maxPods: 250") + labelled("kubelet: enabled, more: b"),
		},
		{
			why:   "no pool has the label",
			fires: "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled", "maxPods: 250") + labelled("pids: many"),
			want:  `a.yaml:5:54: error: the selector of KubeletConfig a wants kubelet=enabled, and no pool here has that label [kubeletconfig-selector]`,
			but:   "the machine config operator labels the pool worker itself; a template fills in a value",
			near:  kubeletConfig("a", "machineconfiguration.openshift.io/mco-built-in: \"\"", "maxPods: 250") + "---\n" + kubeletConfig("b", "kubelet: \"${VALUE}\"", "maxPods: 250"),
		},
		{
			why:   "a label of a node, or another label of the pool, is not the one",
			fires: "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled", "maxPods: 250") + "-- b.labels --\nNode n1 kubelet=enable\nMachineConfigPool worker other=enable\n",
			want:  `a.yaml:5:54: error: the selector of KubeletConfig a wants kubelet=enabled, and no pool here has that label [kubeletconfig-selector]`,
			but:   "expressions may select any pool",
			near:  "-- a.yaml --\n" + strings.Replace(kubeletConfig("a", "kubelet: enabled", "maxPods: 250"), "{matchLabels:", "{matchExpressions: [{key: a, operator: Exists}], matchLabels:", 1) + "-- b.labels --\nMachineConfigPool worker other=enable\n",
		},
		{
			why:   "the pools master and worker both have the operator's label: one KubeletConfig takes settings from the other",
			fires: kubeletConfig("a", "machineconfiguration.openshift.io/mco-built-in: \"\"", "maxPods: 250") + "---\n" + kubeletConfig("b", "pools.operator.machineconfiguration.openshift.io/master: \"\"", "podPidsLimit: 9"),
			want:  `a.yaml:10:18: error: KubeletConfig b is for the pool master, and so is KubeletConfig a on line 3: made later, this one takes away maxPods [kubeletconfig-shadowed]`,
			but:   "a manifest of the pool need not write the operator's label",
			near:  "-- a.yaml --\n" + kubeletConfig("a", "machineconfiguration.openshift.io/mco-built-in: \"\"", "maxPods: 250") + labelled("a: b"),
		},
		{
			why:   "no pool is given: a note says that nothing was checked",
			fires: kubeletConfig("a", "kubelet: enabled", "maxPods: 250"),
			want:  `a.yaml:5:54: note: no MachineConfigPool and no command that labels one is among the files: whether the selector of KubeletConfig a matches was not checked [kubeletconfig-selector]`,
			but:   "of the label of its name it is known that the pool master has it",
			near:  kubeletConfig("a", "pools.operator.machineconfiguration.openshift.io/master: \"\"", "maxPods: 250"),
		},
		{
			why:   "two KubeletConfigs of one pool are not merged: the later one takes settings away",
			fires: "-- a.yaml --\n" + kubeletConfig("a", "kubelet: enabled", "maxPods: 250, podPidsLimit: 9") + "---\n" + kubeletConfig("b", "pools.operator.machineconfiguration.openshift.io/worker: \"\"", "maxPods: 300") + labelled("kubelet: enabled"),
			want:  `a.yaml:10:18: error: KubeletConfig b is for the pool worker, and so is KubeletConfig a on line 3: made later, this one takes away podPidsLimit [kubeletconfig-shadowed]`,
			but:   "each is for a pool of its own",
			near:  kubeletConfig("a", "pools.operator.machineconfiguration.openshift.io/master: \"\"", "maxPods: 250, podPidsLimit: 9") + "---\n" + kubeletConfig("b", "pools.operator.machineconfiguration.openshift.io/worker: \"\"", "maxPods: 300"),
		},
		{
			but:  "an expression may take the other away from the pool",
			near: kubeletConfig("a", "pools.operator.machineconfiguration.openshift.io/worker: \"\"", "maxPods: 250") + "---\n" + strings.Replace(kubeletConfig("b", "pools.operator.machineconfiguration.openshift.io/worker: \"\"", "maxPods: 300"), "{matchLabels:", "{matchExpressions: [{key: a, operator: Exists}], matchLabels:", 1),
		},
		{
			but:  "the same KubeletConfig stands there in two states",
			near: "-- a.yaml --\n" + kubeletConfig("a", "pools.operator.machineconfiguration.openshift.io/worker: \"\"", "maxPods: 250") + "-- b.yaml --\n" + kubeletConfig("a", "pools.operator.machineconfiguration.openshift.io/worker: \"\"", "maxPods: 300"),
		},
	}}
}

// kubelets hold settings of kubelets.
func kubelets() table {
	const worker = "pools.operator.machineconfiguration.openshift.io/worker: \"\""
	const other = "pools.operator.machineconfiguration.openshift.io/master: \"\""
	set := func(lines string) string {
		return "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + lines
	}
	return table{"a.yaml", []row{
		{
			why:   "the operator refuses settings that are its own",
			fires: kubeletConfig("a", worker, "failSwapOn: false, featureGates: {A: true}"),
			want: `a.yaml:6:38: error: featureGates belongs to the operator [kubeletconfig-field]
a.yaml:6:19: error: failSwapOn belongs to the operator [kubeletconfig-field]`,
			but:  "in the kubelet's own file they belong to the user",
			near: set("failSwapOn: false\nfeatureGates: {A: true}\n"),
		},
		{
			why:   "systemReserved and autoSizingReserved exclude each other",
			fires: kubeletConfig("a", worker, "systemReserved: {cpu: 500m}") + "  autoSizingReserved: true\n",
			want:  `a.yaml:6:19: error: systemReserved beside autoSizingReserved: true [kubeletconfig-field]`,
			but:   "sizing is off, or nothing is reserved",
			near:  kubeletConfig("a", worker, "systemReserved: {cpu: 500m}") + "  autoSizingReserved: false\n---\n" + kubeletConfig("b", other, "systemReserved: {}") + "  autoSizingReserved: true\n",
		},
		{
			why:   "the kubelet does not start with a number out of its range",
			fires: set("maxPods: 0\npodPidsLimit: -2\nnodeStatusMaxImages: -2\nimageGCHighThresholdPercent: 101\nregistryBurst: -1\nkubeAPIBurst: -1\nkubeAPIQPS: -1\neventBurst: -1\noomScoreAdj: 1001\npodsPerCore: -1\nmaxOpenFiles: -1\n"),
			want: `a.yaml:3:10: error: maxPods is 0 [kubelet-range]
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
			but:  "these are the bounds",
			near: set("maxPods: 1\npodPidsLimit: -1\nnodeStatusMaxImages: -1\nimageGCHighThresholdPercent: 100\nregistryBurst: 0\nkubeAPIBurst: 0\nkubeAPIQPS: 0\neventBurst: 0\noomScoreAdj: -1000\npodsPerCore: 0\nmaxOpenFiles: 0\n"),
		},
		{
			why:   "images are never removed: the default of the high threshold is 85",
			fires: set("imageGCLowThresholdPercent: 85\n"),
			want:  `a.yaml:3:29: error: imageGCLowThresholdPercent is 85, imageGCHighThresholdPercent 85 [kubelet-range]`,
			but:   "the low threshold is below it",
			near:  set("imageGCLowThresholdPercent: 84\n"),
		},
		{
			why:   "the default of the low threshold is 80",
			fires: set("imageGCHighThresholdPercent: 80\n"),
			want:  `a.yaml:3:30: error: imageGCLowThresholdPercent is 80, imageGCHighThresholdPercent 80 [kubelet-range]`,
			but:   "both are set, in order",
			near:  set("imageGCHighThresholdPercent: 80\nimageGCLowThresholdPercent: 79\n"),
		},
		{
			why:   "a soft threshold needs a grace period",
			fires: set("evictionSoft:\n  memory.available: 1Gi\n  nodefs.available: 10%\nevictionSoftGracePeriod: {memory.available: 1m}\n"),
			want:  `a.yaml:5:3: error: evictionSoft has nodefs.available without a grace period [kubelet-range]`,
			but:   "a hard threshold acts at once",
			near:  set("evictionHard:\n  nodefs.available: 10%\n"),
		},
		{
			why:   "podsPerCore keeps small nodes below maxPods",
			fires: set("maxPods: 250\npodsPerCore: 9\n"),
			want:  `a.yaml:4:14: warning: podsPerCore is 9: maxPods 250 is reached on nodes of 28 cores and more only [kubelet-range]`,
			but:   "0 is no limit",
			near:  set("maxPods: 250\npodsPerCore: 0\n"),
		},
	}}
}

// machineConfigs hold MachineConfigs and the roles that they are for.
func machineConfigs() table {
	config := func(labels string) string {
		return "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: a, labels: {" + labels + "}}\nspec: {fips: true}\n"
	}
	return table{"a.yaml", []row{
		{
			why:   "no node gets a MachineConfig without a role",
			fires: config("other: worker"),
			want:  `a.yaml:3:21: error: MachineConfig a has no role [machineconfig-role]`,
			but:   "every cluster has these two roles",
			near:  config("machineconfiguration.openshift.io/role: worker") + "---\n" + config("machineconfiguration.openshift.io/role: master"),
		},
		{
			why:   "no pool has the role",
			fires: config("machineconfiguration.openshift.io/role: zone-1") + "---\n" + poolOf("zone-0", "worker, zone-0"),
			want:  `a.yaml:3:70: error: no pool has the role zone-1 [machineconfig-role]`,
			but:   "a pool selects the role, whatever the pool's name; a template fills in a role",
			near:  config("machineconfiguration.openshift.io/role: zone-1") + "---\n" + poolOf("zone-0", "worker, zone-0, zone-1") + "---\n" + config("machineconfiguration.openshift.io/role: \"${ROLE}\""),
		},
		{
			why:   "no pool is given, and a label of a node makes none: a note says that nothing was checked",
			fires: "-- a.yaml --\n" + config("machineconfiguration.openshift.io/role: zone-1") + "-- b.labels --\nNode zone-1 a=b\n",
			want:  `a.yaml:3:70: note: no MachineConfigPool is among the files: whether a pool has the role zone-1 was not checked [machineconfig-role]`,
			but:   "the pool of the role is known by a command that labels it",
			near:  "-- a.yaml --\n" + config("machineconfiguration.openshift.io/role: zone-1") + "-- b.labels --\nMachineConfigPool zone-1 a=b\n",
		},
	}}
}
