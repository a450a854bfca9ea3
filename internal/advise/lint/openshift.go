package lint

import (
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
	_                   open
	LiveMigrationConfig *liveMigrationConfig `json:"liveMigrationConfig"`
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
	_             open
	Replicas      *int32         `json:"replicas"`
	TuningOptions *tuningOptions `json:"tuningOptions"`
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

// ignition3 is Ignition's configuration of version 3; since is the version
// that brought a key.
type ignition3 struct {
	Ignition struct {
		Version string `json:"version"`
		Config  struct {
			Merge   []ignitionResource `json:"merge"`
			Replace *ignitionResource  `json:"replace"`
		} `json:"config"`
		Timeouts struct {
			HTTPResponseHeaders *int `json:"httpResponseHeaders"`
			HTTPTotal           *int `json:"httpTotal"`
		} `json:"timeouts"`
		Security struct {
			TLS struct {
				CertificateAuthorities []ignitionResource `json:"certificateAuthorities"`
			} `json:"tls"`
		} `json:"security"`
		Proxy struct {
			HTTPProxy  *string  `json:"httpProxy"`
			HTTPSProxy *string  `json:"httpsProxy"`
			NoProxy    []string `json:"noProxy"`
		} `json:"proxy" since:"3.1.0"`
	} `json:"ignition"`
	KernelArguments struct {
		ShouldExist    []string `json:"shouldExist"`
		ShouldNotExist []string `json:"shouldNotExist"`
	} `json:"kernelArguments" since:"3.3.0"`
	Passwd  ignitionPasswd3 `json:"passwd"`
	Storage struct {
		Disks       []ignitionDisk3       `json:"disks"`
		RAID        []ignitionRAID        `json:"raid"`
		LUKS        []ignitionLUKS        `json:"luks" since:"3.2.0"`
		Filesystems []ignitionFilesystem3 `json:"filesystems"`
		Files       []ignitionFile3       `json:"files"`
		Directories []ignitionNode3       `json:"directories"`
		Links       []ignitionLink3       `json:"links"`
	} `json:"storage"`
	Systemd struct {
		Units []struct {
			Name     string  `json:"name"`
			Enabled  *bool   `json:"enabled"`
			Mask     *bool   `json:"mask"`
			Contents *string `json:"contents"`
			Dropins  []struct {
				Name     string  `json:"name"`
				Contents *string `json:"contents"`
			} `json:"dropins"`
		} `json:"units"`
	} `json:"systemd"`
}

type ignitionResource struct {
	Source      *string `json:"source"`
	Compression *string `json:"compression"`
	HTTPHeaders []struct {
		Name  string  `json:"name"`
		Value *string `json:"value"`
	} `json:"httpHeaders" since:"3.1.0"`
	Verification struct {
		Hash *string `json:"hash"`
	} `json:"verification"`
}

type ignitionOwner struct {
	ID   *int    `json:"id"`
	Name *string `json:"name"`
}

type ignitionNode3 struct {
	Path      string        `json:"path"`
	Overwrite *bool         `json:"overwrite"`
	Mode      *int          `json:"mode"`
	User      ignitionOwner `json:"user"`
	Group     ignitionOwner `json:"group"`
}

type ignitionFile3 struct {
	ignitionNode3 `json:",inline"`
	Contents      ignitionResource   `json:"contents"`
	Append        []ignitionResource `json:"append"`
}

type ignitionLink3 struct {
	Path      string        `json:"path"`
	Overwrite *bool         `json:"overwrite"`
	User      ignitionOwner `json:"user"`
	Group     ignitionOwner `json:"group"`
	Target    *string       `json:"target"`
	Hard      *bool         `json:"hard"`
}

type ignitionDisk3 struct {
	Device     string `json:"device"`
	WipeTable  *bool  `json:"wipeTable"`
	Partitions []struct {
		Label              *string `json:"label"`
		Number             int     `json:"number"`
		SizeMiB            *int    `json:"sizeMiB"`
		StartMiB           *int    `json:"startMiB"`
		TypeGUID           *string `json:"typeGuid"`
		GUID               *string `json:"guid"`
		WipePartitionEntry *bool   `json:"wipePartitionEntry"`
		ShouldExist        *bool   `json:"shouldExist"`
		Resize             *bool   `json:"resize" since:"3.2.0"`
	} `json:"partitions"`
}

type ignitionRAID struct {
	Name    string   `json:"name"`
	Level   *string  `json:"level"`
	Devices []string `json:"devices"`
	Spares  *int     `json:"spares"`
	Options []string `json:"options"`
}

type ignitionLUKS struct {
	Name        string           `json:"name"`
	Device      *string          `json:"device"`
	KeyFile     ignitionResource `json:"keyFile"`
	Label       *string          `json:"label"`
	UUID        *string          `json:"uuid"`
	Options     []string         `json:"options"`
	WipeVolume  *bool            `json:"wipeVolume"`
	Clevis      any              `json:"clevis"`
	Discard     *bool            `json:"discard" since:"3.4.0"`
	OpenOptions []string         `json:"openOptions" since:"3.4.0"`
	CEX         any              `json:"cex" since:"3.5.0"`
}

type ignitionFilesystem3 struct {
	Path           *string  `json:"path"`
	Device         string   `json:"device"`
	Format         *string  `json:"format"`
	WipeFilesystem *bool    `json:"wipeFilesystem"`
	Label          *string  `json:"label"`
	UUID           *string  `json:"uuid"`
	Options        []string `json:"options"`
	MountOptions   []string `json:"mountOptions" since:"3.1.0"`
}

type ignitionPasswd3 struct {
	Users []struct {
		Name              string   `json:"name"`
		PasswordHash      *string  `json:"passwordHash"`
		SSHAuthorizedKeys []string `json:"sshAuthorizedKeys"`
		UID               *int     `json:"uid"`
		Gecos             *string  `json:"gecos"`
		HomeDir           *string  `json:"homeDir"`
		NoCreateHome      *bool    `json:"noCreateHome"`
		PrimaryGroup      *string  `json:"primaryGroup"`
		Groups            []string `json:"groups"`
		NoUserGroup       *bool    `json:"noUserGroup"`
		NoLogInit         *bool    `json:"noLogInit"`
		Shell             *string  `json:"shell"`
		System            *bool    `json:"system"`
		ShouldExist       *bool    `json:"shouldExist" since:"3.2.0"`
	} `json:"users"`
	Groups []struct {
		Name         string  `json:"name"`
		GID          *int    `json:"gid"`
		PasswordHash *string `json:"passwordHash"`
		System       *bool   `json:"system"`
		ShouldExist  *bool   `json:"shouldExist" since:"3.2.0"`
	} `json:"groups"`
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
