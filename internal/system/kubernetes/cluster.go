// Package kubernetes applies a workload's objects at a bounded rate, watches them, and removes them.
package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/survey"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/sweep"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// Cluster connects to one Kubernetes cluster, that of a kubeconfig's context or of this pod.
type Cluster struct {
	client  *api.Client
	Context string
	Server  string
	Config  *clientcmdapi.Config // kubeconfig that names the cluster
	path    string               // of its file; "" for that of this pod
	Naming  record.TargetNaming  // target's name in records
	host    system.Host
}

// Connect makes a client for a context of a kubeconfig, "" for the current one.
func Connect(kubeconfig, context string, host system.Host) (*Cluster, error) {
	return (&Settings{Kubeconfig: kubeconfig, Context: context}).Connect(host)
}

// Connect makes a client for the cluster that the settings name by a kubeconfig or as that of the pod.
func (t *Settings) Connect(host system.Host) (*Cluster, error) {
	chosen, err := t.choose(host.Pod)
	if err != nil {
		return nil, err
	}
	rest, err := chosen.rest()
	if err != nil {
		return nil, err
	}
	c, err := api.NewClient(rest, "plimsoll/"+host.Build.Version)
	if err != nil {
		return nil, system.Mistakef("", "%s: %w", chosen.from, err)
	}
	return &Cluster{
		client: c, Context: chosen.context, Server: rest.Host, Config: chosen.config, path: chosen.path,
		Naming: record.TargetNaming{Kind: "cluster", Name: chosen.context}, host: host,
	}, nil
}

// summary describes the cluster to the user before it is loaded.
func (c *Cluster) summary(ctx context.Context) (text string, nodes int, err error) {
	version, err := c.client.Typed.Discovery().ServerVersion()
	if err != nil {
		return "", 0, c.client.Unreachable(err)
	}
	text = fmt.Sprintf("%s at %s: Kubernetes %s", c.Context, c.Server, version.GitVersion)
	for _, what := range []record.Noun{observe.Pods().Place, observe.Pods().Object} {
		n := 0
		_, err := c.client.List(ctx, "/api/v1/"+what.Many, nil, func([]byte) error { n++; return nil })
		switch {
		case api.Refused(err):
			text += ", " + what.Many + " that this user may not list"
		case err != nil:
			return "", 0, fmt.Errorf("list %s: %w", what.Many, c.client.Unreachable(err))
		default:
			text += ", " + what.Count(n)
			if what == observe.Pods().Place {
				nodes = n
			}
		}
	}
	return text, nodes, nil
}

// nodes lists the nodes, none for a user who may not.
func (c *Cluster) nodes(ctx context.Context) (nodes []*corev1.Node, err error) {
	list, err := c.client.Typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if api.Refused(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", c.client.Unreachable(err))
	}
	for i := range list.Items {
		nodes = append(nodes, &list.Items[i])
	}
	return nodes, nil
}

// version returns the server's version, and its clock less ours; see api.ClockOffset.
func (c *Cluster) version(ctx context.Context) (version string, offset *float64, err error) {
	before := c.host.Now()
	r, err := c.client.Call(ctx, http.MethodGet, "/version", nil)
	if err != nil {
		return "", nil, c.client.Unreachable(err)
	}
	offset = api.ClockOffset(r.Header, before, c.host.Now())
	info, err := c.client.Typed.Discovery().ServerVersion()
	if err != nil {
		return "", nil, fmt.Errorf("get the server's version: %w", c.client.Unreachable(err))
	}
	return info.GitVersion, offset, nil
}

// haveNamespace refuses a missing namespace; one that the user may not read shows with the first request.
func (c *Cluster) haveNamespace(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	r, err := c.client.Call(ctx, http.MethodGet, "/api/v1/namespaces/"+name, nil)
	switch {
	case err != nil:
		return c.client.Unreachable(err)
	case r.Code == http.StatusNotFound:
		return system.Mistakef("make it first, or leave out --namespace: the run then makes its own", "there is no namespace %s", name)
	}
	return nil
}

