// Package ceiling says before any load how far a workload can be raised on a cluster, what will stop it
// there, and whether the cluster is fit to be loaded. It makes a table from facts. After a run it compares
// the prediction with the result.
//
// A ceiling that could not be read is unknown, never unlimited. Only hard ceilings bind: beyond a published
// limit nobody has tested, but nothing need fail. A ceiling's level is that of the last iteration that fits,
// with the rounding that levels have. Each ceiling has the words of its failure, to compare with a run's own
// reason. On an axis of arrivals the objects in place are the rate times a pod's life.
//
// A run stops before its load if the API server is not ready or cannot use its etcd, or if no node is ready.
// Everything else is a warning: a cluster in trouble may be what the user wants to measure.
package ceiling
