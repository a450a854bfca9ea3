// Package run is the loop that everything plugs into: the design says what to run next, the engine makes the step
// on the target, the record keeps what it sees, the analysis judges it, and the design is asked again.
//
// # Resuming
//
// A run is resumed from its record alone. The design is a pure function of the steps made, so replaying the
// history shows where the run goes on. It also shows that plan and record belong together: each step on record
// must be the one that the plan would have made. A step that was cut is repeated, but not one that a guard
// stopped: the target must not suffer it twice. Each part of a run draws a name of its own for its objects, and
// removes those with the names of the parts before. The lock on the run directory says that those are dead.
//
// # Grids
//
// Each cell of a grid is a run directory of its own, and a repeated cell of a sweep is made by parts of a run that
// pause. So whatever reads, resumes or compares a run does the same with a cell.
//
// # The end
//
// The result is written and shown before the target is emptied, and written again afterwards with the removal. As
// JSON it is printed once, at the end. Where nothing has to be removed (a private lab goes as a whole), the target
// is closed first.
package run
