// Package component holds the programs of a lab: etcd, the Kubernetes control plane and the simulated nodes.
// Each runs alone in a process of its own ("plimsoll component NAME ..."): they have global state that they
// cannot share, and so their use of CPU and memory can be measured. Only this package links the control plane.
package component

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/tools/clientcmd"
	kubecli "k8s.io/component-base/cli"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics in each component's /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/lab/virt"
	"plimsoll.dev/plimsoll/internal/plan/planted"
	"plimsoll.dev/plimsoll/internal/plan/settings"
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

// virtualMachines simulates what makes pods into virtual machines, until a signal ends the process.
func virtualMachines(args []string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	var o virt.Options
	var kubeconfig, figures, sign string
	flags := flag.NewFlagSet(protocol.Virt, flag.ContinueOnError)
	flags.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the lab")
	flags.StringVar(&figures, "figures", "", "what is planted, as KEY=VALUE,...")
	flags.Float64Var(&o.Scale, "time-scale", 1, "how many times faster everything is")
	flags.IntVar(&o.Nodes, "nodes", 0, "number of nodes to prepare")
	flags.IntVar(&o.APIPort, "api-port", 0, "port of 127.0.0.1 at which the API server reaches it")
	flags.IntVar(&o.SSHPort, "guest-port", 0, "port at which guests answer")
	flags.StringVar(&o.Cert, "cert", "", "file of the certificate that it shows")
	flags.StringVar(&o.Key, "key", "", "file of its key")
	flags.StringVar(&o.CA, "ca", "", "file of the authority that signed it")
	flags.StringVar(&o.FrontProxyCA, "front-proxy-ca", "", "file of the authority of who may ask")
	flags.IntVar(&o.Real.Most, "real-guests", 0, "how many machines have a guest that runs")
	flags.StringVar(&o.Real.QEMU, "qemu", "", "the program that runs them")
	flags.StringVar(&o.Real.Image, "guest-image", "", "directory of what they boot from")
	flags.StringVar(&o.Real.Dir, "guest-dir", "", "directory of their disks")
	flags.StringVar(&sign, "sign", "", "file to make when machines can be made")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		log.Error("bad command line", "error", err)
		return 2
	}
	given, err := settings.ParseList(figures)
	if err == nil {
		o.Figures, err = planted.Parse(given, o.Scale)
	}
	if err == nil {
		o.Config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		log.Error("bad command line", "error", err)
		return 2
	}
	o.Log, o.Metrics = log, legacyregistry.Handler()
	o.Ready = func() {
		if err := os.WriteFile(sign, nil, 0o600); err != nil {
			log.Error("could not say that machines can be made", "error", err)
		}
	}
	ctx := genericapiserver.SetupSignalContext()
	if err := virt.Run(ctx, o); err != nil && ctx.Err() == nil {
		log.Error("virtual machines failed", "error", err)
		return 1
	}
	return 0
}
