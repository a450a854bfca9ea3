// Package lab makes a Kubernetes cluster of one's own on this machine: a real etcd, API server,
// controller manager and scheduler, each a process of this same program, and simulated nodes in a
// process of their own. A lab listens on the loopback interface only, keeps its files in one
// directory, and goes away without a trace.
//
// A named lab outlives the command that made it. A private one dies with the process that made it,
// even by SIGKILL.
//
// With a real node the API server listens on a link between the machine and the node instead of the loopback.
// Package component holds the programs of the control plane, so that other tests do not link them.
package lab
