// Package bench holds no code: its benchmarks measure the whole program on
// this machine, side by side with a yardstick. See 'make bench'.
package bench
