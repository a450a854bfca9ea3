// Package record is the waist of the program: everything that is seen is written here before anything is
// judged, and everything after it works from what was written. It holds the types of the history, the run
// directory, the Writer and the Reader, and judges nothing.
//
// What objects are is data ([ObjectKind]): what one is called, its milestones and who does the work of
// each, which milestone plays which part, and the reasons that show trouble. The target declares it and
// environment.json keeps it, so that a record is judged without its target. The tables of ceilings are
// data here, too, and this package knows none of their arithmetic.
package record
