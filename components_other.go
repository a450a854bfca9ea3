//go:build !linux

package main

import "plimsoll.dev/plimsoll/internal/cli/process"

// addComponents adds none: labs and the targets of this machine, which run them, need Linux.
func addComponents(*process.Process) {}
