package lint

import (
	"reflect"

	ignition30 "github.com/coreos/ignition/v2/config/v3_0/types"
	ignition31 "github.com/coreos/ignition/v2/config/v3_1/types"
	ignition32 "github.com/coreos/ignition/v2/config/v3_2/types"
	ignition33 "github.com/coreos/ignition/v2/config/v3_3/types"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubelet "k8s.io/kubelet/config/v1beta1"
	kubevirt "kubevirt.io/api/core/v1"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// What objects of OpenShift and of operators can hold, by their published
// definitions: the modules of their types bring along more than these few kinds
// need. The tag "values" lists the texts that a field can be, "range" the bounds
// of numbers, in pairs.

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
	TLSSecurityProfile        *tlsSecurityProfile           `json:"tlsSecurityProfile"`
}

type containerRuntimeConfigSpec struct {
	MachineConfigPoolSelector *metav1.LabelSelector `json:"machineConfigPoolSelector"`
	ContainerRuntimeConfig    *struct {
		PidsLimit                *int64             `json:"pidsLimit"`
		LogLevel                 string             `json:"logLevel" values:"fatal panic error warn info debug trace"`
		LogSizeMax               *resource.Quantity `json:"logSizeMax"`
		OverlaySize              *resource.Quantity `json:"overlaySize"`
		DefaultRuntime           string             `json:"defaultRuntime" values:"crun runc"`
		AdditionalLayerStores    any                `json:"additionalLayerStores"`
		AdditionalImageStores    any                `json:"additionalImageStores"`
		AdditionalArtifactStores any                `json:"additionalArtifactStores"`
	} `json:"containerRuntimeConfig"`
}

// tlsSecurityProfile is one of the sets of ciphers that OpenShift's components
// share.
type tlsSecurityProfile struct {
	Type         string `json:"type" values:"Old Intermediate Modern Custom"`
	Old          any    `json:"old"`
	Intermediate any    `json:"intermediate"`
	Modern       any    `json:"modern"`
	Custom       *struct {
		Ciphers       []string `json:"ciphers"`
		Curves        []string `json:"curves"`
		Groups        []string `json:"groups"`
		MinTLSVersion string   `json:"minTLSVersion" values:"VersionTLS10 VersionTLS11 VersionTLS12 VersionTLS13"`
	} `json:"custom"`
}

