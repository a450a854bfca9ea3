// Package records_test tests what runs leave on record, and what commands make of it:
// they judge, resume, report and compare records.
package records_test

import (
	"os"
	"testing"

	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

var suite = harness.New(os.Getenv)

func TestMain(m *testing.M) { os.Exit(e2e.Main(m, suite, os.Getenv, os.Stderr)) }
