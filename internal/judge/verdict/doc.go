// Package verdict judges a measured step by the goals: whether each held, and if not,
// what broke, when, at which load and under which conditions.
//
// The verdict on a step is that of the headline goal; the result has the others
// beside it. What broke first is decided by the moment at which an objective could
// no longer hold (the first deadline that was missed, or the one too many), not by
// the end of the step. Troubles that were merely seen stand beside it and decide
// nothing. What the first step, which held, saw about as often is called usual.
//
// A step by a schedule whose backlog grows is a breach by itself, since a p99
// over a hold of a minute does not show what a rate above the capacity leads
// to.
//
// # Own delay
//
// This program asks every 10 ms to be woken, and records when it was. A step by
// a schedule is invalid if more than 1 % of these, and at least three, came
// more than 10 ms late; any other step if more than 10 % did, since there only
// the reading of news is delayed. For a stream the delay at p99 may be a tenth
// of the quantile that is judged. Where arms are compared by a lower quantile,
// that quantile is held against the same one of the delay, p95 at least: a
// delay of one IO in a hundred does not shift a p50.
package verdict
