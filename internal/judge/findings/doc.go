// Package findings tells what the judged steps of a run show together: the load line
// and what its confirmations mean, what broke first, known failures, how arms
// compare, published figures beside those of the run, predictions beside what was
// found, and what an object costs.
//
// A confirmation is a step made for it: the bracket's own step at the level does
// not count, since it chose the level. What bound a level follows from what its
// objects waited for, milestone by milestone, and from the CPU time of each
// process.
//
// # Laws
//
// A law is a straight cost per object that a test supports; see [LawsOf]. CPU time
// is fitted per second against objects per second, so that the line's height at 0
// is what a process uses without any.
package findings
