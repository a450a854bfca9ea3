// Package verdict judges a measured step by the goals: whether each held, and if not, what broke, when, at which
// load and under which conditions.
//
// The verdict on a step is that of the headline goal; the result has the others beside it. What broke first is
// decided by the moment at which an objective could no longer hold (the first missed deadline, or the one too many),
// not by the end of the step. Troubles that were only seen stand beside it and decide nothing. Those that the first
// step, which held, saw about as often are called usual.
//
// A growing backlog is a breach of a scheduled step by itself, because a p99 over a hold of a minute does not show
// where a rate above the capacity leads.
//
// # Own delay
//
// This program asks every 10 ms to be woken, and records when it was. A step of objects by a schedule is invalid if
// more than 1% of the wakes, and at least three, came more than 10 ms late; any other step if more than 10% did,
// because there only the reading of news is delayed. The generator of a scheduled stream records how late it sent
// each request. That voids only the figures that it shifts: a quantile is compared with the same quantile of the
// delay, which may be a tenth of it and OwnDelayBound at most, and a mean with the mean. Below p95 many late
// requests shift a quantile although their own quantile shows little; there, the delay added once more may shift it
// by a tenth. Other figures, such as the CPU time of a request, only need the load of the level.
package verdict