// Survey surveys the cluster; see survey.Of.
func (c *Cluster) Survey(ctx context.Context) (*survey.Survey, error) {
	return survey.Of(ctx, c.client, c.host)
}

// Leftovers lists the objects that runs left in the cluster; see sweep.Leftovers.
func (c *Cluster) Leftovers(ctx context.Context, quick bool, namespace string) ([]sweep.Leftover, error) {
	return sweep.Leftovers(ctx, c.client, c.host, quick, namespace)
}

// Labelled finds objects by their labels; see sweep.Labelled.
func (c *Cluster) Labelled(ctx context.Context, selector string) (spaces, others []string, err error) {
	return sweep.Labelled(ctx, c.client, selector)
}

// Remove removes objects; see sweep.Remove.
func (c *Cluster) Remove(ctx context.Context, spaces, others []string) error {
	return sweep.Remove(ctx, c.client, c.host, spaces, others)
}

// Clean removes the leftovers of one run; see sweep.Clean.
func (c *Cluster) Clean(ctx context.Context, l sweep.Leftover) error {
	return sweep.Clean(ctx, c.client, c.host, l)
}

// Measure records the news of pods, and of objects beside them, that others make, until ctx ends; see follow.Measure.
func (c *Cluster) Measure(ctx context.Context, beside []*described.Objects, namespace, selector string, rec system.Recorder, listed func()) error {
	mapper, err := c.client.Mapper()
	if err != nil {
		return err
	}
	load := prepared.Workload{Beside: beside, Namespace: namespace}
	return follow.Measure(ctx, &prepared.Run{Client: c.client, Load: &load, Sink: rec.Sink, Clock: rec.Clock, Step: rec.Step}, c.host.Now, mapper, selector, listed)
}

// Typed returns the client of the API's own types, for rare requests.
func (c *Cluster) Typed() kubernetes.Interface { return c.client.Typed }

// Close closes the cluster's connections.
func (c *Cluster) Close() { c.client.Close() }

