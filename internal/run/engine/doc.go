// Package engine makes one step: it raises a target to a level at a bounded rate, waits for everything to
// be ready, holds, and guards the target meanwhile. What it sees goes to a sink; it judges nothing but
// its guards.
//
// A step of a closed loop empties the target where it must begin from empty, asks the target what to
// request for the level, and sends that under a pace and a bound on the requests in flight. It waits for
// all objects, holds the level, waits for the last news, and has the target say why objects are not
// ready.
//
// A step of an open loop always begins from empty, since what an earlier rate left ages on. Requests go
// out by a schedule, whatever became of earlier ones, and the target removes objects as they age. An
// arrival that finds too many requests under way is late, and after [DropAfter] it is dropped. Judged is
// what the schedule puts into the hold, after a warm-up of one object's life. It is followed for at least
// 10 s and twice the longest bound of an objective, so that what was too late has a figure.
package engine
