// Package system is the seam between the loop and what is loaded: what a target
// must do to be raised, observed and emptied.
//
// An object has records of its own. Thousands of requests a second are
// a stream: the target gets a [Schedule], gathers what becomes of the requests
// in [Windows], and puts windows on record. A window is a second, or a tenth of
// a hold that is shorter.
package system
