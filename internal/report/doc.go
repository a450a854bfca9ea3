// Package report turns a Result into what people read: text for a terminal, and
// a page that needs nothing else.
//
// The page of a comparison is drawn from the result's comparison alone, so that
// a run with arms and recorded experiments have one page. Milestones that all
// objects reached at the same moments are shown once. Where the verdict is
// refused no interval is drawn, but what was measured is.
package report
