// Package ceiling says before any load how far a workload can be raised on a cluster, what will stop it
// there, and whether the cluster is fit to be loaded. It makes a table from facts. After a run it compares
// the prediction with the result.
//
// A ceiling that could not be read is unknown, never unlimited. Only hard ceilings bind: nobody has tested
// beyond a published limit, but it need not fail there. A ceiling's level is that of the last iteration that
// fits, with the rounding that levels have. Each ceiling has the words of its failure, which a run's own
// reason is compared with. On an axis of arrivals the objects in place are the rate times a pod's life.
//
// A run stops before its load if the API server is not ready or cannot use its etcd, or if no node is ready:
// its result would show nothing. Everything else is a warning, because a cluster in trouble may be what is to
// be measured.
package ceiling
