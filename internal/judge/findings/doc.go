// Package findings says what the judged steps of a run show together: the load line and the meaning of its
// confirmations, what broke first, known failures, how arms compare, published figures and predictions beside those
// of the run, and the cost of an object.
//
// A confirmation is a step made for it: the bracket's own step at the level does not count, because it chose the
// level. What bound a level follows from the waits of its objects, milestone by milestone, and from the CPU time of
// each process.
//
// # Laws
//
// A law is a straight cost per object that a test supports; see [LawsOf]. CPU time is fitted per second against
// objects per second, so that the line's height at 0 is the use of a process without any.
package findings
