// Package virt does what the Kubernetes target does for virtual machines alone. They are
// called and logged in to, tell of the IO that they do, and are moved off nodes that a
// run drains.
//
// Machines are called from this machine or through the API server, never from a
// pod of the run: that needs an image that the cluster can pull, and a clock
// that agrees with ours. Calls through the API server are bounded here, since
// priority and fairness lets long-running requests pass. How late an answer may
// have been seen is measured: the time since the failed call before.
package virt
