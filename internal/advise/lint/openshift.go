package lint

import (
	"reflect"

	ignition30 "github.com/coreos/ignition/v2/config/v3_0/types"
	ignition31 "github.com/coreos/ignition/v2/config/v3_1/types"
	ignition32 "github.com/coreos/ignition/v2/config/v3_2/types"
	ignition33 "github.com/coreos/ignition/v2/config/v3_3/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// What objects of OpenShift can hold, as its documentation of the API lists
// it: the published types bring along more than these few kinds need.

type machineConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              machineConfigSpec `json:"spec"`
}

type machineConfigSpec struct {
	OSImageURL                     string   `json:"osImageURL"`
	BaseOSExtensionsContainerImage string   `json:"baseOSExtensionsContainerImage"`
	Config                         any      `json:"config"` // Ignition, by its version
	KernelArguments                []string `json:"kernelArguments"`
	Extensions                     []string `json:"extensions"`
	FIPS                           bool     `json:"fips"`
	KernelType                     string   `json:"kernelType"`
}

// withStatus is an object with a specification and a status.
type withStatus[Spec any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec `json:"spec"`
	Status            any  `json:"status"`
}

type machineConfigPoolSpec struct {
	MachineConfigSelector *metav1.LabelSelector   `json:"machineConfigSelector"`
	NodeSelector          *metav1.LabelSelector   `json:"nodeSelector"`
	Paused                bool                    `json:"paused"`
	MaxUnavailable        *intstr.IntOrString     `json:"maxUnavailable"`
	Configuration         any                     `json:"configuration"`
	PinnedImageSets       []struct{ Name string } `json:"pinnedImageSets"`
	OSImageStream         any                     `json:"osImageStream"`
}

type kubeletConfigSpec struct {
	AutoSizingReserved        *bool                         `json:"autoSizingReserved"`
	LogLevel                  *int32                        `json:"logLevel"`
	MachineConfigPoolSelector *metav1.LabelSelector         `json:"machineConfigPoolSelector"`
	KubeletConfig             *kubelet.KubeletConfiguration `json:"kubeletConfig"`
	TLSSecurityProfile        any                           `json:"tlsSecurityProfile"`
}

type containerRuntimeConfigSpec struct {
	_                         open
	MachineConfigPoolSelector *metav1.LabelSelector `json:"machineConfigPoolSelector"`
	ContainerRuntimeConfig    *containerRuntime     `json:"containerRuntimeConfig"`
}

type containerRuntime struct {
	_              open
	PidsLimit      *int64 `json:"pidsLimit"`
	LogLevel       string `json:"logLevel"`
	DefaultRuntime string `json:"defaultRuntime"`
}

type hyperConvergedSpec struct {
	_                            open
	LiveMigrationConfig          *liveMigrationConfig `json:"liveMigrationConfig"`
	Infra                        any                  `json:"infra"`
	Workloads                    any                  `json:"workloads"`
	FeatureGates                 any                  `json:"featureGates"`
	PermittedHostDevices         any                  `json:"permittedHostDevices"`
	MediatedDevicesConfiguration any                  `json:"mediatedDevicesConfiguration"`
	CertConfig                   any                  `json:"certConfig"`
	ResourceRequirements         any                  `json:"resourceRequirements"`
	ScratchSpaceStorageClass     string               `json:"scratchSpaceStorageClass"`
	DefaultCPUModel              string               `json:"defaultCPUModel"`
	DefaultRuntimeClass          string               `json:"defaultRuntimeClass"`
	StorageImport                any                  `json:"storageImport"`
	WorkloadUpdateStrategy       any                  `json:"workloadUpdateStrategy"`
	DataImportCronTemplates      any                  `json:"dataImportCronTemplates"`
	FilesystemOverhead           any                  `json:"filesystemOverhead"`
	UninstallStrategy            string               `json:"uninstallStrategy"`
	EvictionStrategy             string               `json:"evictionStrategy"`
	VMStateStorageClass          string               `json:"vmStateStorageClass"`
	VirtualMachineOptions        any                  `json:"virtualMachineOptions"`
	CommonBootImageNamespace     string               `json:"commonBootImageNamespace"`
	HigherWorkloadDensity        any                  `json:"higherWorkloadDensity"`
	EnableCommonBootImageImport  *bool                `json:"enableCommonBootImageImport"`
	TLSSecurityProfile           any                  `json:"tlsSecurityProfile"`
}

// cephBlockPoolSpec is a pool of Rook's.
type cephBlockPoolSpec struct {
	_               open
	FailureDomain   string            `json:"failureDomain"`
	CrushRoot       string            `json:"crushRoot"`
	DeviceClass     string            `json:"deviceClass"`
	CompressionMode string            `json:"compressionMode"`
	Parameters      map[string]string `json:"parameters"`
	EnableRBDStats  bool              `json:"enableRBDStats"`
	Mirroring       any               `json:"mirroring"`
	StatusCheck     any               `json:"statusCheck"`
	Quotas          any               `json:"quotas"`
	Replicated      *struct {
		_                        open
		Size                     int64   `json:"size"`
		TargetSizeRatio          float64 `json:"targetSizeRatio"`
		RequireSafeReplicaSize   bool    `json:"requireSafeReplicaSize"`
		ReplicasPerFailureDomain int64   `json:"replicasPerFailureDomain"`
		SubFailureDomain         string  `json:"subFailureDomain"`
	} `json:"replicated"`
	ErasureCoded *struct {
		_            open
		CodingChunks int64 `json:"codingChunks"`
		DataChunks   int64 `json:"dataChunks"`
	} `json:"erasureCoded"`
}

