//go:build !linux

package cpu

// Prefer leaves the priority as it is: only Linux's is raised.
func Prefer(bool) (how string, undo func()) {
	return "the load generator and observer run at normal priority", func() {}
}

// Aside runs f: no thread is preferred.
func Aside(f func()) { f() }

// Keep changes nothing: only on Linux can this process measure what runs beside it.
func Keep([]int) (undo func(), err error) { return func() {}, nil }
