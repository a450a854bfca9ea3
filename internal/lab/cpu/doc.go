// Package cpu decides who gets this machine's processors first when a lab's
// control plane, the load generator and the observer share them: the program
// that measures, since a generator that is late is late for the target too, and
// news that is read late looks like latency.
//
// The split is by priority, not by sets: two processors are too few to give one
// away, and the part of a control plane that needs more is what is to be found
// out. As root the program runs at real-time priority while it loads by a
// schedule, else at a lower nice value or in short slices: real-time reading
// costs a third more CPU time, since news is then read piece by piece.
package cpu