// The parts of a HyperConverged. In v1beta1 most stand at the top of its
// specification, in v1 they are groups of it.
type (
	hcoVirtualization struct {
		TuningPolicy         string               `json:"tuningPolicy" values:"annotation highBurst"`
		LiveMigrationConfig  *liveMigrationConfig `json:"liveMigrationConfig"`
		PermittedHostDevices *struct {
			PCIHostDevices  []hcoDevice `json:"pciHostDevices"`
			USBHostDevices  []hcoDevice `json:"usbHostDevices"`
			MediatedDevices []hcoDevice `json:"mediatedDevices"`
		} `json:"permittedHostDevices"`
		MediatedDevicesConfiguration *struct {
			hcoMediated
			Enabled                 *bool         `json:"enabled"`
			NodeMediatedDeviceTypes []hcoMediated `json:"nodeMediatedDeviceTypes"`
		} `json:"mediatedDevicesConfiguration"`
		WorkloadUpdateStrategy *struct {
			WorkloadUpdateMethods []kubevirt.WorkloadUpdateMethod `json:"workloadUpdateMethods"`
			BatchEvictionSize     *int                            `json:"batchEvictionSize"`
			BatchEvictionInterval *metav1.Duration                `json:"batchEvictionInterval"`
		} `json:"workloadUpdateStrategy"`
		EvictionStrategy      kubevirt.EvictionStrategy `json:"evictionStrategy"`
		VirtualMachineOptions *struct {
			DisableFreePageReporting *bool  `json:"disableFreePageReporting"`
			DisableSerialConsoleLog  *bool  `json:"disableSerialConsoleLog"`
			DefaultCPUModel          string `json:"defaultCPUModel"`
			DefaultRuntimeClass      string `json:"defaultRuntimeClass"`
		} `json:"virtualMachineOptions"`
		HigherWorkloadDensity *struct {
			MemoryOvercommitPercentage int `json:"memoryOvercommitPercentage" range:"10 2147483647"`
		} `json:"higherWorkloadDensity"`
		LiveUpdateConfiguration *kubevirt.LiveUpdateConfiguration `json:"liveUpdateConfiguration"`
		KSMConfiguration        *kubevirt.KSMConfiguration        `json:"ksmConfiguration"`
	}
	hcoVCPUs struct {
		VMICPUAllocationRatio              *int                  `json:"vmiCPUAllocationRatio" range:"1 2147483647"`
		AutoCPULimitNamespaceLabelSelector *metav1.LabelSelector `json:"autoCPULimitNamespaceLabelSelector"`
	}
	hcoStorage struct {
		VMStateStorageClass      string `json:"vmStateStorageClass"`
		ScratchSpaceStorageClass string `json:"scratchSpaceStorageClass"`
		StorageImport            *struct {
			InsecureRegistries []string `json:"insecureRegistries"`
		} `json:"storageImport"`
		FilesystemOverhead *cdi.FilesystemOverhead `json:"filesystemOverhead"`
	}
	hcoNetworking struct {
		KubeSecondaryDNSNameServerIP string                                     `json:"kubeSecondaryDNSNameServerIP"`
		NetworkBinding               map[string]kubevirt.InterfaceBindingPlugin `json:"networkBinding"`
	}
	hcoSources struct {
		CommonTemplatesNamespace    string `json:"commonTemplatesNamespace"`
		CommonBootImageNamespace    string `json:"commonBootImageNamespace"`
		EnableCommonBootImageImport *bool  `json:"enableCommonBootImageImport"`
		DataImportCronTemplates     []struct {
			metav1.ObjectMeta `json:"metadata"`
			Spec              *cdi.DataImportCronSpec `json:"spec"`
		} `json:"dataImportCronTemplates"`
		InstancetypeConfig *kubevirt.InstancetypeConfiguration `json:"instancetypeConfig"`
	}
	hcoSecurity struct {
		CertConfig *struct {
			CA     hcoRotation `json:"ca"`
			Server hcoRotation `json:"server"`
		} `json:"certConfig"`
		TLSSecurityProfile *tlsSecurityProfile `json:"tlsSecurityProfile"`
	}
	hcoDeployment struct {
		UninstallStrategy  string `json:"uninstallStrategy" values:"RemoveWorkloads BlockUninstallIfWorkloadsExist"`
		LogVerbosityConfig *struct {
			Kubevirt *kubevirt.LogVerbosity `json:"kubevirt"`
			CDI      *int32                 `json:"cdi"`
		} `json:"logVerbosityConfig"`
		ApplicationAwareConfig *struct {
			Enable                                    *bool                 `json:"enable"`
			VMICalcConfigName                         string                `json:"vmiCalcConfigName" values:"VmiPodUsage VirtualResources DedicatedVirtualResources IgnoreVmiCalculator"`
			NamespaceSelector                         *metav1.LabelSelector `json:"namespaceSelector"`
			AllowApplicationAwareClusterResourceQuota bool                  `json:"allowApplicationAwareClusterResourceQuota"`
		} `json:"applicationAwareConfig"`
		DeployVMConsoleProxy *bool `json:"deployVmConsoleProxy"`
	}
	hcoRotation struct {
		Duration    *metav1.Duration `json:"duration"`
		RenewBefore *metav1.Duration `json:"renewBefore"`
	}
	hcoDevice struct {
		PCIDeviceSelector        string   `json:"pciDeviceSelector"`
		MDEVNameSelector         string   `json:"mdevNameSelector"`
		Selectors                []hcoUSB `json:"selectors"`
		ResourceName             string   `json:"resourceName"`
		ExternalResourceProvider bool     `json:"externalResourceProvider"`
		Disabled                 bool     `json:"disabled"`
	}
	hcoUSB struct {
		Vendor  string `json:"vendor"`
		Product string `json:"product"`
	}
	hcoMediated struct {
		MediatedDeviceTypes  []string          `json:"mediatedDeviceTypes"`
		MediatedDevicesTypes []string          `json:"mediatedDevicesTypes"` // as older versions have it
		NodeSelector         map[string]string `json:"nodeSelector"`
	}
	hcoPlacement struct {
		NodeSelector map[string]string `json:"nodeSelector"`
		Affinity     *core.Affinity    `json:"affinity"`
		Tolerations  []core.Toleration `json:"tolerations"`
	}
)

