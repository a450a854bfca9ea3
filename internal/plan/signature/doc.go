// Package signature recognises known failures in the records of a step. Signatures are data: patterns of
// events, states, requests, log lines and conditions, with an explanation and a remedy. A [Matcher] reads
// records as they come and keeps a bounded amount of them.
//
// It matches the [Shape] of a message, which has no names: a million events then cost few regular expressions,
// and no pattern depends on a name. Loading a signature checks it against its examples. A run writes the
// user's signatures into its plan, so that the judge has them wherever the record goes.
package signature
