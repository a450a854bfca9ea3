//go:build !linux

package realnode

import "errors"

// Namespaces has the flags of a node's namespaces, which Linux alone has.
const Namespaces = 0

var errLinux = errors.New("a real node needs Linux")

// ThisMachine says that a node needs Linux.
func ThisMachine() (Machine, error) { return Machine{}, errLinux }

func processesIn(string) ([]int, error) { return nil, errLinux }

func removeGroup(string) error { return errLinux }
