// Package fold folds a run's events into measured steps. [Collector] hands each event to what collects
// facts of one thing: objects, readings, troubles, canaries, faults, histograms. At the end of a step its
// figures follow from its [Facts], and so does the moment at which an objective could no longer hold. No
// goal is judged here.
//
// A step waits for its timeout from its last request on, and each object is measured from its own
// creation. A slowdown within a step is a change point of the times between objects, so no second level
// is needed to see it. A limit is used up only as far as it was in use while objects waited for it: each
// moment counts by how many waited.
package fold
