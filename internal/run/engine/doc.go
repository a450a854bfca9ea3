// Package engine makes one step: it raises a target to a level at a bounded rate, waits for everything to
// be ready, holds, and guards the target meanwhile. It sends what it sees to a sink, and judges nothing
// but its guards.
//
// A step of a closed loop empties the target where it must begin from empty, asks the target what to
// request for the level, and sends that under a pace and a bound on the requests in flight. It waits for
// all objects, holds the level, waits for the last news, and has the target say why objects are not
// ready.
//
// A step of an open loop always begins from empty, because objects of an earlier rate age on. Requests go
// out by a schedule, whatever became of earlier ones, and the target removes objects as they age. An
// arrival that finds too many requests in flight is late, and after [DropAfter] it is dropped. The
// requests that the schedule puts into the hold, after a warm-up of one object's life, are judged. They
// are followed for at least 10 s and twice the longest bound of an objective, so that late ones have a
// figure.
package engine
