// Package metrics_test tests metrics: objectives on queries, what is scraped, and
// queries of a record.
package metrics_test

import (
	"os"
	"testing"

	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

var suite = harness.New(os.Getenv)

func TestMain(m *testing.M) { os.Exit(e2e.Main(m, suite, os.Getenv, os.Stderr)) }
