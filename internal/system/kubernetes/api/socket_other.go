//go:build !linux || race

package api

import "net"

// ahead returns the connection: reading it with fewer system calls is Linux's, and the race detector knows those of
// package net alone, by which one goroutine's writes come before another's reads.
func ahead(conn net.Conn) (net.Conn, error) { return conn, nil }