// environment returns the environment of a command that may use the cluster: kubectl finds no other. It may write a
// file into dir, which names the context.
func (c *Cluster) environment(dir string) (env []string, err error) {
	for _, name := range []string{"PATH", "HOME", "LANG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"} {
		if value := c.host.Env(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	if c.path == "" {
		return env, nil
	}
	path, err := filepath.Abs(c.path)
	if err != nil {
		return nil, err
	}
	if c.Context != c.Config.CurrentContext {
		chosen := clientcmdapi.NewConfig()
		chosen.CurrentContext = c.Context
		file := filepath.Join(dir, "context")
		if err := clientcmd.WriteToFile(*chosen, file); err != nil {
			return nil, fmt.Errorf("name the context to hooks: %w", err)
		}
		path = file + string(filepath.ListSeparator) + path // the first file's context counts
	}
	return append(env, "KUBECONFIG="+path), nil
}

// chosen holds one context of a kubeconfig. Relative paths start at the file's directory, as in kubectl.
type chosen struct {
	config  *clientcmdapi.Config
	path    string // of the file, "" for none
	from    string // names the file in errors
	context string
	cluster *clientcmdapi.Cluster
	user    *clientcmdapi.AuthInfo
}

// choose returns the context that the settings name. Its error is a *system.MistakeError.
func (t *Settings) choose(pod system.Pod) (*chosen, error) {
	if t.InCluster {
		return inCluster(pod)
	}
	return readKubeconfig(t.Kubeconfig, t.Context)
}

// inCluster returns the service account of a pod as a context. The client reads the token's file again
// before the token expires.
func inCluster(pod system.Pod) (*chosen, error) {
	if pod.Server == "" {
		return nil, system.Mistakef("name the cluster with --kubeconfig FILE, or run there: 'plimsoll job WORKLOAD --image REF' prints the job", "this program does not run in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
	}
	const name = "in-cluster"
	c := &chosen{
		config: clientcmdapi.NewConfig(), from: "the service account of this pod", context: name,
		cluster: &clientcmdapi.Cluster{Server: pod.Server, CertificateAuthority: filepath.Join(pod.Account, corev1.ServiceAccountRootCAKey)},
		user:    &clientcmdapi.AuthInfo{TokenFile: filepath.Join(pod.Account, corev1.ServiceAccountTokenKey)},
	}
	for _, file := range []string{c.user.TokenFile, c.cluster.CertificateAuthority} {
		if _, err := os.Stat(file); err != nil {
			return nil, system.Mistakef("give the pod a service account, and do not set automountServiceAccountToken: false", "%s: %w", c.from, err)
		}
	}
	c.config.Clusters[name], c.config.AuthInfos[name], c.config.Contexts[name] = c.cluster, c.user, &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	return c, nil
}

// readKubeconfig chooses a context, "" for the current one. Its error is a *system.MistakeError.
func readKubeconfig(path, context string) (*chosen, error) {
	config, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, system.Mistakef(nearest.File(path), "there is no kubeconfig %s", path)
	}
	if err == nil {
		err = clientcmd.ResolveLocalPaths(config)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, system.Mistakef("", "read kubeconfig %s: %w", path, err)
	}
	if err != nil {
		// The parser's own message names Go types and may quote the file.
		_, where, _ := strings.Cut(err.Error(), "yaml: ")
		what, _, _ := strings.Cut(where, ":")
		return nil, system.Mistakef("'kubectl config view --kubeconfig FILE' shows whether a file is one", "%s is not a kubeconfig, which is a YAML document of kind Config%s", path, strings.TrimSuffix(": "+what, ": "))
	}
	context = cmp.Or(context, config.CurrentContext)
	c := &chosen{config: config, path: path, from: "kubeconfig " + path, context: context}
	at, ok := config.Contexts[context]
	if !ok {
		what := fmt.Sprintf("no such context: %q", context)
		if context == "" {
			what = "no context is named, and the file has no current-context"
		}
		return nil, system.Mistakef(thereIs(config.Contexts), "kubeconfig %s: %s", path, what)
	}
	if c.cluster, ok = config.Clusters[at.Cluster]; !ok {
		return nil, system.Mistakef(thereIs(config.Clusters), "kubeconfig %s: context %q names the cluster %q, which the file does not have", path, context, at.Cluster)
	}
	if c.user, ok = config.AuthInfos[at.AuthInfo]; !ok && at.AuthInfo != "" {
		return nil, system.Mistakef(thereIs(config.AuthInfos), "kubeconfig %s: context %q names the user %q, which the file does not have", path, context, at.AuthInfo)
	}
	c.user = cmp.Or(c.user, new(clientcmdapi.AuthInfo))
	if c.user.Exec != nil {
		// PATH is searched once: the program that is shown is the one that runs.
		if found, err := exec.LookPath(c.user.Exec.Command); err == nil {
			c.user.Exec.Command = found
		}
	}
	return c, nil
}

func thereIs[T any](named map[string]T) string {
	if len(named) == 0 {
		return "the file has none"
	}
	return "there is: " + strings.Join(slices.Sorted(maps.Keys(named)), ", ")
}

// rest makes a client's configuration from the context's files; it runs no program and sends no request.
func (c *chosen) rest() (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveClientConfig(*c.config, c.context, nil, &clientcmd.ClientConfigLoadingRules{ExplicitPath: c.path}).ClientConfig()
	if err != nil {
		return nil, system.Mistakef("", "%s: %w", c.from, err)
	}
	if config.ExecProvider == nil {
		return config, nil
	}
	if _, err := exec.LookPath(config.ExecProvider.Command); err != nil {
		return nil, system.Mistakef(config.ExecProvider.InstallHint, "%s: the login program of context %q cannot be run: %w", c.from, c.context, err)
	}
	return config, nil
}

func placesOf(nodes []*corev1.Node, inLab bool) *record.Places {
	places := &record.Places{Place: record.Noun{One: "node", Many: "nodes"}, Facts: nodeFacts(inLab)}
	for _, n := range slices.SortedFunc(slices.Values(nodes), func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) }) {
		info, can := n.Status.NodeInfo, n.Status.Allocatable
		values := []string{
			strconv.FormatInt(can.Pods().Value(), 10), strconv.FormatFloat(can.Cpu().AsApproximateFloat64(), 'g', -1, 64), strconv.FormatInt(can.Memory().Value(), 10),
			info.KubeletVersion, info.ContainerRuntimeVersion, info.OSImage, info.KernelVersion,
		}
		places.Add(n.Name, follow.FidelityOf(n), values[:len(places.Facts)]...)
	}
	return places
}