// hyperConvergedSpec is that of v1beta1.
type hyperConvergedSpec struct {
	hcoVirtualization
	hcoStorage
	hcoNetworking
	hcoSources
	hcoSecurity
	hcoDeployment
	Infra struct {
		NodePlacement *hcoPlacement `json:"nodePlacement"`
	} `json:"infra"`
	Workloads struct {
		NodePlacement *hcoPlacement `json:"nodePlacement"`
	} `json:"workloads"`
	FeatureGates         hcoFeatureGates `json:"featureGates"`
	ResourceRequirements *struct {
		hcoVCPUs
		StorageWorkloads *core.ResourceRequirements `json:"storageWorkloads"`
	} `json:"resourceRequirements"`
	DefaultCPUModel     string `json:"defaultCPUModel"`
	DefaultRuntimeClass string `json:"defaultRuntimeClass"`
	ObsoleteCPUs        *struct {
		MinCPUModel string   `json:"minCPUModel"`
		CPUModels   []string `json:"cpuModels"`
	} `json:"obsoleteCPUs"`
	CommonInstancetypesDeployment *kubevirt.CommonInstancetypesDeployment `json:"CommonInstancetypesDeployment"`
	EnableApplicationAwareQuota   *bool                                   `json:"enableApplicationAwareQuota"`
	// These have no effect any more.
	LocalStorageClassName    string `json:"localStorageClassName"`
	VDDKInitImage            string `json:"vddkInitImage"`
	TektonPipelinesNamespace string `json:"tektonPipelinesNamespace"`
	TektonTasksNamespace     string `json:"tektonTasksNamespace"`
}

// hcoFeatureGates are those of v1beta1. Of the second part it ignores each.
type hcoFeatureGates struct {
	DownwardMetrics                *bool `json:"downwardMetrics"`
	DeployKubeSecondaryDNS         *bool `json:"deployKubeSecondaryDNS"`
	DisableMDevConfiguration       *bool `json:"disableMDevConfiguration"`
	PersistentReservation          *bool `json:"persistentReservation"`
	AlignCPUs                      *bool `json:"alignCPUs"`
	EnableMultiArchBootImageImport *bool `json:"enableMultiArchBootImageImport"`
	DecentralizedLiveMigration     *bool `json:"decentralizedLiveMigration"`
	DeclarativeHotplugVolumes      *bool `json:"declarativeHotplugVolumes"`
	VideoConfig                    *bool `json:"videoConfig"`
	ObjectGraph                    *bool `json:"objectGraph"`
	IncrementalBackup              *bool `json:"incrementalBackup"`
	ContainerPathVolumes           *bool `json:"containerPathVolumes"`
	Template                       *bool `json:"template"`

	WithHostPassthroughCPU           *bool `json:"withHostPassthroughCPU"`
	EnableCommonBootImageImport      *bool `json:"enableCommonBootImageImport"`
	DeployTektonTaskResources        *bool `json:"deployTektonTaskResources"`
	DeployVMConsoleProxy             *bool `json:"deployVmConsoleProxy"`
	DeployKubevirtIpamController     *bool `json:"deployKubevirtIpamController"`
	NonRoot                          *bool `json:"nonRoot"`
	EnableManagedTenantQuota         *bool `json:"enableManagedTenantQuota"`
	AutoResourceLimits               *bool `json:"autoResourceLimits"`
	EnableApplicationAwareQuota      *bool `json:"enableApplicationAwareQuota"`
	PrimaryUserDefinedNetworkBinding *bool `json:"primaryUserDefinedNetworkBinding"`
}

