// Package kubeburner answers one question: what does a configuration in
// kube-burner's format ask for? It reads the format (version 2, mid 2026) into
// types, compiles and renders the object templates, and lists the objects that
// a job creates, in order. It talks to no cluster.
//
// Parse, Default and Validate are separate; Load does all three. What the
// engine does not yet act on is named by Unsupported, so that no setting is
// ignored in silence.
package kubeburner

import (
	"time"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Config is a whole configuration file. The zero value asks for nothing.
type Config struct {
	Global           Global            `yaml:"global"`
	Jobs             []Job             `yaml:"jobs"`
	MetricsEndpoints []MetricsEndpoint `yaml:"metricsEndpoints"`

	// UUID identifies the run; it comes from the caller, not from the file.
	UUID string `yaml:"-"`

	// positions says what the file says, and where; nil for a Config made in
	// code, in which every zero value counts as not set.
	positions *strictyaml.Positions
}

// Global holds what applies to all jobs.
type Global struct {
	Measurements      []Measurement    `yaml:"measurements"`
	RequestTimeout    time.Duration    `yaml:"requestTimeout"`    // default 60 s
	GC                bool             `yaml:"gc"`                // remove what was created, at the end
	GCMetrics         bool             `yaml:"gcMetrics"`         // collect metrics during removal
	WaitWhenFinished  bool             `yaml:"waitWhenFinished"`  // wait once, after all jobs
	ClusterHealth     bool             `yaml:"clusterHealth"`     // check the nodes first
	Timeout           time.Duration    `yaml:"timeout"`           // of the whole run, default 4 h
	FunctionTemplates []string         `yaml:"functionTemplates"` // files with {{define}} blocks for object templates
	DeletionStrategy  DeletionStrategy `yaml:"deletionStrategy"`  // default "default"
}

// DeletionStrategy is how created objects are removed.
type DeletionStrategy string

// The deletion strategies.
const (
	DeleteNamespaces DeletionStrategy = "default" // whole namespaces
	DeleteByResource DeletionStrategy = "gvr"     // objects, resource by resource
)

// JobType is what a job does to objects.
type JobType string

// The job types.
const (
	Create   JobType = "create"
	Delete   JobType = "delete"
	Read     JobType = "read"
	Patch    JobType = "patch"
	KubeVirt JobType = "kubevirt"
)

// ExecutionMode is whether a job's objects are worked on at once.
type ExecutionMode string

// The execution modes.
const (
	Parallel   ExecutionMode = "parallel"
	Sequential ExecutionMode = "sequential"
)

// MetricsClosing is when the collection of a job's metrics ends.
type MetricsClosing string

// The ends of metrics collection.
const (
	AfterJob          MetricsClosing = "afterJob"
	AfterJobPause     MetricsClosing = "afterJobPause"
	AfterMeasurements MetricsClosing = "afterMeasurements"
)

// Job is one entry of jobs. After Default, unset fields hold their defaults.
type Job struct {
	Name                   string            `yaml:"name"`
	JobType                JobType           `yaml:"jobType"`       // default create
	JobIterations          int               `yaml:"jobIterations"` // default 1
	QPS                    float64           `yaml:"qps"`           // requests per second, default 5
	Burst                  int               `yaml:"burst"`         // default 10
	Namespace              string            `yaml:"namespace"`     // the name, or its first part
	NamespacedIterations   bool              `yaml:"namespacedIterations"`
	IterationsPerNamespace int               `yaml:"iterationsPerNamespace"` // default 1
	PreCreateNamespaces    bool              `yaml:"preCreateNamespaces"`
	NamespaceLabels        map[string]string `yaml:"namespaceLabels"`
	NamespaceAnnotations   map[string]string `yaml:"namespaceAnnotations"`
	ExecutionMode          ExecutionMode     `yaml:"executionMode"` // default parallel

	PodWait           bool          `yaml:"podWait"`          // wait after each iteration
	WaitWhenFinished  bool          `yaml:"waitWhenFinished"` // wait after the last one, default true
	MaxWaitTimeout    time.Duration `yaml:"maxWaitTimeout"`   // default: the global timeout
	WaitForDeletion   bool          `yaml:"waitForDeletion"`  // default true
	JobIterationDelay time.Duration `yaml:"jobIterationDelay"`
	JobPause          time.Duration `yaml:"jobPause"` // after the job
	ObjectDelay       time.Duration `yaml:"objectDelay"`
	ObjectWait        bool          `yaml:"objectWait"`

	MetricsClosing             MetricsClosing    `yaml:"metricsClosing"` // default afterJobPause
	MetricsAggregate           bool              `yaml:"metricsAggregate"`
	Cleanup                    bool              `yaml:"cleanup"` // remove leftovers of an earlier run first, default true
	GC                         bool              `yaml:"gc"`
	VerifyObjects              bool              `yaml:"verifyObjects"` // default true
	ErrorOnVerify              bool              `yaml:"errorOnVerify"` // default true
	SkipIndexing               bool              `yaml:"skipIndexing"`
	PreLoadImages              bool              `yaml:"preLoadImages"` // default true
	PreLoadPeriod              time.Duration     `yaml:"preLoadPeriod"` // default 10 min
	PreLoadNodeLabels          map[string]string `yaml:"preLoadNodeLabels"`
	DefaultMissingKeysWithZero bool              `yaml:"defaultMissingKeysWithZero"`

	Measurements    []Measurement    `yaml:"measurements"` // laid over the global ones
	Objects         []Object         `yaml:"objects"`
	Watchers        []Watcher        `yaml:"watchers"`
	Hooks           []Hook           `yaml:"hooks"`
	ChurnConfig     ChurnConfig      `yaml:"churnConfig"`
	IncrementalLoad *IncrementalLoad `yaml:"incrementalLoad"`
}

// Object is one entry of a job's objects: what is created for each iteration
// and replica, or which objects a job of another type works on.
type Object struct {
	ObjectTemplate         string         `yaml:"objectTemplate"` // path or URL; several YAML documents allowed
	Replicas               int            `yaml:"replicas"`       // for each iteration, default 1; 0 creates none
	InputVars              map[string]any `yaml:"inputVars"`
	Wait                   bool           `yaml:"wait"` // default true
	WaitOptions            WaitOptions    `yaml:"waitOptions"`
	RunOnce                bool           `yaml:"runOnce"`                // in the first iteration only
	RepeatEveryNIterations int            `yaml:"repeatEveryNIterations"` // default 1
	Churn                  bool           `yaml:"churn"`                  // default true
	Group                  Group          `yaml:"group"`

	Kind          string            `yaml:"kind"`
	APIVersion    string            `yaml:"apiVersion"` // default v1
	LabelSelector map[string]string `yaml:"labelSelector"`
	PatchType     string            `yaml:"patchType"`
	KubeVirtOp    string            `yaml:"kubeVirtOp"`
}

// WaitOptions say what "ready" means for an object. The zero value is what its
// kind means by it.
type WaitOptions struct {
	APIVersion        string            `yaml:"apiVersion"`
	Kind              string            `yaml:"kind"` // of the objects to wait for, if not the object itself
	LabelSelector     map[string]string `yaml:"labelSelector"`
	CustomStatusPaths []StatusPath      `yaml:"customStatusPaths"`
}

// StatusPath is a jq expression over an object's status, and the text that it
// must give.
type StatusPath struct {
	Key   string `yaml:"key"`
	Value string `yaml:"value"`
}

// Group puts objects together for removal.
type Group struct {
	ID            int           `yaml:"id"`
	GC            bool          `yaml:"gc"`
	PauseBeforeGC time.Duration `yaml:"pauseBeforeGC"`
	PauseAfterGC  time.Duration `yaml:"pauseAfterGC"`
}

// Watcher is a watch held open on the API server as load.
type Watcher struct {
	Kind          string            `yaml:"kind"`
	APIVersion    string            `yaml:"apiVersion"`
	LabelSelector map[string]string `yaml:"labelSelector"`
	Replicas      int               `yaml:"replicas"` // default 1
}

// Hook is a command run at some moment of a job.
type Hook struct {
	Cmd        []string `yaml:"cmd"`
	When       HookWhen `yaml:"when"`
	Background bool     `yaml:"background"`
}

// HookWhen is the moment of a hook.
type HookWhen string

// The moments of hooks.
const (
	BeforeJobExecution HookWhen = "beforeJobExecution"
	AfterJobExecution  HookWhen = "afterJobExecution"
	OnEachIteration    HookWhen = "onEachIteration"
	BeforeChurn        HookWhen = "beforeChurn"
	AfterChurn         HookWhen = "afterChurn"
	BeforeCleanup      HookWhen = "beforeCleanup"
	AfterCleanup       HookWhen = "afterCleanup"
	BeforeGC           HookWhen = "beforeGC"
	AfterGC            HookWhen = "afterGC"
)

// ChurnConfig asks for objects to be deleted and created again.
type ChurnConfig struct {
	Cycles      int           `yaml:"cycles"`
	Percent     int           `yaml:"percent"` // of the iterations, each cycle
	Duration    time.Duration `yaml:"duration"`
	Delay       time.Duration `yaml:"delay"` // between cycles
	DeleteDelay time.Duration `yaml:"deleteDelay"`
	Mode        ChurnMode     `yaml:"mode"` // default namespaces
}

// On reports whether churn is asked for: by a number of cycles, or by a
// duration.
func (c ChurnConfig) On() bool { return c.Cycles > 0 || c.Duration > 0 }

// ChurnMode is what churn deletes.
type ChurnMode string

// The churn modes.
const (
	ChurnNamespaces ChurnMode = "namespaces"
	ChurnObjects    ChurnMode = "objects"
)

// IncrementalLoad raises a job's iterations in steps.
type IncrementalLoad struct {
	StartIterations   int           `yaml:"startIterations"`
	TotalIterations   int           `yaml:"totalIterations"`
	StepDelay         time.Duration `yaml:"stepDelay"`
	HealthCheckScript string        `yaml:"healthCheckScript"`
	Pattern           LoadPattern   `yaml:"pattern"`
}

// LoadPattern is how far one step of an IncrementalLoad goes.
type LoadPattern struct {
	Type        string             `yaml:"type"` // linear or exponential
	Linear      LinearPattern      `yaml:"linear"`
	Exponential ExponentialPattern `yaml:"exponential"`
}

// LinearPattern adds the same number of iterations each step.
type LinearPattern struct {
	MinSteps int `yaml:"minSteps"`
	StepSize int `yaml:"stepSize"` // default 1
}

// ExponentialPattern multiplies the iterations each step.
type ExponentialPattern struct {
	Base        float64 `yaml:"base"`        // default 2
	MaxIncrease int     `yaml:"maxIncrease"` // 0 is no bound
	WarmupSteps int     `yaml:"warmupSteps"`
}

// MetricsEndpoint is a Prometheus to query and a place for the documents.
type MetricsEndpoint struct {
	Endpoint      string        `yaml:"endpoint"`
	Username      string        `yaml:"username"`
	Password      string        `yaml:"password"`
	Token         string        `yaml:"token"`
	Step          time.Duration `yaml:"step"`          // default 30 s
	SkipTLSVerify bool          `yaml:"skipTLSVerify"` // default true
	Metrics       []string      `yaml:"metrics"`       // metrics profiles
	Alerts        []string      `yaml:"alerts"`        // alert profiles
	Alias         string        `yaml:"alias"`         // by which measurements name this indexer
	Indexer       Indexer       `yaml:"indexer"`
}

// Indexer is where documents go. An empty Type is none.
type Indexer struct {
	Type               IndexerType `yaml:"type"`
	ESServers          []string    `yaml:"esServers"`
	DefaultIndex       string      `yaml:"defaultIndex"`
	InsecureSkipVerify bool        `yaml:"insecureSkipVerify"`
	MetricsDirectory   string      `yaml:"metricsDirectory"` // default collected-metrics-UUID
	CreateTarball      bool        `yaml:"createTarball"`
	TarballName        string      `yaml:"tarballName"` // default kube-burner-metrics.tgz
}

// IndexerType is the kind of an indexer.
type IndexerType string

// The indexer types.
const (
	ElasticIndexer    IndexerType = "elastic"
	OpenSearchIndexer IndexerType = "opensearch"
	LocalIndexer      IndexerType = "local"
	TSDBIndexer       IndexerType = "tsdb"
)

// Measurement is something to measure while jobs run.
type Measurement struct {
	Name              string         `yaml:"name"`
	Thresholds        []Threshold    `yaml:"thresholds"`
	SvcTimeout        time.Duration  `yaml:"svcTimeout"` // default 5 s
	QuantilesIndexer  string         `yaml:"quantilesIndexer"`
	TimeseriesIndexer string         `yaml:"timeseriesIndexer"`
	PProfTargets      []PProfTarget  `yaml:"pprofTargets"`
	PProfInterval     time.Duration  `yaml:"pprofInterval"`
	PProfDirectory    string         `yaml:"pprofDirectory"` // default pprof
	NodeAffinity      map[string]any `yaml:"nodeAffinity"`
	// Config holds what is particular to one measurement, such as
	// netpolLatency's proxy.
	Config map[string]any `yaml:"config"`
}

// Threshold is a bound on a latency.
type Threshold struct {
	ConditionType string        `yaml:"conditionType"`
	Metric        string        `yaml:"metric"` // P99, P95, P50, Avg or Max
	Threshold     time.Duration `yaml:"threshold"`
}

// PProfTarget is a process to take profiles of.
type PProfTarget struct {
	Name          string            `yaml:"name"`
	Namespace     string            `yaml:"namespace"`
	LabelSelector map[string]string `yaml:"labelSelector"`
	BearerToken   string            `yaml:"bearerToken"`
	URL           string            `yaml:"url"`
	CertFile      string            `yaml:"certFile"`
	KeyFile       string            `yaml:"keyFile"`
	Cert          string            `yaml:"cert"`
	Key           string            `yaml:"key"`
}
