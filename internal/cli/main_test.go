package cli_test

import (
	"os"
	"testing"

	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// suite is the tests of this package that run the built program.
var suite = harness.New(os.Getenv)

func TestMain(m *testing.M) { os.Exit(e2e.Main(m, suite, os.Getenv, os.Stderr)) }
