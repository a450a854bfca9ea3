// Package judge turns a record into a Result: what was reached at each level and by whom, whether each goal held,
// where the load line lies and what bound it. It works from events alone, during a run and long after it.
//
// # Parts
//
// Each package below it does one part, and knows those before it only:
//
//   - result is the document: the questions to a run, and the findings.
//   - usage sums up what processes used, watch how late news came.
//   - fold folds the events of a step into facts, and measures the step by them.
//   - verdict judges a measured step by the goals.
//   - findings says what the judged steps show together.
//
// [Builder] hands events to the fold and measured steps to the verdict, and puts the result together. During a run
// the same Builder follows the record as it is written, so that the search sees the findings of a later analysis.
package judge
