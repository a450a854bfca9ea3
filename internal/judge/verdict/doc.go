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
// This program asks every 10 ms to be woken, and records when it was. A step of
// objects by a schedule is invalid if more than 1 % of these, and at least three,
// came more than 10 ms late; any other step if more than 10 % did, since there only
// the reading of news is delayed. Of a stream by a schedule the generator records how
// late it sent each request. That voids what it touches and no more: a quantile is
// held against the same quantile of the delay, which may be a tenth of it and
// OwnDelayBound at most, and a mean against the mean. Below p95 many late requests
// shift a quantile of which their own quantile says nothing; there, the delay added
// once more may shift it by a tenth. What is no latency, such as the CPU time of a
// request, needs only that the load was the one that the level names.
package verdict
