// Package fold folds a run's events into measured steps. [Collector] hands each
// event to what collects facts of one thing: objects, readings, troubles,
// canaries, faults, histograms, streams. At the end of a step its figures follow
// from its [Facts], and so does the moment at which an objective could no longer
// hold. No goal is judged here.
//
// A step waits for its timeout from its last request on, and each object is
// measured from its own creation. A slowdown within a step is a change point of
// the times between objects, so no second level is needed to see it. A limit is
// used up only as far as it was in use while objects waited for it: each moment
// counts by how many waited.
//
// # Backlogs
//
// The slope of a backlog comes from the means of 20 batches, and must lie above 0
// in the first three quarters of the hold, too: a stall near the end has a slope
// as well. The backlog must also have grown by three arrivals: in a short hold one
// slow arrival has a slope.
//
// # Streams
//
// [Stream] folds windows of requests into the facts that objects give, so that
// objectives, search, comparison and fits are written once. A request that
// failed is infinitely late. The achieved rate of an open loop is what was due
// minus the growth of the backlog, since windows go by intended starts and do
// not say when answers came. A step that was cut decides nothing about a
// stream.
package fold
