// Package ceiling answers, before any load: how far can a workload be raised on
// a cluster at most, what will stop it there, and is the cluster fit to be
// loaded at all? Facts go in, a table comes out. After a run it says what came
// of the prediction.
//
// A ceiling that could not be read is unknown, never unlimited. Only hard
// ceilings bind: a published limit is one that nobody has tested beyond, not
// one that fails. The level that a ceiling allows is found by looking for the
// last iteration that fits, with the rounding that levels have. Each carries
// the words of its failure, by which a run's own reason is recognised. On an
// axis of arrivals the objects in place are the rate times a pod's life.
//
// What stops a run before its load is an API server that is not ready, or
// cannot use its etcd, and a cluster without a node that is ready. A result
// would then show nothing. Everything else is a warning, since a cluster in
// trouble may be what is to be measured.
package ceiling
