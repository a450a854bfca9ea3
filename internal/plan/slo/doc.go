// Package slo holds the grammar of service level objectives: what must hold at
// a level for it to count as held.
//
// The grammar has no query 'PROMQL' OP VALUE as yet: a run records no time
// series of metrics, so that its verdict would never be known.
package slo
