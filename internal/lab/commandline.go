package lab

import (
	"fmt"
	"strconv"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/plan/settings"
)

// serviceRange has room for a million services, since a test would soon fill the API server's default.
const (
	serviceRange        = "10.96.0.0/12"
	firstServiceAddress = "10.96.0.1"
	clusterDNSAddress   = "10.96.0.10" // a name server's, if a user brings one
)

// Requests per second of the controller manager and the scheduler, too many for a measurement to find.
const (
	controllerQPS   = 5000
	controllerBurst = 10000
)

// Leases show whether the scheduler and controller manager live. They have no rival: a slow store must not
// end them. Before a restart the lab deletes the lease, which the new process would otherwise wait for.
const (
	leaderLease    = time.Hour
	leaderDeadline = 50 * time.Minute
	leaderRenewal  = 2 * time.Second // as Kubernetes has it
)

// leaseRenewals bounds renewals per second of all nodes: the kubelet's pace would load a small machine.
const leaseRenewals = 4

// leaseDuration returns the kubelet's 40 s up to 40 nodes, then more: a node renews four times in that.
func leaseDuration(nodes int) time.Duration {
	return max(40*time.Second, time.Duration(4*nodes/leaseRenewals)*time.Second)
}

// nodeMonitorGrace returns how long a node may go without renewals, in Kubernetes' proportion.
func nodeMonitorGrace(nodes int) time.Duration { return leaseDuration(nodes) * 5 / 4 }

// arguments returns a component's command line. Files of the lab's directory in it identify the process.
func arguments(component string, dir directory, r record) []string {
	switch component {
	case protocol.Etcd:
		return etcdArguments(dir, r)
	case protocol.APIServer:
		return apiServerArguments(dir, r)
	case protocol.ControllerManager:
		return controllerManagerArguments(dir, r)
	case protocol.Scheduler:
		return schedulerArguments(dir, r)
	case protocol.SimulatedNodes:
		return simulatedNodesArguments(dir, r)
	case protocol.Virt:
		return virtArguments(dir, r)
	case protocol.RealNode:
		return []string{realnode.SpecFile(string(dir))}
	}
	panic("lab: no component " + component)
}

func etcdArguments(dir directory, r record) []string {
	client, peer := r.Ports.url(r.Ports.Etcd), r.Ports.url(r.Ports.EtcdPeer)
	return []string{
		"--data-dir=" + dir.path("etcd"),
		"--name=lab",
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=lab=" + peer,
		"--client-cert-auth",
		"--trusted-ca-file=" + dir.cert(etcdCA),
		"--cert-file=" + dir.cert(etcdServerCert),
		"--key-file=" + dir.key(etcdServerCert),
		"--peer-client-cert-auth",
		"--peer-trusted-ca-file=" + dir.cert(etcdCA),
		"--peer-cert-file=" + dir.cert(etcdServerCert),
		"--peer-key-file=" + dir.key(etcdServerCert),
		// A lab need not survive a power cut, and must not measure a developer's disk.
		"--unsafe-no-fsync",
		// Alone, a member loses no election; with the defaults it waits up to a second for one.
		"--heartbeat-interval=20",
		"--election-timeout=200",
		"--quota-backend-bytes=" + strconv.Itoa(8<<30),
		"--log-level=warn",
	}
}

func apiServerArguments(dir directory, r record) []string {
	// An endpoint cannot be a loopback address: the kubernetes Service gets none.
	reconciler := "none"
	if r.RealNode != nil {
		reconciler = "lease"
	}
	return []string{
		"--bind-address=" + r.apiServerAddress(),
		"--secure-port=" + strconv.Itoa(r.Ports.APIServer),
		"--kubelet-certificate-authority=" + dir.cert(clusterCA),
		"--kubelet-client-certificate=" + dir.cert(kubeletClient),
		"--kubelet-client-key=" + dir.key(kubeletClient),
		"--tls-cert-file=" + dir.cert(protocol.APIServer),
		"--tls-private-key-file=" + dir.key(protocol.APIServer),
		"--client-ca-file=" + dir.cert(clusterCA),
		"--etcd-servers=" + r.Ports.url(r.Ports.Etcd),
		"--etcd-cafile=" + dir.cert(etcdCA),
		"--etcd-certfile=" + dir.cert(etcdClientCert),
		"--etcd-keyfile=" + dir.key(etcdClientCert),
		"--requestheader-client-ca-file=" + dir.cert(frontProxyCA),
		"--requestheader-allowed-names=" + userFrontProxy,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + dir.cert(frontProxyClient),
		"--proxy-client-key-file=" + dir.key(frontProxyClient),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged",
		"--service-cluster-ip-range=" + serviceRange,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + dir.key(serviceAccounts),
		"--service-account-signing-key-file=" + dir.key(serviceAccounts),
		// With one worker, the default, removing a namespace of a few thousand pods takes minutes.
		"--delete-collection-workers=16",
		"--advertise-address=" + r.apiServerAddress(),
		"--endpoint-reconciler-type=" + reconciler,
		// A simulated node's internal name is localhost: it refuses a request for its logs at once.
		"--kubelet-preferred-address-types=InternalDNS,InternalIP,Hostname",
	}
}

