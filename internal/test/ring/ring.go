// Package ring says which tests make test runs, and which only make test-long. Only
// tests import it.
package ring

import (
	"os"
	"testing"
)

// Variable names the environment variable that asks for the tests that take long.
const Variable = "PLIMSOLL_LONG"

// Long skips the test unless make test-long runs. Why says why the test belongs
// there.
func Long(t testing.TB, why string) {
	t.Helper()
	if os.Getenv(Variable) == "" {
		t.Skipf("%s: make test-long runs it", why)
	}
}

// Size returns how much a test does of what it could do: short in make test, long in
// make test-long.
func Size(short, long int) int {
	if os.Getenv(Variable) == "" {
		return short
	}
	return long
}
