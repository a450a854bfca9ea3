// Package metrics keeps the metrics that programs publish while a run is made,
// and answers questions about them afterwards, in PromQL.
//
// A [Scraper] reads endpoints at an interval and appends what they tell to a
// write-ahead log in the run directory as it comes. [Build] makes blocks of the log
// and of the record's own figures. Both are as Prometheus keeps them: it opens the
// blocks itself. A [Store] reads the blocks, and a [Store.Query] asks.
//
// Of Prometheus only the packages are used that need no more of it: its database,
// its scraper and its remote storage bring the kits of three clouds along.
package metrics
