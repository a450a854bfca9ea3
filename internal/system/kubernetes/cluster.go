// Package kubernetes implements the Kubernetes target: it applies a workload's objects
// at a bounded rate, watches them, and removes everything that it made.
package kubernetes

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/kubernetes"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/survey"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/sweep"
)

// Cluster connects to one Kubernetes cluster, the one in a kubeconfig's context.
type Cluster struct {
	client  *api.Client
	Context string
	Server  string
	Config  *clientcmdapi.Config // Config is the kubeconfig that names the cluster
	Naming  record.TargetNaming  // Naming is the target's name in records
	host    system.Host
}

// Connect makes a client for one context of a kubeconfig, the current one if context is "".
// It sends no request. The error is a *system.MistakeError.
func Connect(kubeconfig, context string, host system.Host) (*Cluster, error) {
	chosen, err := readKubeconfig(kubeconfig, context)
	if err != nil {
		return nil, err
	}
	rest, err := chosen.rest(kubeconfig)
	if err != nil {
		return nil, err
	}
	c, err := api.NewClient(rest, "plimsoll/"+host.Build.Version)
	if err != nil {
		return nil, system.Mistakef("", "kubeconfig %s: %w", kubeconfig, err)
	}
	return &Cluster{
		client: c, Context: chosen.context, Server: rest.Host, Config: chosen.config,
		Naming: record.TargetNaming{Kind: "cluster", Name: chosen.context}, host: host,
	}, nil
}

// summary describes the cluster to the user before it is loaded.
func (c *Cluster) summary(ctx context.Context) (string, error) {
	version, err := c.client.Typed.Discovery().ServerVersion()
	if err != nil {
		return "", c.client.Unreachable(err)
	}
	text := fmt.Sprintf("%s at %s: Kubernetes %s", c.Context, c.Server, version.GitVersion)
	for _, what := range []record.Noun{observe.Pods().Place, observe.Pods().Object} {
		n := 0
		_, err := c.client.List(ctx, "/api/v1/"+what.Many, nil, func([]byte) error { n++; return nil })
		switch {
		case api.Refused(err):
			text += ", " + what.Many + " that this user may not list"
		case err != nil:
			return "", fmt.Errorf("list %s: %w", what.Many, c.client.Unreachable(err))
		default:
			text += ", " + what.Count(n)
		}
	}
	return text, nil
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

// haveNamespace refuses a namespace that does not exist. Where the user may not read it, requests to make
// objects in it show the reason.
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

// Clean removes the leftovers of one run; see sweep.Clean.
func (c *Cluster) Clean(ctx context.Context, l sweep.Leftover) error {
	return sweep.Clean(ctx, c.client, c.host, l)
}

// Typed returns the client of the API's own types, for rare requests.
func (c *Cluster) Typed() kubernetes.Interface { return c.client.Typed }

// Close closes the cluster's connections.
func (c *Cluster) Close() { c.client.Close() }
