// Package virt adds virtual machines to the Kubernetes target: it calls them, logs in to read their
// IO, and drains the nodes that they are on.
//
// Machines are called from this machine or through the API server, never from a pod of the run:
// that would need an image that the cluster can pull, and a clock that agrees with ours. Calls through
// the API server are bounded here, since priority and fairness does not bound long-running requests.
// The time since the previous failed call shows how late an answer may have been seen.
package virt
