// Package view shapes what a result says, once: sections with a heading, tables and lines, and the
// figures that charts are drawn from. It is pure: package text writes it for a terminal, package page as
// a page.
//
// The page of a comparison is drawn from the result's comparison alone, so that a run with arms and
// recorded experiments have one page. Milestones that all objects reached at the same moments are shown
// once. Where the verdict is refused no interval is drawn, but what was measured is.
package view
