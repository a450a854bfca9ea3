// Package flock keeps two processes from working in one file or directory. The system releases a lock
// when its holder closes the file or dies.
package flock

import "errors"

// ErrHeld says that another process holds the lock.
var ErrHeld = errors.New("another process holds it")
