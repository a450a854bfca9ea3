package kubernetes

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/plan"
	own "plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
)

// Settings holds the target section of a plan: which cluster it loads, a private lab by default.
type Settings struct {
	Lab        *lab.Shape `yaml:"lab" flag:"lab-"`
	LabName    string     `yaml:"labName" flag:"lab" takes:"name" help:"the lab with this name; see 'plimsoll lab'"`
	Kubeconfig string     `yaml:"kubeconfig" flag:"kubeconfig" takes:"file" help:"the cluster of this kubeconfig file; $KUBECONFIG is not read"`
	Context    string     `yaml:"context" flag:"context" help:"context of the kubeconfig (default its current one)"`
	InCluster  bool       `yaml:"inCluster" flag:"in-cluster" help:"the cluster that this program runs in as a pod, by its service account; 'plimsoll job' prints such a pod"`
	Namespace  string     `yaml:"namespace" flag:"namespace" takes:"name" beside:"true" help:"make everything in this namespace, which exists and is never removed (default namespaces of the run's own)"`
	Images     string     `yaml:"images" flag:"images" takes:"registry" beside:"true" help:"take the program's own images from this registry or a path in it, where 'plimsoll image push' has put them (default those that the nodes have)"`
	Scrape     *Scraped   `yaml:"scrape" flag:"scrape-"`
}

// Scraped holds the number of nodes whose metrics are read, for clusters that are not labs.
type Scraped struct {
	Nodes int `yaml:"nodes" flag:"nodes" unit:"number of nodes" range:"0..1000" help:"read the metrics of so many nodes, drawn by the seed; of a lab those of its real node are read (default 10)"`
}

const defaultScraped = 10 // number of nodes whose metrics are read by default

func (t *Settings) scraped() int {
	if t.Scrape == nil {
		return defaultScraped
	}
	return t.Scrape.Nodes
}

func settingsOf(p *plan.Plan) *Settings { return p.Own.(*Settings) }

// Complete makes a private lab the target of a plan that names none.
func (t *Settings) Complete(func(string) bool) {
	if t.Lab == nil && t.LabName == "" && t.Kubeconfig == "" && t.Context == "" && !t.InCluster {
		t.Lab = new(lab.Shape)
	}
}

// Check refuses more than one target.
func (t *Settings) Check(c *own.Check) {
	named := 0
	for _, given := range []bool{t.Lab != nil, t.LabName != "", t.Kubeconfig != "" || t.Context != "", t.InCluster} {
		if given {
			named++
		}
	}
	if named > 1 {
		c.Problem("", "keep one of "+c.Key("lab")+", "+c.Key("labName")+", "+c.Key("kubeconfig")+" and "+c.Key("inCluster"), "more than one target is named")
	}
	if t.Context != "" && t.Kubeconfig == "" && !t.InCluster {
		c.Problem("context", "name the file as well: "+c.Key("kubeconfig"), "a context is named without the kubeconfig that has it")
	}
	if err := CheckNamespace(t.Namespace); err != nil {
		c.Problem("namespace", "for example "+c.Set("namespace", "team-a"), "%v", err)
	}
	if t.Images != "" {
		if _, err := image.At(t.Images, image.AgentReference); err != nil {
			c.Problem("images", "for example "+c.Set("images", "registry.example:5000/team"), "%v", err)
		}
	}
}

// CheckNamespace refuses names that could change an API path or a manifest; "" is accepted.
func CheckNamespace(name string) error {
	if name != "" && len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("%q is not the name of a namespace: that has lower case letters, digits and '-', begins and ends with a letter or digit, and has at most 63 characters", name)
	}
	return nil
}

// fill returns the given and the filled parameters for a workload, with images from the plan's registry.
func (t *Settings) fill(w *workload.Workload, given, filled map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, given)
	maps.Copy(all, filled)
	for _, p := range w.Params {
		if _, set := all[p.Name]; !set && t.Images != "" && strings.HasPrefix(p.Default, image.Local) {
			all[p.Name], _ = image.At(t.Images, p.Default) // the plan is valid
		}
	}
	return all
}

func imagesFrom(registry string) record.Fact {
	return record.Fact{Name: "images", What: "where the program's own images come from", Value: registry, Bearing: record.MayExplain}
}

// Brings lists the login program and the files that are sent or trusted, each with its directory; none if
// the kubeconfig cannot be read.
func (t *Settings) Brings() (programs []string, files map[string]string) {
	if t.Kubeconfig == "" {
		return nil, nil
	}
	c, err := readKubeconfig(t.Kubeconfig, t.Context)
	if err != nil {
		return nil, nil // the run reports the error
	}
	if c.user.Exec != nil {
		programs = append(programs, c.user.Exec.Command)
	}
	files = make(map[string]string)
	for _, file := range []string{c.user.TokenFile, c.user.ClientCertificate, c.user.ClientKey, c.cluster.CertificateAuthority} {
		if file != "" {
			files[file] = filepath.Dir(t.Kubeconfig)
		}
	}
	return programs, files
}

// Unsaid returns the hint for a command that must name its cluster and does not.
func (*Settings) Unsaid() string {
	return "give --kubeconfig FILE or --lab NAME; --lab-nodes N checks a lab of so many nodes, made for it"
}

// System implements own.Own.
func (t *Settings) System() string {
	switch {
	case t.LabName != "":
		return "lab " + t.LabName
	case t.InCluster:
		return "the cluster of this pod"
	case t.Kubeconfig != "" && t.Context != "":
		return "the context " + t.Context + " of " + t.Kubeconfig
	case t.Kubeconfig != "":
		return "the cluster of " + t.Kubeconfig
	}
	return "a private lab"
}

// Named implements own.Own.
func (t *Settings) Named() (flags []string) {
	switch {
	case t.LabName != "":
		flags = []string{"--lab", t.LabName}
	case t.InCluster:
		flags = []string{"--in-cluster"}
	case t.Kubeconfig != "" && t.Context != "":
		flags = []string{"--kubeconfig", t.Kubeconfig, "--context", t.Context}
	case t.Kubeconfig != "":
		flags = []string{"--kubeconfig", t.Kubeconfig}
	}
	if flags != nil && t.Namespace != "" {
		flags = append(flags, "--namespace", t.Namespace)
	}
	return flags
}
