// Package findings tells what the judged steps of a run show together: the load line
// and what its confirmations mean, what broke first, known failures, how arms
// compare, published figures beside those of the run, predictions beside what was
// found, and laws along an axis.
//
// A confirmation is a step made for it: the bracket's own step at the level does
// not count, since it chose the level. What bound a level follows from what its
// objects waited for, milestone by milestone, and from the CPU time of each
// process.
//
// # Laws
//
// Laws along an axis are few claims that hold up; see [LawsOf] and package stats.
// CPU time is fitted per second against objects per second, so that the line's
// height at 0 is what a process uses without any. A peak of throughput is one
// that was measured. A knee is named only beside the other curves of the run,
// since each further curve is a further test.
package findings
