// Package slo holds the grammar of service level objectives: what must hold at a level for it to count as held.
package slo
