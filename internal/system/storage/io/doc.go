// Package io loads volumes, or any file systems, with IO: one fio for each
// volume.
//
// What fio waits for a processor is read from the kernel's schedstat every 20
// ms and divided among the IOs of that time: a mean over the hold hides the few
// long waits that make a p99. A trace of the scheduler would say which waits
// lie within latencies, but takes rights that are not to be had everywhere.
package io
