// Package judge turns what was recorded into a Result: what was reached at each
// level and by whom, whether each goal held, where the load line lies and what
// bound it. It works from events alone, during a run and long after it.
//
// # Parts
//
// Collectors fold the events of a step into facts, each collector facts of one
// thing: objects, readings, troubles, canaries, faults, histograms. [Builder]
// hands events to them. The verdict on a step is a function of its facts and of
// the [Spec]. What is found over a run is a function of its judged steps.
// During a run the same Builder follows the record as it is written, so that
// the search sees what an analysis of the record finds later.
//
// # Verdicts
//
// The verdict on a step is that of the headline goal; the result has the others
// beside it. A step waits for its timeout from its last request on, and each
// object is judged from its own creation. A confirmation is a step made for it:
// the bracket's own step at the level does not count, since it chose the level.
//
// What broke first is decided by the moment at which an objective could no
// longer hold (the first deadline that was missed, or the one too many), not by
// the end of the step. Troubles that were merely seen stand beside it and
// decide nothing. What the first step, which held, saw about as often is called
// usual.
//
// A step by a schedule whose backlog grows is a breach by itself, since a p99
// over a hold of a minute does not show what a rate above the capacity leads
// to. The slope comes from the means of 20 batches, and must lie above 0 in the
// first three quarters of the hold, too: a stall near the end has a slope as
// well. The backlog must also have grown by three arrivals: in a short hold one
// slow arrival has a slope.
//
// This program asks every 10 ms to be woken, and records when it was. A step by
// a schedule is invalid if more than 1 % of these, and at least three, came
// more than 10 ms late; any other step if more than 10 % did, since there only
// the reading of news is delayed. For a stream the delay at p99 may be a tenth
// of the quantile that is judged. Where arms are compared by a lower quantile,
// that quantile is held against the same one of the delay, p95 at least: a
// delay of one IO in a hundred does not shift a p50.
//
// # Findings
//
// What bound a level follows from what its objects waited for, milestone by
// milestone, and from the CPU time of each process. A limit is named only if it
// was in use while objects waited for it; each moment counts by how many
// waited. A slowdown within a step is a change point of the times between
// objects, so no second level is needed to see it.
//
// Laws along an axis are few claims that hold up; see [Laws] and package stats.
// CPU time is fitted per second against objects per second, so that the line's
// height at 0 is what a process uses without any. A peak of throughput is one
// that was measured. A knee is named only beside the other curves of the run,
// since each further curve is a further test.
//
// [Stream] folds windows of requests into the facts that objects give, so that
// objectives, search, comparison and fits are written once. A request that
// failed is infinitely late. The achieved rate of an open loop is what was due
// minus the growth of the backlog, since windows go by intended starts and do
// not say when answers came. A step that was cut decides nothing about a
// stream.
package judge