func controllerManagerArguments(dir directory, r record) []string {
	kubeconfig := dir.componentConfig(protocol.ControllerManager)
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(r.Ports.ControllerManager),
		"--tls-cert-file=" + dir.cert(protocol.ControllerManager),
		"--tls-private-key-file=" + dir.key(protocol.ControllerManager),
		"--leader-elect",
		"--leader-elect-lease-duration=" + leaderLease.String(),
		"--leader-elect-renew-deadline=" + leaderDeadline.String(),
		"--leader-elect-retry-period=" + leaderRenewal.String(),
		"--use-service-account-credentials",
		"--root-ca-file=" + dir.cert(clusterCA),
		"--service-account-private-key-file=" + dir.key(serviceAccounts),
		"--cluster-signing-cert-file=" + dir.cert(clusterCA),
		"--cluster-signing-key-file=" + dir.key(clusterCA),
		// The controller manager makes this directory, by default a system directory.
		"--flex-volume-plugin-dir=" + dir.path("flexvolume"),
		fmt.Sprintf("--kube-api-qps=%d", controllerQPS),
		fmt.Sprintf("--kube-api-burst=%d", controllerBurst),
		"--concurrent-deployment-syncs=16",
		"--concurrent-replicaset-syncs=16",
		"--concurrent-statefulset-syncs=16",
		"--concurrent-daemonset-syncs=16",
		"--concurrent-job-syncs=16",
		"--concurrent-namespace-syncs=32",
		"--concurrent-gc-syncs=32",
		"--concurrent-service-endpoint-syncs=16",
		fmt.Sprintf("--node-monitor-grace-period=%s", nodeMonitorGrace(r.Nodes)),
	}
}

func schedulerArguments(dir directory, r record) []string {
	kubeconfig := dir.componentConfig(protocol.Scheduler)
	return []string{
		"--config=" + dir.schedulerConfig(),
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(r.Ports.Scheduler),
		"--tls-cert-file=" + dir.cert(protocol.Scheduler),
		"--tls-private-key-file=" + dir.key(protocol.Scheduler),
	}
}

func (d directory) schedulerConfig() string { return d.path("scheduler.yaml") }

// writeSchedulerConfig writes the limits of the scheduler's client, which it reads from a file only.
func writeSchedulerConfig(dir directory) error {
	return writeFile(dir.schedulerConfig(), fmt.Appendf(nil, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %q
  qps: %d
  burst: %d
leaderElection:
  leaderElect: true
  leaseDuration: %s
  renewDeadline: %s
  retryPeriod: %s
`, dir.componentConfig(protocol.Scheduler), controllerQPS, controllerBurst, leaderLease, leaderDeadline, leaderRenewal))
}

func simulatedNodesArguments(dir directory, r record) []string {
	arguments := []string{
		"--kubeconfig=" + dir.componentConfig(protocol.SimulatedNodes),
		"--nodes=" + strconv.Itoa(r.Nodes),
		"--max-pods=" + strconv.Itoa(r.MaxPods),
		"--start-latency=" + r.StartLatency.String(),
		"--lease-duration=" + leaseDuration(r.Nodes).String(),
		"--sign=" + dir.readyFile(protocol.SimulatedNodes),
	}
	if r.Ports.SimulatedNodes > 0 {
		arguments = append(arguments, "--port="+strconv.Itoa(r.Ports.SimulatedNodes), "--cert="+dir.cert(protocol.SimulatedNodes), "--key="+dir.key(protocol.SimulatedNodes))
	}
	return arguments
}

func virtArguments(dir directory, r record) []string {
	arguments := []string{
		"--kubeconfig=" + dir.componentConfig(protocol.Virt),
		"--figures=" + settings.List(r.Virt),
		"--time-scale=" + strconv.FormatFloat(r.TimeScale, 'g', -1, 64),
		"--nodes=" + strconv.Itoa(r.Nodes),
		"--api-port=" + strconv.Itoa(r.Ports.VirtAPI),
		"--guest-port=" + strconv.Itoa(r.Ports.Guests),
		"--cert=" + dir.cert(protocol.Virt), "--key=" + dir.key(protocol.Virt), "--ca=" + dir.cert(clusterCA), "--front-proxy-ca=" + dir.cert(frontProxyCA),
		"--sign=" + dir.readyFile(protocol.Virt),
	}
	if n := r.RealGuests; n > 0 {
		arguments = append(arguments, "--real-guests="+strconv.Itoa(n), "--qemu="+r.QEMU, "--guest-image="+r.GuestImage, "--guest-dir="+dir.path("guests"))
	}
	return arguments
}
