// Package houserules holds no code: its tests keep the rules of the house, and
// a test that fails names the remedy.
package houserules
