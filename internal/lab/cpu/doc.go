// Package cpu lets the measuring program go first where a lab's control plane, the load generator and
// the observer share this machine's processors: a late generator is late for the target too, and news
// that is read late looks like latency.
//
// It splits by priority, not by sets: two processors are too few to give one away, and a run is to find
// which part of a control plane needs more. As root the program runs at real-time priority while it
// loads by a schedule, else at a lower nice value or in short slices: real-time reading costs a third
// more CPU time, because news is then read piece by piece.
package cpu