// liveMigrationConfig is what the operator passes on of KubeVirt's migration
// configuration.
type liveMigrationConfig struct {
	ParallelMigrationsPerCluster      *uint32 `json:"parallelMigrationsPerCluster"`
	ParallelOutboundMigrationsPerNode *uint32 `json:"parallelOutboundMigrationsPerNode"`
	BandwidthPerMigration             *string `json:"bandwidthPerMigration"`
	CompletionTimeoutPerGiB           *int64  `json:"completionTimeoutPerGiB"`
	ProgressTimeout                   *int64  `json:"progressTimeout"`
	Network                           *string `json:"network"`
	AllowAutoConverge                 *bool   `json:"allowAutoConverge"`
	AllowPostCopy                     *bool   `json:"allowPostCopy"`
}

type ingressControllerSpec struct {
	_                               open
	Replicas                        *int32                `json:"replicas"`
	TuningOptions                   *tuningOptions        `json:"tuningOptions"`
	Domain                          string                `json:"domain"`
	HTTPErrorCodePages              any                   `json:"httpErrorCodePages"`
	EndpointPublishingStrategy      any                   `json:"endpointPublishingStrategy"`
	DefaultCertificate              any                   `json:"defaultCertificate"`
	NamespaceSelector               *metav1.LabelSelector `json:"namespaceSelector"`
	RouteSelector                   *metav1.LabelSelector `json:"routeSelector"`
	NodePlacement                   any                   `json:"nodePlacement"`
	TLSSecurityProfile              any                   `json:"tlsSecurityProfile"`
	ClientTLS                       any                   `json:"clientTLS"`
	RouteAdmission                  any                   `json:"routeAdmission"`
	Logging                         any                   `json:"logging"`
	HTTPHeaders                     any                   `json:"httpHeaders"`
	HTTPEmptyRequestsPolicy         string                `json:"httpEmptyRequestsPolicy"`
	HTTPCompression                 any                   `json:"httpCompression"`
	IdleConnectionTerminationPolicy string                `json:"idleConnectionTerminationPolicy"`
}

type tuningOptions struct {
	HeaderBufferBytes           int32            `json:"headerBufferBytes"`
	HeaderBufferMaxRewriteBytes int32            `json:"headerBufferMaxRewriteBytes"`
	ThreadCount                 int32            `json:"threadCount"`
	ClientTimeout               *metav1.Duration `json:"clientTimeout"`
	ClientFinTimeout            *metav1.Duration `json:"clientFinTimeout"`
	ServerTimeout               *metav1.Duration `json:"serverTimeout"`
	ServerFinTimeout            *metav1.Duration `json:"serverFinTimeout"`
	TunnelTimeout               *metav1.Duration `json:"tunnelTimeout"`
	ConnectTimeout              *metav1.Duration `json:"connectTimeout"`
	HTTPKeepAliveTimeout        *metav1.Duration `json:"httpKeepAliveTimeout"`
	TLSInspectDelay             *metav1.Duration `json:"tlsInspectDelay"`
	HealthCheckInterval         *metav1.Duration `json:"healthCheckInterval"`
	MaxConnections              int32            `json:"maxConnections"`
	ReloadInterval              metav1.Duration  `json:"reloadInterval"`
	ConfigurationManagement     string           `json:"configurationManagement"`
}

// ignitionTypes are what Ignition's configuration of each version of version 3
// can hold. What came after 3.3.0 is in laterIgnition.
func ignitionTypes() map[string]reflect.Type {
	newest := reflect.TypeFor[ignition33.Config]()
	return map[string]reflect.Type{
		"3.0.0": reflect.TypeFor[ignition30.Config](), "3.1.0": reflect.TypeFor[ignition31.Config](), "3.2.0": reflect.TypeFor[ignition32.Config](),
		"3.3.0": newest, "3.4.0": newest, newestIgnition: newest,
	}
}

const newestIgnition = "3.5.0"

// laterIgnition are the keys of storage.luks that came after 3.3.0, with the
// version that brought each.
func laterIgnition() map[string]string {
	return map[string]string{"discard": "3.4.0", "openOptions": "3.4.0", "cex": "3.5.0"}
}

// oldIgnition says of the keys that version 2 had and version 3 has not what
// took their place.
func oldIgnition() map[string]string {
	return map[string]string{
		"networkd":   "write the unit as a file below /etc/systemd/network in storage.files, or configure the network with NMState",
		"filesystem": "remove it: a file is placed by its path alone, below the path of a filesystem that is mounted",
		"append":     "write ignition.config.merge",
		"mount":      "move what it holds up into the filesystem: device, format, label, uuid, options, wipeFilesystem",
		"create":     "write the fields of the user or filesystem themselves; wipeFilesystem takes the place of create.force",
		"enable":     "write enabled",
		"size":       "write sizeMiB, in MiB instead of sectors",
		"start":      "write startMiB, in MiB instead of sectors",
		"homedir":    "write homeDir",
	}
}
