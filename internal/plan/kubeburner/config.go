// Package kubeburner reads configurations in kube-burner's format (version 2, mid 2026): it parses the format
// into types, compiles and renders the object templates, and lists the objects that a job creates, in order.
// It contacts no cluster.
//
// Parse, Default and Validate are separate; Load does all three. Served names the settings that the engine
// does not act on, so that none is ignored silently.
package kubeburner

import (
	"reflect"
	"time"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Version is kube-burner's version of the format.
const Version = "2.7"

// Config holds a configuration file, with defaults and bounds in tags. The zero value asks for nothing.
type Config struct {
	Global           Global            `yaml:"global"`
	Jobs             []Job             `yaml:"jobs"`
	MetricsEndpoints []MetricsEndpoint `yaml:"metricsEndpoints"`

	UUID string `yaml:"-"` // of the run, given by the caller

	env map[string]string // for object templates

	// positions says what the file states; nil for a Config made in code, where zero is not set.
	positions *strictyaml.Positions
}

// Refuse returns an error about the value at a path, with its line.
func (c *Config) Refuse(path, hint, format string, args ...any) error {
	v := strictyaml.Validation{At: c.positions}
	v.Add(path, hint, format, args...)
	return strictyaml.Join(v.Problems)
}

// Global holds the settings for all jobs.
type Global struct {
	Measurements      []Measurement `yaml:"measurements"`
	RequestTimeout    time.Duration `yaml:"requestTimeout" default:"60s" range:">0"`
	GC                bool          `yaml:"gc"`                              // remove what was created, at the end
	GCMetrics         bool          `yaml:"gcMetrics"`                       // collect metrics during removal
	WaitWhenFinished  bool          `yaml:"waitWhenFinished"`                // wait once, after all jobs
	ClusterHealth     bool          `yaml:"clusterHealth"`                   // check the nodes first
	Timeout           time.Duration `yaml:"timeout" default:"4h" range:">0"` // of the whole run
	FunctionTemplates []string      `yaml:"functionTemplates"`               // files with {{define}} blocks for object templates
	DeletionStrategy  string        `yaml:"deletionStrategy" default:"default" words:"default, gvr"`
}

const deleteByResource = "gvr" // removes objects resource by resource, not by whole namespaces

// JobType says what a job does to objects.
type JobType string

// The job types.
const (
	Create   JobType = "create"
	Delete   JobType = "delete"
	Read     JobType = "read"
	Patch    JobType = "patch"
	KubeVirt JobType = "kubevirt"
)

// Sequential is the mode that works on a job's objects one after the other.
const Sequential = "sequential"

// Job is an entry of jobs. After Default, unset fields hold their defaults.
type Job struct {
	Name                   string            `yaml:"name"`
	JobType                JobType           `yaml:"jobType" default:"create" words:"create, delete, read, patch, kubevirt"`
	JobIterations          int               `yaml:"jobIterations" default:"1" range:"1.."`
	QPS                    float64           `yaml:"qps" default:"5" range:">0"` // requests per second
	Burst                  int               `yaml:"burst" default:"10" range:"1.."`
	Namespace              string            `yaml:"namespace"` // the name, or its first part
	NamespacedIterations   bool              `yaml:"namespacedIterations" default:"true"`
	IterationsPerNamespace int               `yaml:"iterationsPerNamespace" default:"1" range:"1.."`
	PreCreateNamespaces    bool              `yaml:"preCreateNamespaces"`
	NamespaceLabels        map[string]string `yaml:"namespaceLabels"`
	NamespaceAnnotations   map[string]string `yaml:"namespaceAnnotations"`
	ExecutionMode          string            `yaml:"executionMode" default:"parallel" words:"parallel, sequential"`

	PodWait           bool          `yaml:"podWait"`                             // wait after each iteration
	WaitWhenFinished  bool          `yaml:"waitWhenFinished" default:"true"`     // wait after the last one
	MaxWaitTimeout    time.Duration `yaml:"maxWaitTimeout" range:">0" needed:""` // default: the global timeout
	WaitForDeletion   bool          `yaml:"waitForDeletion" default:"true"`
	JobIterationDelay time.Duration `yaml:"jobIterationDelay" range:"0s.."`
	JobPause          time.Duration `yaml:"jobPause" range:"0s.."` // after the job
	ObjectDelay       time.Duration `yaml:"objectDelay" range:"0s.."`
	ObjectWait        bool          `yaml:"objectWait"`

	MetricsClosing             string            `yaml:"metricsClosing" default:"afterJobPause" words:"afterJob, afterJobPause, afterMeasurements"`
	MetricsAggregate           bool              `yaml:"metricsAggregate"`
	Cleanup                    bool              `yaml:"cleanup" default:"true"` // remove leftovers of an earlier run first
	GC                         bool              `yaml:"gc"`
	VerifyObjects              bool              `yaml:"verifyObjects" default:"true"`
	ErrorOnVerify              bool              `yaml:"errorOnVerify" default:"true"`
	SkipIndexing               bool              `yaml:"skipIndexing"`
	PreLoadImages              bool              `yaml:"preLoadImages" default:"true"`
	PreLoadPeriod              time.Duration     `yaml:"preLoadPeriod" default:"10m" range:"0s.."`
	PreLoadNodeLabels          map[string]string `yaml:"preLoadNodeLabels"`
	DefaultMissingKeysWithZero bool              `yaml:"defaultMissingKeysWithZero"`

	Measurements    []Measurement    `yaml:"measurements"` // laid over the global ones
	Objects         []Object         `yaml:"objects"`
	Watchers        []Watcher        `yaml:"watchers"`
	Hooks           []Hook           `yaml:"hooks"`
	ChurnConfig     ChurnConfig      `yaml:"churnConfig"`
	IncrementalLoad *IncrementalLoad `yaml:"incrementalLoad"`

	From int `yaml:"-" json:"-"` // the first iteration, of a stage; see Stages
}

// Creates reports whether the job makes objects, and does not work on existing ones.
func (j *Job) Creates() bool { return j.JobType == Create || j.JobType == "" }

// Object is an entry of a job's objects: what to create in each iteration, or to work on.
type Object struct {
	ObjectTemplate         string         `yaml:"objectTemplate"`                   // path or URL; several YAML documents allowed
	Replicas               int            `yaml:"replicas" default:"1" range:"0.."` // for each iteration; 0 creates none
	InputVars              map[string]any `yaml:"inputVars"`
	Wait                   bool           `yaml:"wait" default:"true"`
	WaitOptions            WaitOptions    `yaml:"waitOptions"`
	RunOnce                bool           `yaml:"runOnce"` // in the first iteration only
	RepeatEveryNIterations int            `yaml:"repeatEveryNIterations" default:"1" range:"1.."`
	Churn                  bool           `yaml:"churn" default:"true"`
	Group                  Group          `yaml:"group"`

	Kind          string            `yaml:"kind"`
	APIVersion    string            `yaml:"apiVersion" default:"v1"`
	LabelSelector map[string]string `yaml:"labelSelector"`
	PatchType     string            `yaml:"patchType"`
	KubeVirtOp    string            `yaml:"kubeVirtOp"`
}

// WaitOptions say when an object is ready. The zero value means ready by its kind.
type WaitOptions struct {
	APIVersion        string            `yaml:"apiVersion"`
	Kind              string            `yaml:"kind"` // of the objects to wait for, if not the object itself
	LabelSelector     map[string]string `yaml:"labelSelector"`
	CustomStatusPaths []StatusPath      `yaml:"customStatusPaths"`
	ForCondition      string            `yaml:"forCondition"` // a condition that must be True
}

// StatusPath is a jq expression over an object's status, and the text that it must give.
type StatusPath struct {
	Key   string `yaml:"key" needed:""`
	Value string `yaml:"value" needed:""`
}

// Group collects objects for removal.
type Group struct {
	ID            int           `yaml:"id"`
	GC            bool          `yaml:"gc"`
	PauseBeforeGC time.Duration `yaml:"pauseBeforeGC" range:"0s.."`
	PauseAfterGC  time.Duration `yaml:"pauseAfterGC" range:"0s.."`
}

// Watcher is a watch held open on the API server as load.
type Watcher struct {
	Kind          string            `yaml:"kind" needed:""`
	APIVersion    string            `yaml:"apiVersion" needed:""`
	LabelSelector map[string]string `yaml:"labelSelector"`
	Replicas      int               `yaml:"replicas" default:"1" range:"0.."`
}

// The moments at which hooks run.
const (
	BeforeJob       = "beforeJobExecution"
	AfterJob        = "afterJobExecution" // its objects are ready, and do not churn yet
	OnEachIteration = "onEachIteration"   // before its first request
	BeforeChurn     = "beforeChurn"
	AfterChurn      = "afterChurn"
	BeforeCleanup   = "beforeCleanup" // at the end of the job
	AfterCleanup    = "afterCleanup"  // of a job with gc, after the run's removal
	BeforeGC        = "beforeGC"      // of what earlier runs have left
	AfterGC         = "afterGC"
	HealthCheck     = "healthCheckScript" // of an incrementalLoad, once a stage is ready; a failure ends the run
)

// Hook is a command to run at some moment of a job.
type Hook struct {
	Cmd        []string `yaml:"cmd" needed:""`
	When       string   `yaml:"when" words:"beforeJobExecution, afterJobExecution, onEachIteration, beforeChurn, afterChurn, beforeCleanup, afterCleanup, beforeGC, afterGC"`
	Background bool     `yaml:"background"`
}

// ChurnConfig asks for objects to be deleted and created again.
type ChurnConfig struct {
	Cycles      int           `yaml:"cycles" range:"0.."`
	Percent     int           `yaml:"percent"` // of the iterations, each cycle
	Duration    time.Duration `yaml:"duration" range:"0s.."`
	Delay       time.Duration `yaml:"delay" range:"0s.."` // between cycles
	DeleteDelay time.Duration `yaml:"deleteDelay" range:"0s.."`
	Mode        string        `yaml:"mode" default:"namespaces" words:"namespaces, objects"`
}

// On reports whether churn is wanted: by a number of cycles, or by a duration.
func (c ChurnConfig) On() bool { return c.Cycles > 0 || c.Duration > 0 }

// IncrementalLoad raises a job's iterations in steps.
type IncrementalLoad struct {
	StartIterations   int           `yaml:"startIterations" range:"1.." needed:""`
	TotalIterations   int           `yaml:"totalIterations"`
	StepDelay         time.Duration `yaml:"stepDelay" range:"0s.."`
	HealthCheckScript string        `yaml:"healthCheckScript"`
	Pattern           LoadPattern   `yaml:"pattern"`
}

// LoadPattern says how far one step of an IncrementalLoad goes.
type LoadPattern struct {
	Type        string             `yaml:"type" words:"linear, exponential"`
	Linear      LinearPattern      `yaml:"linear"`
	Exponential ExponentialPattern `yaml:"exponential"`
}

// LinearPattern adds the same number of iterations each step.
type LinearPattern struct {
	MinSteps int `yaml:"minSteps" range:"0.."`
	StepSize int `yaml:"stepSize" default:"1" range:"1.."`
}

// ExponentialPattern multiplies the iterations each step.
type ExponentialPattern struct {
	Base        float64 `yaml:"base" default:"2" range:">1"`
	MaxIncrease int     `yaml:"maxIncrease" range:"0.."` // 0 is no bound
	WarmupSteps int     `yaml:"warmupSteps" range:"0.."`
}

// MetricsEndpoint names a Prometheus to query and a place for the documents.
type MetricsEndpoint struct {
	Endpoint      string        `yaml:"endpoint"`
	Username      string        `yaml:"username"`
	Password      string        `yaml:"password"`
	Token         string        `yaml:"token"`
	Step          time.Duration `yaml:"step" default:"30s" range:">0"`
	SkipTLSVerify bool          `yaml:"skipTLSVerify" default:"true"`
	Metrics       []string      `yaml:"metrics"` // metrics profiles
	Alerts        []string      `yaml:"alerts"`  // alert profiles
	Alias         string        `yaml:"alias"`   // by which measurements name this indexer
	Indexer       Indexer       `yaml:"indexer"`
}

// Indexer names the place for documents. An empty Type is none.
type Indexer struct {
	Type               string   `yaml:"type"`
	ESServers          []string `yaml:"esServers"`
	DefaultIndex       string   `yaml:"defaultIndex"`
	InsecureSkipVerify bool     `yaml:"insecureSkipVerify"`
	MetricsDirectory   string   `yaml:"metricsDirectory"` // default collected-metrics-UUID
	CreateTarball      bool     `yaml:"createTarball"`
	TarballName        string   `yaml:"tarballName"` // default kube-burner-metrics.tgz
}

// Measurement is something to measure while jobs run.
type Measurement struct {
	Name              string            `yaml:"name" words:"podLatency, jobLatency, nodeLatency, pvcLatency, vmiLatency, vmimLatency, serviceLatency, dataVolumeLatency, volumeSnapshotLatency, netpolLatency, pprof, cudnLatency, raLatency, raLatencyBCC, cncLatency"`
	Thresholds        []Threshold       `yaml:"thresholds"`
	SvcTimeout        time.Duration     `yaml:"svcTimeout" default:"5s" range:">0"`
	QuantilesIndexer  string            `yaml:"quantilesIndexer"`
	TimeseriesIndexer string            `yaml:"timeseriesIndexer"`
	PProfTargets      []PProfTarget     `yaml:"pprofTargets"`
	PProfInterval     time.Duration     `yaml:"pprofInterval" range:"0s.."`
	PProfDirectory    string            `yaml:"pprofDirectory" default:"pprof"`
	NodeAffinity      map[string]string `yaml:"nodeAffinity"`
	Config            map[string]any    `yaml:"config"` // of one measurement; kube-burner 2.7 reads none
}

// Threshold is a bound on a latency.
type Threshold struct {
	ConditionType string        `yaml:"conditionType"`
	Metric        string        `yaml:"metric" words:"P99, P95, P50, Avg, Max"`
	Threshold     time.Duration `yaml:"threshold" range:">0" needed:""`
}

// PProfTarget is a process to profile.
type PProfTarget struct {
	Name           string            `yaml:"name" needed:""`
	Namespace      string            `yaml:"namespace"`
	LabelSelector  map[string]string `yaml:"labelSelector"`
	BearerToken    string            `yaml:"bearerToken"`
	URL            string            `yaml:"url" needed:""`
	UnixSocketPath string            `yaml:"unixSocketPath"` // where the pod listens, instead of a port
	CertFile       string            `yaml:"certFile"`
	KeyFile        string            `yaml:"keyFile"`
	Cert           string            `yaml:"cert"`
	Key            string            `yaml:"key"`
}

// PreLoads reports whether the images of a job are pulled before it. Nodes that are not real pull none, unless the
// configuration says so.
func (c *Config) PreLoads(job int, real bool) bool {
	j := &c.Jobs[job]
	return j.Creates() && j.PreLoadImages && (real || c.positions.Has(strictyaml.Index("jobs", job)+".preLoadImages"))
}

// Summary returns the job as in kube-burner's documents, without objects and unset values.
func (j *Job) Summary() map[string]any {
	summary := summaryOf(reflect.ValueOf(*j))
	for _, key := range []string{"objects", "watchers", "preLoadNodeLabels", "namespaceLabels", "namespaceAnnotations"} {
		delete(summary, key)
	}
	if j.ExecutionMode != Sequential {
		delete(summary, "executionMode")
	}
	if !j.ChurnConfig.On() {
		summary["churnConfig"] = map[string]any{}
	}
	summary["gc"] = j.GC
	return summary
}

func summaryOf(of reflect.Value) map[string]any {
	made := make(map[string]any)
	for f, value := range of.Fields() {
		key := f.Tag.Get("yaml")
		if f.IsExported() && (!value.IsZero() || value.Kind() == reflect.Struct) {
			made[key] = summarised(value)
		}
	}
	return made
}

func summarised(value reflect.Value) any {
	switch v := reflect.Indirect(value); {
	case v.Kind() == reflect.Struct:
		return summaryOf(v)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = summaryOf(v.Index(i))
		}
		return list
	case v.Type() == reflect.TypeFor[time.Duration]():
		return v.Int()
	default:
		return v.Interface()
	}
}
