// Package metrics keeps the metrics that programs publish during a run, and answers questions about them
// afterwards, in PromQL.
//
// A [Scraper] reads endpoints at an interval and appends their metrics to a write-ahead log in the run
// directory. [Build] makes blocks of the log and of the record's own figures. Both have Prometheus'
// formats: it opens the blocks itself. A [Store] reads the blocks, and an [Engine] queries them.
//
// Of Prometheus only the packages are used that need no more of it: its database, its scraper and its
// remote storage bring the kits of three clouds along.
package metrics
