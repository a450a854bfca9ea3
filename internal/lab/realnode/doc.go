// Package realnode makes a node of this machine: a kubelet, containerd and kube-proxy that run real
// containers for a lab.
//
// The node is a machine within the machine. A process of ours (Run) is the first in the node's own
// namespaces for processes, mounts and the network, and starts all others. So the system's containerd, its
// directories, interfaces and packet filter are never touched, and when that process ends, in any way, the
// kernel removes every process, mount, interface and rule of the node. Only empty control groups and files
// remain. The groups' names follow from the lab's directory, so that the next command finds them.
//
// The node sees less than the machine has. Files with the values that the kubelet wants cover settings of
// the kernel, which belong to the whole machine. A node with some of the processors sees only these. A
// hybrid system hides the hierarchy of version 2, because crun refuses one. Service traffic is masqueraded,
// because answers between pods of one bridge would not come back through the node.
//
// [Meter] reads from control groups what the node uses. It reads memory again only for pods that have run
// since, at most 100 of them per reading: a reading of 150 pods takes 10 ms, once a second.
package realnode
