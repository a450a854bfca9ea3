// Package lab answers one need: a Kubernetes cluster of one's own on this
// machine. A lab is a real etcd, API server, controller manager and scheduler,
// each a process of this same program, and simulated nodes in a process of
// their own. It listens on the loopback interface only, keeps all of its files
// in one directory, and goes away without a trace.
//
// A named lab outlives the command that made it. A private one belongs to the
// process that made it and dies with it, even by SIGKILL.
//
// With a real node the API server listens on a link of two addresses between
// the machine and the node instead of the loopback. The programs of the control
// plane are in package component, apart from this one, so that a test of
// anything else does not link them.
package lab
