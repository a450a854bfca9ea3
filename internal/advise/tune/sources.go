package tune

// Source is where a rule stands.
type Source struct {
	// ID is the row of a source document, such as V12, or the short name of an
	// official page, such as ceph-pgcalc.
	ID      string `json:"id"`
	Title   string `json:"title"`             // the document or page
	Address string `json:"address,omitempty"` // of an official page
	Says    string `json:"says,omitempty"`    // the rule in short
}

// documents are the titles of the source documents, by the letter of their rows.
func documents() map[byte]string {
	return map[byte]string{
		'R': "Scaling OpenShift Origin HAProxy Router, and network subnets",
		'D': "Running 2500 pods per node on OpenShift 4.13",
		'V': "OpenShift Virtualization with Red Hat Ceph Storage 5: large-scale tuning and performance",
	}
}

// sourceOf finds a source by its id. A source that is not in the table is a
// mistake of this package, which a test finds.
func sourceOf(id string) Source {
	if says, ok := rows()[id]; ok {
		return Source{ID: id, Title: documents()[id[0]], Says: says}
	}
	for _, p := range pages() {
		if p.ID == id {
			return p
		}
	}
	return Source{ID: id, Title: "unknown source " + id}
}

// rows are the rules of the source documents that the calculators hold, in
// short. The letter is the document's: R router and network, D pod density, V
// virtual machines.
func rows() map[string]string {
	return map[string]string{
		"R1":  "7,000 to 32,000 requests/s for one HAProxy on 4 vCPU and 16 GB",
		"R2":  "requests/s by encryption at pages of 1 kB and 4 kB, 100 routes, keep-alive",
		"R3":  "one HAProxy saturates 1 Gbit/s at pages as small as 8 kB",
		"R4":  "bare metal is about twice as fast",
		"R5":  "5 to 10 static or caching applications behind one router, 100 to 1000 dynamic ones",
		"R6":  "shard routers to serve more routes",
		"R7":  "maxconn is the key tunable: ROUTER_MAX_CONNECTIONS",
		"R8":  "fewer, faster cores beat many slow ones",
		"R9":  "HAProxy on one core and the NIC's interrupts on another of the same NUMA node",
		"R10": "pin by taskset or by cpu-map 1 0 in the global section",
		"R11": "tune.bufsize caps the header size; memory grows with it at very many connections",
		"R12": "overlay networks: jumbo frames, offloads, multi-queue, ethtool",
		"R13": "VXLAN raises 4096 networks to 2^24 and costs CPU, throughput and latency",
		"R14": "above 1 Gbit/s: native routing, BGP, or NICs that offload VXLAN",
		"R15": "1024 nodes with a /23 each, 65,536 services",
		"R16": "osm_cluster_network_cidr=10.128.0.0/10 gives 8192 nodes with 510 addresses each",
		"R17": "IPsec costs CPU and the NIC's offloads",
		"D3":  "above 500 pods per node: hostPrefix at installation, maxPods afterwards",
		"D4":  "iterations = (nodes x podsPerNode - pods already there) / pods of an iteration",
		"D5":  "raise until failure, subtract what failed, confirm",
		"D8":  "many Pending pods make every kubelet busy",
		"D14": "2500 pods per node needed no API QPS tuning; measure node components and reserve for them",
		"D15": "node-density, node-density-cni, node-density-heavy: in this order",
		"D16": "one namespace fails above 5000 services",
		"D18": "start at 150 pods per node",
		"V2":  "30 virtual machines and 214 pods per node",
		"V3":  "ARP flux: arp_filter, arp_ignore, arp_announce",
		"V4":  "ARP cache: gc_thresh1, 2, 3",
		"V5":  "tcp_window_scaling = 1",
		"V6":  "socket buffers hold at least 2, by default 4, at most 10 packets",
		"V7":  "socket buffers by latency: 10905190 bytes at 0.208 ms and 50 Gbit/s",
		"V8":  "wmem_default is 4 of 10 packets",
		"V9":  "socket buffers by packet size: 512 KB packets",
		"V10": "netdev_budget 1000 where time_squeeze grows",
		"V11": "netdev_max_backlog 5000 where dropped grows",
		"V12": "placement groups = 2^round(log2(target x OSDs x fill / replicas))",
		"V13": "pg_num with the autoscaler off",
		"V14": "mgr/prometheus: rbd_stats_pools, refresh 600, scrape 60",
		"V15": "maxPods 500, kubeAPIBurst 200, kubeAPIQPS 100",
		"V16": "nodeStatusMaxImages -1 for an even spread; a KubeletConfig reboots nodes",
		"V17": "the pool carries the label that the KubeletConfig selects",
		"V23": "clone in bulks of 100; above 10 in parallel there is a penalty",
		"V24": "past 250 clones images are flattened",
		"V25": "over 100 CSI clones may not be purged: cloneStrategy copy",
		"V26": "boot storm: 100 VMs in 01:42, 1000 in 17:45",
		"V27": "one IO thread for each VM, or one for each disk with dedicatedIOThread",
		"V30": "data set: 300 directories x 8 files x 20 MiB",
		"V31": "three zones, a pool for each, maxUnavailable 10",
		"V32": "each pool selects its own zone",
		"V33": "an empty MachineConfig drains and reboots a zone",
		"V34": "live migration: 20 per cluster, 4 per node, 800 s per GiB, 150 s without progress",
		"V35": "one virt-api pod for every 750 VMs",
		"V29": "writes up to 88 % slower under load, a third of it less for each copy fewer",
		"V36": "times of migrations from phase transitions",
		"V37": "average migration times: RHEL 14 s, Fedora 23 s, Windows 12 s",
		"V38": "1000 VMs and 7000 pods in 118 min, and 35 min of waiting for Ready",
		"V41": "past certain sizes or churn, several clusters",
	}
}

