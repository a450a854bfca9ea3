// Package simulated is a target whose limit, latency and faults are planted:
// the ground truth that the search, the accounting and the quantiles are tested
// against. It runs on whatever clock the time package has. For a user that is
// the real one, with a hold and a stall short enough for a search to end within
// seconds. In a test it is the clock of a synctest bubble, where a test takes
// no time.
package simulated
