package lint

import (
	"reflect"
	"strings"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	clone "kubevirt.io/api/clone/v1beta1"
	kubevirt "kubevirt.io/api/core/v1"
	instancetype "kubevirt.io/api/instancetype/v1beta1"
	migrations "kubevirt.io/api/migrations/v1alpha1"
	pool "kubevirt.io/api/pool/v1beta1"
	snapshot "kubevirt.io/api/snapshot/v1beta1"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// kindOf is the type that says what an object of a kind can hold, whatever the
// version; nil if the kind is not known. Kubernetes' own kinds are left to its
// API server and to kubeconform.
func kindOf(apiVersion, kind string) reflect.Type {
	group, version, _ := strings.Cut(apiVersion, "/")
	if group == "hco.kubevirt.io" && version == "v1" {
		group = apiVersion // whose fields are others than before
	}
	return reflect.TypeOf(kinds()[group][kind])
}

// kinds are the kinds of each group that are known, each with a value of the type
// that says what it can hold.
func kinds() map[string]map[string]any {
	return map[string]map[string]any{
		"kubevirt.io": {
			"VirtualMachine": kubevirt.VirtualMachine{}, "VirtualMachineInstance": kubevirt.VirtualMachineInstance{},
			"VirtualMachineInstanceReplicaSet": kubevirt.VirtualMachineInstanceReplicaSet{},
			"VirtualMachineInstanceMigration":  kubevirt.VirtualMachineInstanceMigration{},
			"VirtualMachineInstancePreset":     kubevirt.VirtualMachineInstancePreset{}, "KubeVirt": kubevirt.KubeVirt{},
		},
		"cdi.kubevirt.io": {
			"DataVolume": cdi.DataVolume{}, "DataSource": cdi.DataSource{}, "DataImportCron": cdi.DataImportCron{}, "StorageProfile": cdi.StorageProfile{},
			"CDI": cdi.CDI{},
		},
		"instancetype.kubevirt.io": {
			"VirtualMachineInstancetype":        instancetype.VirtualMachineInstancetype{},
			"VirtualMachineClusterInstancetype": instancetype.VirtualMachineClusterInstancetype{},
			"VirtualMachinePreference":          instancetype.VirtualMachinePreference{},
			"VirtualMachineClusterPreference":   instancetype.VirtualMachineClusterPreference{},
		},
		"migrations.kubevirt.io": {"MigrationPolicy": migrations.MigrationPolicy{}},
		"pool.kubevirt.io":       {"VirtualMachinePool": pool.VirtualMachinePool{}},
		"clone.kubevirt.io":      {"VirtualMachineClone": clone.VirtualMachineClone{}},
		"snapshot.kubevirt.io":   {"VirtualMachineSnapshot": snapshot.VirtualMachineSnapshot{}, "VirtualMachineRestore": snapshot.VirtualMachineRestore{}},
		"machineconfiguration.openshift.io": {
			"MachineConfig": machineConfig{}, "MachineConfigPool": withStatus[machineConfigPoolSpec]{}, "KubeletConfig": withStatus[kubeletConfigSpec]{},
			"ContainerRuntimeConfig": withStatus[containerRuntimeConfigSpec]{},
		},
		"hco.kubevirt.io/v1":    {"HyperConverged": withStatus[hyperConvergedSpecV1]{}},
		"hco.kubevirt.io":       {"HyperConverged": withStatus[hyperConvergedSpec]{}},
		"operator.openshift.io": {"IngressController": withStatus[ingressControllerSpec]{}},
		"ceph.rook.io":          {"CephBlockPool": withStatus[cephBlockPoolSpec]{}},
		"kubelet.config.k8s.io": {"KubeletConfiguration": kubelet.KubeletConfiguration{}},
	}
}

// texts writes values of a named text type as texts.
func texts[T ~string](values ...T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// enums are the values that fields can have: by the type of the field, or by
// the struct and the key where the type is just text.
func enums() map[any][]string {
	return map[any][]string{
		reflect.TypeFor[core.PullPolicy]():                    texts(core.PullAlways, core.PullNever, core.PullIfNotPresent),
		reflect.TypeFor[core.DNSPolicy]():                     texts(core.DNSClusterFirstWithHostNet, core.DNSClusterFirst, core.DNSDefault, core.DNSNone),
		reflect.TypeFor[core.Protocol]():                      texts(core.ProtocolTCP, core.ProtocolUDP, core.ProtocolSCTP),
		reflect.TypeFor[core.PersistentVolumeAccessMode]():    texts(core.ReadWriteOnce, core.ReadOnlyMany, core.ReadWriteMany, core.ReadWriteOncePod),
		reflect.TypeFor[core.PersistentVolumeMode]():          texts(core.PersistentVolumeBlock, core.PersistentVolumeFilesystem),
		reflect.TypeFor[core.TaintEffect]():                   texts(core.TaintEffectNoSchedule, core.TaintEffectPreferNoSchedule, core.TaintEffectNoExecute),
		reflect.TypeFor[core.TolerationOperator]():            texts(core.TolerationOpExists, core.TolerationOpEqual, core.TolerationOpLt, core.TolerationOpGt),
		reflect.TypeFor[core.NodeSelectorOperator]():          texts(core.NodeSelectorOpIn, core.NodeSelectorOpNotIn, core.NodeSelectorOpExists, core.NodeSelectorOpDoesNotExist, core.NodeSelectorOpGt, core.NodeSelectorOpLt),
		reflect.TypeFor[core.URIScheme]():                     texts(core.URISchemeHTTP, core.URISchemeHTTPS),
		reflect.TypeFor[core.UnsatisfiableConstraintAction](): texts(core.DoNotSchedule, core.ScheduleAnyway),
		reflect.TypeFor[metav1.LabelSelectorOperator]():       texts(metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist),

		reflect.TypeFor[kubevirt.EvictionStrategy]():            texts(kubevirt.EvictionStrategyNone, kubevirt.EvictionStrategyLiveMigrate, kubevirt.EvictionStrategyLiveMigrateIfPossible, kubevirt.EvictionStrategyExternal),
		reflect.TypeFor[kubevirt.VirtualMachineRunStrategy]():   texts(kubevirt.RunStrategyAlways, kubevirt.RunStrategyHalted, kubevirt.RunStrategyManual, kubevirt.RunStrategyRerunOnFailure, kubevirt.RunStrategyOnce, kubevirt.RunStrategyWaitAsReceiver),
		reflect.TypeFor[kubevirt.StartStrategy]():               texts(kubevirt.StartStrategyPaused),
		reflect.TypeFor[kubevirt.IOThreadsPolicy]():             texts(kubevirt.IOThreadsPolicyShared, kubevirt.IOThreadsPolicyAuto, kubevirt.IOThreadsPolicySupplementalPool),
		reflect.TypeFor[kubevirt.DiskBus]():                     texts(kubevirt.DiskBusSATA, kubevirt.DiskBusSCSI, kubevirt.DiskBusVirtio, kubevirt.DiskBusUSB),
		reflect.TypeFor[kubevirt.InputBus]():                    texts(kubevirt.InputBusUSB, kubevirt.InputBusVirtio),
		reflect.TypeFor[kubevirt.InputType]():                   texts(kubevirt.InputTypeTablet, kubevirt.InputTypeKeyboard),
		reflect.TypeFor[kubevirt.DriverCache]():                 texts(kubevirt.CacheNone, kubevirt.CacheWriteThrough, kubevirt.CacheWriteBack),
		reflect.TypeFor[kubevirt.DriverIO]():                    texts(kubevirt.IOThreads, kubevirt.IONative),
		reflect.TypeFor[kubevirt.DiskErrorPolicy]():             texts(kubevirt.DiskErrorPolicyStop, kubevirt.DiskErrorPolicyIgnore, kubevirt.DiskErrorPolicyReport, kubevirt.DiskErrorPolicyEnospace),
		reflect.TypeFor[kubevirt.HPETTickPolicy]():              texts(kubevirt.HPETTickPolicyDelay, kubevirt.HPETTickPolicyCatchup, kubevirt.HPETTickPolicyMerge, kubevirt.HPETTickPolicyDiscard),
		reflect.TypeFor[kubevirt.PITTickPolicy]():               texts(kubevirt.PITTickPolicyDelay, kubevirt.PITTickPolicyCatchup, kubevirt.PITTickPolicyDiscard),
		reflect.TypeFor[kubevirt.RTCTickPolicy]():               texts(kubevirt.RTCTickPolicyDelay, kubevirt.RTCTickPolicyCatchup),
		reflect.TypeFor[kubevirt.RTCTimerTrack]():               texts(kubevirt.TrackGuest, kubevirt.TrackWall),
		reflect.TypeFor[kubevirt.WatchdogAction]():              texts(kubevirt.WatchdogActionPoweroff, kubevirt.WatchdogActionReset, kubevirt.WatchdogActionShutdown),
		reflect.TypeFor[kubevirt.HostDiskType]():                texts(kubevirt.HostDiskExistsOrCreate, kubevirt.HostDiskExists),
		reflect.TypeFor[kubevirt.InterfaceState]():              texts(kubevirt.InterfaceStateLinkUp, kubevirt.InterfaceStateLinkDown, kubevirt.InterfaceStateAbsent),
		reflect.TypeFor[kubevirt.UpdateVolumesStrategy]():       texts(kubevirt.UpdateVolumesStrategyReplacement, kubevirt.UpdateVolumesStrategyMigration),
		reflect.TypeFor[kubevirt.RebootPolicy]():                texts(kubevirt.RebootPolicyReboot, kubevirt.RebootPolicyTerminate),
		reflect.TypeFor[kubevirt.VMRolloutStrategy]():           texts(kubevirt.VMRolloutStrategyStage, kubevirt.VMRolloutStrategyLiveUpdate),
		reflect.TypeFor[kubevirt.WorkloadUpdateMethod]():        texts(kubevirt.WorkloadUpdateMethodLiveMigrate, kubevirt.WorkloadUpdateMethodEvict),
		enumKey{reflect.TypeFor[kubevirt.Interface](), "model"}: {"e1000", "e1000e", "igb", "ne2k_pci", "pcnet", "rtl8139", "virtio"},

		reflect.TypeFor[cdi.CDICloneStrategy]():      texts(cdi.CloneStrategyHostAssisted, cdi.CloneStrategySnapshot, cdi.CloneStrategyCsiClone),
		reflect.TypeFor[cdi.DataVolumeContentType](): texts(cdi.DataVolumeKubeVirt, cdi.DataVolumeArchive),
		reflect.TypeFor[cdi.RegistryPullMethod]():    texts(cdi.RegistryPullPod, cdi.RegistryPullNode),

		enumKey{reflect.TypeFor[kubelet.KubeletConfiguration](), "cgroupDriver"}:          {"cgroupfs", "systemd"},
		enumKey{reflect.TypeFor[kubelet.KubeletConfiguration](), "cpuManagerPolicy"}:      {"none", "static"},
		enumKey{reflect.TypeFor[kubelet.KubeletConfiguration](), "memoryManagerPolicy"}:   {"None", "Static"},
		enumKey{reflect.TypeFor[kubelet.KubeletConfiguration](), "topologyManagerPolicy"}: {"none", "best-effort", "restricted", "single-numa-node"},
		enumKey{reflect.TypeFor[kubelet.KubeletConfiguration](), "topologyManagerScope"}:  {"container", "pod"},
		enumKey{reflect.TypeFor[kubelet.KubeletConfiguration](), "hairpinMode"}:           {"promiscuous-bridge", "hairpin-veth", "none"},
	}
}

// valueHints say more of a value that people write and that there is not, by
// field=value.
func valueHints() map[string]string {
	return map[string]string{
		"evictionStrategy=Restart": "A machine whose disk lives in its container cannot come back as it was: None shuts it down when its node is drained, and a runStrategy of Always starts it anew elsewhere.",
		"evictionStrategy=Delete":  "None shuts the machine down when its node is drained.",
		"runStrategy=Running":      "Always keeps the machine running.",
		"runStrategy=Stopped":      "Halted keeps the machine stopped.",
	}
}
