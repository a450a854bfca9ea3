package kubernetes

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// chosen holds one context of a kubeconfig. Relative paths start at the file's directory, as in
// kubectl, so the path that a user is shown is the one that is used or run.
type chosen struct {
	config  *clientcmdapi.Config
	context string
	cluster *clientcmdapi.Cluster
	user    *clientcmdapi.AuthInfo
}

// readKubeconfig reads a kubeconfig and chooses one of its contexts, the current one if
// context is "". The error is a *system.MistakeError that names what the file lacks.
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
	if context == "" {
		context = config.CurrentContext
	}
	c := &chosen{config: config, context: context}
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
	if c.user == nil {
		c.user = new(clientcmdapi.AuthInfo)
	}
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

// rest makes the configuration of a client. It reads the files that the context names, but neither
// runs the login program nor sends a request.
func (c *chosen) rest(path string) (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveClientConfig(*c.config, c.context, nil, &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}).ClientConfig()
	if err != nil {
		return nil, system.Mistakef("", "kubeconfig %s: %w", path, err)
	}
	if config.ExecProvider == nil {
		return config, nil
	}
	if _, err := exec.LookPath(config.ExecProvider.Command); err != nil {
		return nil, system.Mistakef(config.ExecProvider.InstallHint, "kubeconfig %s: the login program of context %q cannot be run: %w", path, c.context, err)
	}
	return config, nil
}

// brings lists the login program of the context, and the files whose contents are sent or trusted, each
// with the directory where it may lie: the kubeconfig's own.
func (c *chosen) brings(path string) (programs []string, files map[string]string) {
	if c.user.Exec != nil {
		programs = append(programs, c.user.Exec.Command)
	}
	files = make(map[string]string)
	for _, file := range []string{c.user.TokenFile, c.user.ClientCertificate, c.user.ClientKey, c.cluster.CertificateAuthority} {
		if file != "" {
			files[file] = filepath.Dir(path)
		}
	}
	return programs, files
}
