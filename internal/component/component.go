// Package component holds the programs that a laboratory is made of: etcd, the
// Kubernetes control plane and the simulated nodes. Each is meant to run alone
// in a process of its own ("plimsoll component NAME ..."): they keep global
// state that they cannot share, and a process each makes their use of CPU and
// memory measurable. It is the only package that links the control plane.
package component

import (
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	kubecli "k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics in each component's /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"plimsoll.dev/plimsoll/internal/lab"
)

// All maps each component's name to the function that runs it in this process
// until it ends and returns its exit code. Arguments exclude the name.
func All() map[string]func(args []string) int {
	return map[string]func(args []string) int{
		lab.Etcd:              etcd,
		lab.APIServer:         kube(apiserver.NewAPIServerCommand),
		lab.ControllerManager: kube(controllermanager.NewControllerManagerCommand),
		lab.Scheduler:         kube(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		lab.SimulatedNodes:    simulatedNodes,
	}
}

// etcd runs etcd. It ends the process itself when it fails.
func etcd(args []string) int {
	etcdmain.Main(append([]string{lab.Etcd}, args...))
	return 0
}

// kube runs a component of Kubernetes.
func kube(newCommand func() *cobra.Command) func(args []string) int {
	return func(args []string) int {
		command := newCommand()
		command.SetArgs(args)
		return kubecli.Run(command)
	}
}
