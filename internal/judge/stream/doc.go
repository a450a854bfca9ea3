// Package stream folds the windows of a step whose load is a stream of requests:
// distributions by milestone, what stood still, and whether the backlog grows.
//
// # Backlogs
//
// The slope of a backlog comes from the means of 20 batches, and must lie above 0
// in the first three quarters of the hold, too: a stall near the end has a slope
// as well. The backlog must also have grown by three arrivals: in a short hold one
// slow arrival has a slope.
//
// # What is judged
//
// [Stream] folds windows of requests into the facts that objects give, so that
// objectives, search, comparison and fits are written once. A request that
// failed is infinitely late. The achieved rate of an open loop is what was due
// minus the growth of the backlog, since windows go by intended starts and do
// not say when answers came. A step that was cut decides nothing about a
// stream.
package stream