// pages are the official pages that the calculators follow.
func pages() []Source {
	return []Source{
		{"openshift-cidr", "OpenShift: CIDR range definitions", "https://docs.openshift.com/container-platform/4.14/networking/cidr-range-definitions.html", "10.128.0.0/14, hostPrefix 23 (512 nodes), 172.30.0.0/16, and the ranges that OVN-Kubernetes uses itself"},
		{"k8s-nodeipam", "Kubernetes 1.36: kube-controller-manager's node subnets", "https://github.com/kubernetes/kubernetes/blob/v1.36.0/pkg/controller/nodeipam/ipam/cidrset/cidr_set.go", "--node-cidr-mask-size 24 for IPv4 and 64 for IPv6; an IPv6 range is at most 16 bits wider than the nodes'"},
		{"k8s-services", "Kubernetes 1.36: ranges of services", "https://kubernetes.io/docs/reference/networking/virtual-ips/#ip-address-objects", "at most 2^20 addresses by the API server's flag; the first, and in IPv4 the last, are not given out; ServiceCIDR objects add ranges since 1.33"},
		{"kubelet-config", "Kubernetes 1.36: kubelet configuration", "https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/", "maxPods 110, kubeAPIQPS 50, kubeAPIBurst 100, nodeStatusMaxImages 50, podPidsLimit -1 by default"},
		{"openshift-kubeletconfig", "OpenShift: KubeletConfig", "https://github.com/openshift/openshift-docs/pull/118856", "one for each pool with all its settings: several for one pool are not merged, the one made last counts"},
		{"openshift-pids", "OpenShift: PID limits", "https://docs.openshift.com/rosa/rosa_cluster_admin/rosa-configuring-pid-limits.html", "podPidsLimit 4096 since 4.11, 1024 before; at most 4,194,304 PIDs on a node"},
		{"openshift-reserved", "OpenShift: allocating resources for nodes", "https://docs.okd.io/4.9/nodes/nodes/nodes-nodes-resources-configuring.html", "kube-reserved is not used: add it to system-reserved"},
		{"openshift-sizing", "OpenShift: automatic sizing of what is reserved", "https://github.com/harche/openshift-node-sizing", "memory by tiers of 25, 20, 10, 6 and 2 %; CPU 0.06 and 0.012 for each further core, at least 0.5"},
		{"openshift-500", "OpenShift 4.9: tested cluster maximums", "https://docs.redhat.com/en/documentation/openshift_container_platform/4.9/html/scalability_and_performance/planning-your-environment-according-to-object-maximums", "500 pods per node with hostPrefix 22, maxPods 250 by default; 2,000 nodes, 150,000 pods, 10,000 services, 5,000 in a namespace, 2,000 routes per router"},
		{"openshift-2500", "OpenShift: tested cluster maximums since 4.13", "https://docs.openshift.com/container-platform/4.14/scalability_and_performance/planning-your-environment-according-to-object-maximums.html", "2,500 pods per node with hostPrefix 20 and maxPods 2500, on 26 nodes"},
		{"kubevirt-api", "KubeVirt 0.53: virt-api's replicas follow the number of nodes", "https://github.com/kubevirt/kubevirt/pull/7401", "one for every 10 nodes, two at least, one on a single node"},
		{"kubevirt-migration", "KubeVirt: live migration limits by version", "https://github.com/kubevirt/kubevirt/pull/12848", "5 per cluster, 2 per node, 150 s without progress; 800 s per GiB until 1.3, 150 since 1.4; 64Mi a second until 0.43, unlimited since 0.44"},
		{"hco-migration", "HyperConverged operator: changed migration defaults", "https://github.com/kubevirt/hyperconverged-cluster-operator/pull/4426", "completionTimeoutPerGiB 20 instead of 150, parallelOutboundMigrationsPerNode 1 instead of 2, for new installations and upgrades"},
		{"csi-provisioner", "Kubernetes CSI: external-provisioner", "https://github.com/kubernetes-csi/external-provisioner", "--worker-threads 100, --timeout 10s, --retry-interval-start 1s doubling to --retry-interval-max 5m by default"},
		{"haproxy", "HAProxy 2.6: configuration manual", "https://docs.haproxy.org/2.6/configuration.html", "tune.bufsize 16384 and tune.maxrewrite 1024 by default, a request larger than their difference is refused; cpu-map counts processes and threads from 1; open files as 2.6 asks for them when it starts"},
		{"openshift-ingress", "OpenShift: IngressController tuningOptions", "https://github.com/openshift/api/blob/master/operator/v1/types_ingress.go", "maxConnections 50000 by default, 2000 to 2000000; threadCount 4, at most 64; headerBufferBytes 32768, at least 16384; headerBufferMaxRewriteBytes 8192"},
		{"openshift-mtu", "OpenShift: MTU of the cluster network", "https://access.redhat.com/documentation/ja-jp/openshift_container_platform/4.5/html/installing_on_gcp/nw-operator-configuration-parameters-for-ovn-sdn_installing-gcp-network-customizations", "100 bytes less than the nodes' MTU for Geneve; 46 more for IPsec's ESP header (github.com/openshift/openshift-docs/pull/85581)"},
		{"ethtool", "ethtool(8)", "https://man7.org/linux/man-pages/man8/ethtool.8.html", "-k shows offloads, -K sets them, -L sets the number of queues"},
		{"kernel-ip", "Linux: IP sysctls", "https://docs.kernel.org/networking/ip-sysctl.html", "gc_thresh1 is kept, above gc_thresh2 entries older than 5 s go, gc_thresh3 is the most; arp_filter, arp_ignore, arp_announce; tcp_rmem and tcp_wmem override net.core's defaults"},
		{"kernel-net", "Linux: /proc/sys/net", "https://docs.kernel.org/admin-guide/sysctl/net.html", "netdev_budget, netdev_budget_usecs, netdev_max_backlog, rmem_max, wmem_max"},
		{"kernel-conntrack", "Linux: netfilter conntrack sysctls", "https://docs.kernel.org/networking/nf_conntrack-sysctl.html", "nf_conntrack_max is the table's size, by default its number of buckets"},
		{"kernel-fs", "Linux: /proc/sys/fs", "https://docs.kernel.org/admin-guide/sysctl/fs.html", "file-max, file-nr, nr_open"},
		{"openshift-tuned", "OpenShift's tuned profile", "https://github.com/redhat-performance/tuned/blob/master/profiles/openshift/tuned.conf", "gc_thresh 8192, 32768, 65536; arp_announce 2; nf_conntrack_max 1048576; pid_max at least 4194304"},
		{"openshift-inotify", "OpenShift's inotify settings", "https://github.com/openshift/machine-config-operator/blob/master/templates/common/_base/files/sysctl-inotify.conf.yaml", "max_user_instances 8192, max_user_watches 65536"},
		{"openshift-machineconfig", "OpenShift: MachineConfig", "https://docs.openshift.com/container-platform/4.14/post_installation_configuration/machine-configuration-tasks.html", "Ignition version 3; files with path, mode, overwrite and contents.source"},
		{"ceph-pgcalc", "Ceph: PG Calc", "https://docs.ceph.com/en/squid/rados/operations/pgcalc/", "target x OSDs x share / size, at least OSDs / size, nearest power of two, the next one where that is more than 25 % below"},
		{"ceph-pg", "Ceph: Placement Groups", "https://docs.ceph.com/en/nautilus/rados/operations/placement-groups/", "ceph osd pool set POOL pg_autoscale_mode off|on|warn"},
		{"ceph-target", "Red Hat Ceph Storage 8: Setting placement group auto-scaling", "https://docs.redhat.com/en/documentation/red_hat_ceph_storage/8/html/storage_strategies_guide/setting-placement-group-auto-scaling", "mon_target_pg_per_osd is 100 by default"},
		{"ceph-max", "Ceph: mon_max_pg_per_osd", "https://github.com/ceph/ceph/pull/23251", "250 by default since Nautilus: beyond it pools are refused"},
		{"ceph-csi", "Ceph CSI: command line of the RBD driver", "https://github.com/ceph/ceph-csi/blob/devel/cmd/cephcsi.go", "--minsnapshotsonimage 250, --maxsnapshotsonimage 450"},
		{"ceph-prometheus", "Ceph: Prometheus Module", "https://docs.ceph.com/en/squid/mgr/prometheus/", "scrape_interval 15, rbd_stats_pools_refresh_interval 300; it must match Prometheus' own interval, and the module must be restarted"},
	}
}
