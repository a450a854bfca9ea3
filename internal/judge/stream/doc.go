// Package stream folds the windows of a step with a stream of requests: distributions by milestone, stalls, and
// whether the backlog grows.
//
// # Backlogs
//
// The slope of a backlog comes from the means of 20 batches. Before a stall, which rises once, the slope must lie
// above the tolerated one as well. The backlog must also have grown by three arrivals: in a short hold one slow
// arrival has a slope.
//
// # Facts
//
// [Stream] folds windows of requests into the same facts as objects, so that objectives, search, comparison and fits
// are written once. A failed request is infinitely late. The achieved rate counts the answers in the hold, whenever
// their requests were due. A step that was cut decides nothing about a stream.
package stream
