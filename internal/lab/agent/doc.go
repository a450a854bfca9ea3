// Package agent is what runs inside of the containers of our workloads: one
// small program with a role for each kind. It links nothing of Kubernetes, so
// that starting it costs milliseconds and what is measured is the node. It is
// built before the main program and carried in it: a container that started a
// whole control plane's program would take 50 ms and tens of megabytes to do
// nothing.
package agent
