// Package realnode makes a node of this machine: a kubelet, containerd and
// kube-proxy that run real containers for a lab.
//
// The node is a machine within the machine. One process of ours is its first
// (Run), in namespaces of its own for processes, mounts and the network, and
// starts all others. So the system's containerd, its directories, interfaces
// and packet filter are never touched, and when that process ends, however it
// ends, the kernel takes with it every process, mount, interface and rule of
// the node. Only empty control groups and files are left to be removed; the
// groups' names follow from the lab's directory, so that the next command finds
// them.
//
// The node is shown less than the machine has. Files with the values that the
// kubelet wants lie over settings of the kernel, which are the whole machine's.
// A node that gets some of the processors is shown those alone. The hierarchy
// of version 2 is hidden on a hybrid system, since crun refuses one. Service
// traffic is masqueraded, since answers between pods of one bridge would not
// come back through the node.
//
// [Meter] reads what the node uses from its control groups. Memory is read
// again only for pods that have run since, and for at most 100 in one reading:
// a reading of 150 pods takes 10 ms, once a second.
package realnode
