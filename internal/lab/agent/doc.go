// Package agent runs inside the containers of our workloads: one small program with a role for each kind. It
// links nothing of Kubernetes, so that starting it costs milliseconds and a measurement finds the node. It is
// built before the main program, which carries it: the whole program would take 50 ms and tens of megabytes
// per container to do nothing.
package agent