func labFacts(s lab.Spec) []record.Fact {
	list := []record.Fact{{Name: "lab-start-latency", What: "start latency of the lab's pods", Value: cmp.Or(s.StartLatency.String(), "none"), Bearing: record.Refuses}}
	if s.HasVirt() {
		said := fmt.Sprintf("scale %g", s.TimeScale)
		var planted []string
		for _, key := range slices.Sorted(maps.Keys(s.Virt)) {
			planted = append(planted, key+"="+s.Virt[key])
		}
		if len(planted) > 0 {
			said += ", " + strings.Join(planted, ",")
		}
		if s.RealGuests > 0 {
			said += fmt.Sprintf(", %d real guests", s.RealGuests)
		}
		list = append(list, record.Fact{Name: "lab-virt", What: "what is planted in the lab's virtual machines, and their scale of time", Value: said, Bearing: record.Refuses})
	}
	if s.RealNode {
		value := "default"
		if s.PodCIDRPrefix != 0 {
			value = fmt.Sprintf("/%d", s.PodCIDRPrefix)
		}
		list = append(list, record.Fact{Name: "pod-range", What: "prefix length of the pod addresses of the lab's real node", Value: value, Bearing: record.Refuses})
	}
	return list
}

// clusterFacts returns a cluster's facts. clockOffset is its clock less ours in seconds, nil where unknown.
func clusterFacts(server string, nodes, skipped int, clockOffset *float64) []record.Fact {
	clock := ""
	if clockOffset != nil {
		clock = fmt.Sprintf("%+.1f", *clockOffset)
	}
	return []record.Fact{
		{Name: "kubernetes", What: "version of the API server", Value: server, Bearing: record.Refuses},
		{Name: "nodes", What: "nodes that take the workload", Value: strconv.Itoa(nodes), Bearing: record.Refuses},
		{Name: "nodes-skipped", What: "nodes that do not take the workload", Value: strconv.Itoa(skipped), Bearing: record.Noted},
		// Latencies are of one clock, whatever the other says.
		{Name: "clock", What: "server's clock less plimsoll's, to within 1 s", Value: clock, Unit: "s", Within: "1", Bearing: record.Noted},
	}
}

// nodeFacts declares the facts of nodes. The kernel of a lab's nodes is a fact of the machine.
func nodeFacts(inLab bool) []record.Fact {
	list := []record.Fact{
		{Name: "node-shape:pods", What: "allocatable pods", Unit: "pods", Bearing: record.Refuses},
		{Name: "node-shape:cpus", What: "allocatable processors", Unit: "CPUs", Bearing: record.Refuses},
		// Firmware and kernel reserve a varying part.
		{Name: "node-shape:memory", What: "allocatable memory", Unit: "B", Within: "2%", Bearing: record.Refuses},
		{Name: "kubelet", What: "version of the kubelet", Bearing: record.Refuses},
		{Name: "runtime", What: "container runtime", Bearing: record.Refuses},
		{Name: "os", What: "operating system", Bearing: record.Refuses},
	}
	if !inLab {
		list = append(list, record.Fact{Name: "kernel", What: "kernel of the node", Bearing: record.Refuses})
	}
	return list
}
