// Package io loads volumes, or any file systems, with IO: one fio for each volume.
//
// The kernel's schedstat shows every 20 ms how long fio waits for a processor. The waits are divided
// among the IOs of that time: a mean over the hold would hide the few long waits that make a p99. A trace
// of the scheduler would show which waits belong to latencies, but needs rights that are not available
// everywhere.
package io
