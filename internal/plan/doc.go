// Package plan is the experiment file: what is to be run, in one document.
// Flags of the command line fill in the same Plan, so that every run can be
// written down, read and repeated.
//
// The design of a run lies in this folder, below the judge, since the judge
// asks it what the steps came to. So do signatures: a plan carries its own, and
// they are checked when it is read.
package plan
