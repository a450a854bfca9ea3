// Package advise_test tests what advises: tune, and lint of what others have
// written.
package advise_test

import (
	"os"
	"testing"

	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

var suite = harness.New(os.Getenv)

func TestMain(m *testing.M) { os.Exit(e2e.Main(m, suite, os.Getenv, os.Stderr)) }
