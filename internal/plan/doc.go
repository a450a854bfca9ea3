// Package plan reads and checks experiment files: one document says what a run does. The flags of the command
// line fill in the same Plan, so that users can write down, read and repeat every run.
//
// The packages below it choose the steps of a run and hold the failure signatures that a plan can add to.
package plan
