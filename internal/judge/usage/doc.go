// Package usage sums up what processes used in a step, by samples of them: CPU time, memory, values that
// a target samples of itself, and how far its limits were used up. It knows no objects and no goals.
package usage