// hyperConvergedSpecV1 is that of v1.
type hyperConvergedSpecV1 struct {
	FeatureGates []struct {
		Name  string `json:"name"`
		State string `json:"state" values:"Enabled Disabled"`
	} `json:"featureGates"`
	Virtualization struct {
		hcoVirtualization
		hcoVCPUs
		ObsoleteCPUModels                  []string                                `json:"obsoleteCPUModels"`
		ChangedBlockTrackingLabelSelectors *kubevirt.ChangedBlockTrackingSelectors `json:"changedBlockTrackingLabelSelectors"`
		Hypervisors                        []kubevirt.HypervisorConfiguration      `json:"hypervisors"`
		RoleAggregationStrategy            string                                  `json:"roleAggregationStrategy" values:"AggregateToDefault Manual"`
	} `json:"virtualization"`
	Storage struct {
		hcoStorage
		WorkloadResourceRequirements       *core.ResourceRequirements `json:"workloadResourceRequirements"`
		PersistentReservationConfiguration *struct {
			Enabled *bool `json:"enabled"`
		} `json:"persistentReservationConfiguration"`
	} `json:"storage"`
	Networking struct {
		hcoNetworking
		KubeMacPoolConfiguration any `json:"kubeMacPoolConfiguration"`
	} `json:"networking"`
	WorkloadSources struct {
		hcoSources
		CommonInstancetypesDeployment *kubevirt.CommonInstancetypesDeployment `json:"commonInstancetypesDeployment"`
	} `json:"workloadSources"`
	Security   hcoSecurity `json:"security"`
	Deployment struct {
		hcoDeployment
		NodePlacements *struct {
			Infra    *hcoPlacement `json:"infra"`
			Workload *hcoPlacement `json:"workload"`
		} `json:"nodePlacements"`
		DeployNetworkResourcesInjector *bool `json:"deployNetworkResourcesInjector"`
	} `json:"deployment"`
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

// cephBlockPoolSpec is a pool of Rook's.
type cephBlockPoolSpec struct {
	Name               string            `json:"name" values:".rgw.root .nfs .mgr device_health_metrics"`
	FailureDomain      string            `json:"failureDomain"`
	CrushRoot          string            `json:"crushRoot"`
	DeviceClass        string            `json:"deviceClass"`
	EnableCrushUpdates *bool             `json:"enableCrushUpdates"`
	CompressionMode    string            `json:"compressionMode" values:"none passive aggressive force"`
	Parameters         map[string]string `json:"parameters"`
	EnableRBDStats     bool              `json:"enableRBDStats"`
	Application        string            `json:"application"`
	Mirroring          *struct {
		Enabled           bool   `json:"enabled"`
		Mode              string `json:"mode" values:"pool image init-only"`
		SnapshotSchedules []struct {
			Path      string `json:"path"`
			Interval  string `json:"interval"`
			StartTime string `json:"startTime"`
		} `json:"snapshotSchedules"`
		Peers *struct {
			SecretNames []string `json:"secretNames"`
		} `json:"peers"`
	} `json:"mirroring"`
	StatusCheck any `json:"statusCheck"` // which the definition leaves open
	Quotas      *struct {
		MaxBytes   *uint64 `json:"maxBytes"`
		MaxSize    *string `json:"maxSize"`
		MaxObjects *uint64 `json:"maxObjects"`
	} `json:"quotas"`
	Replicated *struct {
		Size                     uint    `json:"size"`
		TargetSizeRatio          float64 `json:"targetSizeRatio"`
		RequireSafeReplicaSize   bool    `json:"requireSafeReplicaSize"`
		ReplicasPerFailureDomain uint    `json:"replicasPerFailureDomain" range:"1 2147483647"`
		SubFailureDomain         string  `json:"subFailureDomain"`
		HybridStorage            *struct {
			PrimaryDeviceClass   string `json:"primaryDeviceClass"`
			SecondaryDeviceClass string `json:"secondaryDeviceClass"`
		} `json:"hybridStorage"`
	} `json:"replicated"`
	ErasureCoded *struct {
		CodingChunks uint   `json:"codingChunks"`
		DataChunks   uint   `json:"dataChunks"`
		Algorithm    string `json:"algorithm"`
	} `json:"erasureCoded"`
}

type ingressControllerSpec struct {
	Domain                     string                     `json:"domain"`
	Replicas                   *int32                     `json:"replicas"`
	HTTPErrorCodePages         *core.LocalObjectReference `json:"httpErrorCodePages"`
	DefaultCertificate         *core.LocalObjectReference `json:"defaultCertificate"`
	NamespaceSelector          *metav1.LabelSelector      `json:"namespaceSelector"`
	RouteSelector              *metav1.LabelSelector      `json:"routeSelector"`
	NodePlacement              *ingressPlacement          `json:"nodePlacement"`
	EndpointPublishingStrategy *ingressPublishing         `json:"endpointPublishingStrategy"`
	TLSSecurityProfile         *tlsSecurityProfile        `json:"tlsSecurityProfile"`
	ClientTLS                  *struct {
		ClientCertificatePolicy string                    `json:"clientCertificatePolicy" values:"Required Optional"`
		ClientCA                core.LocalObjectReference `json:"clientCA"`
		AllowedSubjectPatterns  []string                  `json:"allowedSubjectPatterns"`
	} `json:"clientTLS"`
	RouteAdmission *struct {
		NamespaceOwnership string `json:"namespaceOwnership" values:"InterNamespaceAllowed Strict"`
		WildcardPolicy     string `json:"wildcardPolicy" values:"WildcardsAllowed WildcardsDisallowed"`
	} `json:"routeAdmission"`
	Logging *struct {
		Access *ingressLog `json:"access"`
	} `json:"logging"`
	HTTPHeaders             *ingressHeaders `json:"httpHeaders"`
	HTTPEmptyRequestsPolicy string          `json:"httpEmptyRequestsPolicy" values:"Respond Ignore"`
	HTTPCompression         *struct {
		MIMETypes []string `json:"mimeTypes"`
	} `json:"httpCompression"`
	IdleConnectionTerminationPolicy string `json:"idleConnectionTerminationPolicy" values:"Immediate Deferred"`
	ClosedClientConnectionPolicy    string `json:"closedClientConnectionPolicy" values:"Abort Continue"`
	HAProxyVersion                  string `json:"haproxyVersion"`
	TuningOptions                   *struct {
		HeaderBufferBytes           int32            `json:"headerBufferBytes" range:"16384 2147483647"`
		HeaderBufferMaxRewriteBytes int32            `json:"headerBufferMaxRewriteBytes" range:"4096 2147483647"`
		ThreadCount                 int32            `json:"threadCount" range:"1 64"`
		ClientTimeout               *metav1.Duration `json:"clientTimeout"`
		ClientFinTimeout            *metav1.Duration `json:"clientFinTimeout"`
		ServerTimeout               *metav1.Duration `json:"serverTimeout"`
		ServerFinTimeout            *metav1.Duration `json:"serverFinTimeout"`
		TunnelTimeout               *metav1.Duration `json:"tunnelTimeout"`
		ConnectTimeout              *metav1.Duration `json:"connectTimeout"`
		HTTPKeepAliveTimeout        *metav1.Duration `json:"httpKeepAliveTimeout"`
		TLSInspectDelay             *metav1.Duration `json:"tlsInspectDelay"`
		HealthCheckInterval         *metav1.Duration `json:"healthCheckInterval"`
		MaxConnections              int32            `json:"maxConnections" range:"-1 0 2000 2000000"`
		ReloadInterval              metav1.Duration  `json:"reloadInterval"`
		ConfigurationManagement     string           `json:"configurationManagement" values:"Dynamic ForkAndReload"`
	} `json:"tuningOptions"`
	UnsupportedConfigOverrides any `json:"unsupportedConfigOverrides"`
}

// The parts of an IngressController.
type (
	ingressPlacement struct {
		NodeSelector *metav1.LabelSelector `json:"nodeSelector"`
		Tolerations  []core.Toleration     `json:"tolerations"`
	}
	ingressProtocol struct {
		Protocol string `json:"protocol" values:"TCP PROXY"`
	}
	ingressPublishing struct {
		Type         string `json:"type" values:"LoadBalancerService HostNetwork Private NodePortService"`
		LoadBalancer *struct {
			Scope               string   `json:"scope" values:"Internal External"`
			AllowedSourceRanges []string `json:"allowedSourceRanges"`
			DNSManagementPolicy string   `json:"dnsManagementPolicy" values:"Managed Unmanaged"`
			ProviderParameters  *struct {
				Type string `json:"type" values:"AWS Azure BareMetal GCP IBM Nutanix OpenStack VSphere"`
				AWS  *struct {
					Type                string `json:"type" values:"Classic NLB"`
					ClassicLoadBalancer *struct {
						ConnectionIdleTimeout metav1.Duration `json:"connectionIdleTimeout"`
						Subnets               any             `json:"subnets"`
					} `json:"classicLoadBalancer"`
					NetworkLoadBalancer any `json:"networkLoadBalancer"` // which grows with each release
				} `json:"aws"`
				GCP *struct {
					ClientAccess string `json:"clientAccess" values:"Global Local"`
				} `json:"gcp"`
				IBM       *ingressProtocol `json:"ibm"`
				OpenStack *struct {
					FloatingIP string `json:"floatingIP"`
				} `json:"openstack"`
			} `json:"providerParameters"`
		} `json:"loadBalancer"`
		HostNetwork *struct {
			ingressProtocol
			HTTPPort  int32 `json:"httpPort" range:"0 65535"`
			HTTPSPort int32 `json:"httpsPort" range:"0 65535"`
			StatsPort int32 `json:"statsPort" range:"0 65535"`
		} `json:"hostNetwork"`
		Private  *ingressProtocol `json:"private"`
		NodePort *ingressProtocol `json:"nodePort"`
	}
	ingressLog struct {
		Destination *struct {
			Type   string `json:"type" values:"Container Syslog"`
			Syslog *struct {
				Address   string `json:"address"`
				Port      uint32 `json:"port" range:"1 65535"`
				Facility  string `json:"facility" values:"kern user mail daemon auth syslog lpr news uucp cron auth2 ftp ntp audit alert cron2 local0 local1 local2 local3 local4 local5 local6 local7"`
				MaxLength uint32 `json:"maxLength" range:"0 0 480 4096"`
			} `json:"syslog"`
			Container *struct {
				MaxLength int32 `json:"maxLength" range:"0 0 480 8192"`
			} `json:"container"`
		} `json:"destination"`
		HTTPLogFormat      string `json:"httpLogFormat"`
		HTTPSLogFormat     string `json:"httpsLogFormat"`
		TCPLogFormat       string `json:"tcpLogFormat"`
		LogEmptyRequests   string `json:"logEmptyRequests" values:"Log Ignore"`
		HTTPCaptureHeaders *struct {
			Request  []ingressCapture `json:"request"`
			Response []ingressCapture `json:"response"`
		} `json:"httpCaptureHeaders"`
		HTTPCaptureCookies []struct {
			ingressCapture
			MatchType  string `json:"matchType" values:"Exact Prefix"`
			NamePrefix string `json:"namePrefix"`
		} `json:"httpCaptureCookies"`
	}
	ingressCapture struct {
		Name      string `json:"name"`
		MaxLength int    `json:"maxLength" range:"1 2147483647"`
	}
	ingressHeaders struct {
		ForwardedHeaderPolicy string `json:"forwardedHeaderPolicy" values:"Append Replace IfNone Never"`
		UniqueID              *struct {
			Name   string `json:"name"`
			Format string `json:"format"`
		} `json:"uniqueId"`
		HeaderNameCaseAdjustments []string `json:"headerNameCaseAdjustments"`
		Actions                   *struct {
			Request  []ingressHeaderAction `json:"request"`
			Response []ingressHeaderAction `json:"response"`
		} `json:"actions"`
	}
	ingressHeaderAction struct {
		Name   string `json:"name"`
		Action struct {
			Type string `json:"type" values:"Set Delete"`
			Set  *struct {
				Value string `json:"value"`
			} `json:"set"`
		} `json:"action"`
	}
)

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
