// Package component holds the programs of a lab: etcd, the Kubernetes control plane and the simulated nodes.
// Each runs alone in a process of its own ("plimsoll component NAME ..."): they have global state that they
// cannot share, and so their use of CPU and memory can be measured. Only this package links the control plane.
package component

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	kubecli "k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics in each component's /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
)

// All maps each component's name to the function that runs it, without its name, and returns an exit code.
func All() map[string]func(args []string) int {
	return map[string]func(args []string) int{
		protocol.Etcd:              etcd,
		protocol.APIServer:         kube(apiserver.NewAPIServerCommand),
		protocol.ControllerManager: kube(controllermanager.NewControllerManagerCommand),
		protocol.Scheduler:         kube(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		protocol.SimulatedNodes:    simulatedNodes,
		protocol.RealNode:          realNode,
		protocol.Virt:              virtualMachines,
		protocol.Kubelet:           kube(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
		protocol.KubeProxy:         kube(proxy.NewProxyCommand),
	}
}

// etcd ends the process itself when it fails.
func etcd(args []string) int {
	etcdmain.Main(append([]string{protocol.Etcd}, args...))
	return 0
}

func kube(newCommand func() *cobra.Command) func(args []string) int {
	return func(args []string) int {
		command := newCommand()
		command.SetArgs(args)
		return kubecli.Run(command)
	}
}

func realNode(args []string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if len(args) != 1 {
		log.Error("bad command line", "want", "the file that describes the node")
		return 2
	}
	if err := realnode.Run(args[0], log); err != nil {
		// The message has several lines: the end of another program's log.
		fmt.Fprintln(os.Stderr, "the real node failed:", err)
	}
	return 1
}
