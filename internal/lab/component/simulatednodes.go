package component

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config/resources"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/informer"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/simnode"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

type simulatedNodesOptions struct {
	kubeconfig     string
	nodes, maxPods int
	startLatency   dist.Dist
	leaseDuration  time.Duration
	sign           string
	port           int // at which the API server reaches them; 0 is none
	cert, key      string
}

func parseSimulatedNodes(args []string) (simulatedNodesOptions, error) {
	var o simulatedNodesOptions
	flags := flag.NewFlagSet(protocol.SimulatedNodes, flag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the lab")
	flags.IntVar(&o.nodes, "nodes", 0, "number of nodes")
	flags.IntVar(&o.maxPods, "max-pods", protocol.DefaultMaxPods, "allocatable pods of a node")
	flags.DurationVar(&o.leaseDuration, "lease-duration", 40*time.Second, "how long a node's lease lasts")
	flags.IntVar(&o.port, "port", 0, "port of 127.0.0.1 at which the API server reaches the nodes")
	flags.StringVar(&o.cert, "cert", "", "file of the certificate that they show")
	flags.StringVar(&o.key, "key", "", "file of its key")
	flags.StringVar(&o.sign, "sign", "", "file to make when pods are followed")
	flags.Func("start-latency", "time from bound to Ready: "+dist.Grammar, func(s string) error {
		var err error
		o.startLatency, err = dist.Parse(s)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.kubeconfig == "":
		return o, errors.New("--kubeconfig is missing")
	}
	return o, nil
}

// simulatedNodes makes the nodes and plays their kubelets until a signal ends the process.
func simulatedNodes(args []string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	options, err := parseSimulatedNodes(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		log.Error("bad command line", "error", err)
		return 2
	}
	ctx := genericapiserver.SetupSignalContext()
	if err := runSimulatedNodes(ctx, options, log); err != nil && ctx.Err() == nil {
		log.Error("simulated nodes failed", "error", err)
		return 1
	}
	return 0
}

func runSimulatedNodes(ctx context.Context, o simulatedNodesOptions, log *slog.Logger) error {
	// KWOK reports every renewal of every lease.
	ctx = kwoklog.NewContext(ctx, kwoklog.NewLogger(os.Stderr, kwoklog.LevelWarn))
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1 // never the limit that is measured
	config.UserAgent = "plimsoll-" + protocol.SimulatedNodes
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	player := simnode.NewPlayer(client, o.startLatency, log)
	if err := startNodes(ctx, client, player, o); err != nil {
		return err
	}
	if o.port > 0 {
		go func() {
			if err := simnode.Refuse(ctx, o.port, o.cert, o.key); err != nil {
				log.Error("requests to pods are not answered", "error", err)
			}
		}()
	}
	if err := simnode.CreateNodes(ctx, client, o.nodes, o.maxPods, o.port, metav1.Now()); err != nil {
		return err
	}
	if o.sign != "" {
		go func() {
			select {
			case <-player.Following():
			case <-ctx.Done():
				return
			}
			if err := os.WriteFile(o.sign, nil, 0o600); err != nil {
				log.Error("could not say that pods are followed", "error", err)
			}
		}()
	}
	player.Run(ctx)
	return nil
}

// leaseHolder stays the same after a restart: a new name would wait until the old one's leases expire.
const leaseHolder = "plimsoll-" + protocol.SimulatedNodes

// startNodes starts KWOK's controllers for leases and conditions of simulated nodes; the player gets all.
func startNodes(ctx context.Context, client kubernetes.Interface, player *simnode.Player, o simulatedNodesOptions) error {
	nodeEvents := make(chan informer.Event[*corev1.Node], 1)
	nodeInformer := informer.NewInformer[*corev1.Node, *corev1.NodeList](client.CoreV1().Nodes())
	nodeCache, err := nodeInformer.WatchWithCache(ctx, informer.Option{}, nodeEvents)
	if err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	leaseInformer := informer.NewInformer[*coordinationv1.Lease, *coordinationv1.LeaseList](
		client.CoordinationV1().Leases(corev1.NamespaceNodeLease))
	leaseCache, err := leaseInformer.WatchWithCache(ctx, informer.Option{}, nil)
	if err != nil {
		return fmt.Errorf("watch leases: %w", err)
	}

	stages, err := lifecycle.NewLifecycle(nodeStages(o.nodes))
	if err != nil {
		return fmt.Errorf("read node stages: %w", err)
	}
	var nodes *controllers.NodeController
	leases, err := controllers.NewNodeLeaseController(controllers.NodeLeaseControllerConfig{
		TypedClient: client, HolderIdentity: leaseHolder, LeaseDurationSeconds: uint(o.leaseDuration / time.Second),
		LeaseParallelism: 8,
		// With less spread, nodes that were made together would keep renewing together.
		RenewInterval: o.leaseDuration / 6, RenewIntervalJitter: 1,
		GetLease: func(node string) (*coordinationv1.Lease, bool) {
			return leaseCache.GetWithNamespace(node, corev1.NamespaceNodeLease)
		},
		MutateLeaseFunc: func(lease *coordinationv1.Lease) error {
			if node, ok := nodeCache.Get(lease.Name); ok && len(lease.OwnerReferences) == 0 {
				lease.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
				}
			}
			return nil
		},
		OnNodeManagedFunc: func(name string) {
			if node, ok := nodeCache.Get(name); ok {
				nodes.ManageNode(node)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("make lease controller: %w", err)
	}
	nodes, err = controllers.NewNodeController(controllers.NodeControllerConfig{
		TypedClient: client, Lifecycle: resources.NewStaticGetter(stages), PlayStageParallelism: 4,
		ReadOnlyFunc:      func(node string) bool { return !leases.Held(node) },
		OnNodeManagedFunc: leases.TryHold, OnNodeUnmanagedFunc: leases.ReleaseHold,
	})
	if err != nil {
		return fmt.Errorf("make node controller: %w", err)
	}
	simulated := make(chan informer.Event[*corev1.Node], 1)
	go passOn(ctx, nodeEvents, simulated, player)
	if err := leases.Start(ctx); err != nil {
		return fmt.Errorf("start lease controller: %w", err)
	}
	if err := nodes.Start(ctx, simulated); err != nil {
		return fmt.Errorf("start node controller: %w", err)
	}
	return nil
}

// passOn gives the player all nodes, and passes on the simulated ones.
func passOn(ctx context.Context, all <-chan informer.Event[*corev1.Node], simulated chan<- informer.Event[*corev1.Node], player *simnode.Player) {
	defer close(simulated)
	for {
		select {
		case event := <-all:
			player.SetNode(event.Object, event.Type == informer.Deleted)
			if event.Object.Annotations[simnode.KwokAnnotation] != simnode.KwokAnnotationValue {
				continue
			}
			select {
			case simulated <- event:
			case <-ctx.Done():
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// nodeStages tells KWOK to confirm a node's conditions from time to time, and at once if it is not ready.
func nodeStages(nodes int) []*internalversion.Stage {
	ready := func(operator internalversion.SelectorOperator) *internalversion.StageSelector {
		return &internalversion.StageSelector{MatchExpressions: []internalversion.MatchExpression{{
			JQ: &internalversion.SelectorJQ{
				Key: `.status.conditions.[] | select( .type == "Ready" ) | .status`, Operator: operator, Values: []string{"True"},
			},
		}, {
			JQ: &internalversion.SelectorJQ{
				Key: `.metadata.annotations["` + protocol.DownAnnotation + `"]`, Operator: internalversion.SelectorOpDoesNotExist,
			},
		}}}
	}
	confirm := func(times ...string) []internalversion.StageStep {
		return []internalversion.StageStep{{Patch: &internalversion.StagePatch{
			Subresource: "status", Root: "status", Template: conditionsTemplate(times...),
		}}}
	}
	node := internalversion.StageResourceRef{APIGroup: "v1", Kind: "Node"}
	period := max(5*time.Minute, time.Duration(nodes)*time.Second/10) // the kubelet's, or ten heartbeats a second
	return []*internalversion.Stage{
		{
			ObjectMeta: metav1.ObjectMeta{Name: "heartbeat"},
			Spec: internalversion.StageSpec{
				ResourceRef: node, Selector: ready(internalversion.SelectorOpIn),
				Delay: &internalversion.StageDelay{
					DurationMilliseconds: new(period.Milliseconds()), JitterDurationMilliseconds: new(2 * period.Milliseconds()),
				},
				Steps: confirm("lastHeartbeatTime"),
			},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Name: "recover"},
			Spec: internalversion.StageSpec{
				ResourceRef: node, Selector: ready(internalversion.SelectorOpNotIn),
				Steps: confirm("lastHeartbeatTime", "lastTransitionTime"),
			},
		},
	}
}

// conditionsTemplate returns KWOK's patch to a healthy node, with these times set to the present.
func conditionsTemplate(times ...string) string {
	var b strings.Builder
	b.WriteString("conditions:\n")
	for _, c := range simnode.HealthyConditions(metav1.Time{}) {
		fmt.Fprintf(&b, "- type: %q\n  status: %q\n  reason: %q\n  message: %q\n", c.Type, c.Status, c.Reason, c.Message)
		for _, field := range times {
			fmt.Fprintf(&b, "  %s: {{ Now | Quote }}\n", field)
		}
	}
	return b.String()
}
