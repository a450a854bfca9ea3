// Package result is result.json: what is asked of a run to be judged, and what was
// found. Others fill it in, and reports read it. What is here besides says how a
// figure, a reason or a number of things is written wherever it stands.
package result
