// Package signature answers one question: which failure that is known does a
// step look like? Signatures are data: what to look for in the cluster's
// events, in what objects, requests and logs tell, and in the conditions of a
// step, with an explanation and a remedy. It matches records as they come and
// holds a bounded amount of them.
//
// A message is matched in its [Shape], without the names in it. So a million
// events cost few regular expressions, and a pattern cannot depend on a name.
// The examples of a signature are part of it and are checked when it is read.
// Signatures that a user gives are written into the plan as it was run, so that
// the record is judged by them wherever it is taken.
package signature
