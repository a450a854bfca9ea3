// Package simnode plays the kubelets of a lab's simulated nodes: it makes the Node objects, and takes every pod
// that is bound to one of them through the conditions, events and deletion that a kubelet would. No container
// runs. A simulated node does not enforce its pods' address range, probes (they succeed at once) or the limits
// of a real machine.
package simnode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/version"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
)

// KwokAnnotation with KwokAnnotationValue marks a node for KWOK.
const (
	KwokAnnotation      = "kwok.x-k8s.io/node"
	KwokAnnotationValue = "fake"
)

// NodeName returns the name of the i-th simulated node, from 0.
func NodeName(i int) string { return fmt.Sprintf("node-%04d", i) }

// nodeAddress returns an address in the range that is reserved for benchmarks, which leads to no machine.
func nodeAddress(i int) string {
	const first = 198<<24 | 18<<16
	return addressFrom(first + 1 + uint32(i))
}

func addressFrom(v uint32) string {
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}).String()
}

// newNode includes the status: a node that is created with it is ready after one request.
func newNode(i, maxPods, port int, now metav1.Time) *corev1.Node {
	name := NodeName(i)
	resources := corev1.ResourceList{
		corev1.ResourcePods:             *resource.NewQuantity(int64(maxPods), resource.DecimalSI),
		corev1.ResourceCPU:              *resource.NewQuantity(32, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(256<<30, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(1<<40, resource.BinarySI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelArchStable: "amd64",
				corev1.LabelOSStable:   "linux",
				"type":                 "kwok",
				protocol.WorkerLabel:   "",
				protocol.FidelityLabel: protocol.FidelitySimulated,
			},
			Annotations: map[string]string{KwokAnnotation: KwokAnnotationValue},
		},
		Status: corev1.NodeStatus{
			Capacity: resources, Allocatable: resources,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: nodeAddress(i)},
				// The control plane reaches a simulated node on this machine, where Refuse answers.
				{Type: corev1.NodeInternalDNS, Address: "localhost"},
				{Type: corev1.NodeHostName, Address: name},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(max(port, 1))}},
			NodeInfo: corev1.NodeSystemInfo{
				Architecture: "amd64", OperatingSystem: "linux", OSImage: "simulated", KernelVersion: "simulated",
				ContainerRuntimeVersion: "simulated://1", KubeletVersion: version.Get().GitVersion,
			},
			Conditions: HealthyConditions(now),
		},
	}
}

// HealthyConditions returns the conditions of a simulated node.
func HealthyConditions(now metav1.Time) []corev1.NodeCondition {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "simulated node has memory left"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "simulated node has disk space left"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "simulated node has process numbers left"),
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "simulated node takes pods"),
	}
}

const createsInFlight = 16 // keeps an API server on a small machine busy without queues

// CreateNodes makes the nodes 0 to n-1 unless they exist, served at a port of this machine, 0 for none.
func CreateNodes(ctx context.Context, client kubernetes.Interface, n, maxPods, port int, now metav1.Time) error {
	group, going := errgroup.WithContext(ctx)
	group.SetLimit(createsInFlight)
	for i := 0; i < n && going.Err() == nil; i++ {
		group.Go(func() error {
			_, err := client.CoreV1().Nodes().Create(going, newNode(i, maxPods, port, now), metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("create node %s: %w", NodeName(i), err)
			}
			return nil
		})
	}
	err := group.Wait()
	if err == nil && ctx.Err() != nil {
		err = errors.Join(errors.New("create nodes"), ctx.Err())
	}
	return err
}

// Refuse answers the API server for the kubelets of all simulated nodes, which have nothing to read or run.
func Refuse(ctx context.Context, port int, certificate, key string) error {
	server := &http.Server{
		Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Handler: http.HandlerFunc(answerFor),
		ReadHeaderTimeout: 10 * time.Second,
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.ListenAndServeTLS(certificate, key); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answer for the simulated nodes at %s: %w", server.Addr, err)
	}
	return nil
}

// answerFor answers one request, such as /containerLogs/NAMESPACE/POD/CONTAINER.
func answerFor(w http.ResponseWriter, r *http.Request) {
	what, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	of := "this node"
	if parts := strings.Split(rest, "/"); len(parts) >= 2 && parts[1] != "" {
		of = "pod " + parts[0] + "/" + parts[1]
	}
	why := map[string]string{
		"containerLogs": "no container runs, and nothing is logged",
		"exec":          "no container runs in which a command could run",
		"attach":        "no container runs that could be attached to",
		"portForward":   "no container runs that could listen on a port",
	}[what]
	why = cmp.Or(why, "there is no kubelet, and no container runs")
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, of+" is simulated: "+why+". A lab with --real-node runs containers.")
}
