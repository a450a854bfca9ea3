// Package kubernetes_test tests loads of Kubernetes clusters and labs: how far they
// go, what breaks, what is left, and the commands about labs.
package kubernetes_test

import (
	"os"
	"testing"

	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

var suite = harness.New(os.Getenv)

func TestMain(m *testing.M) { os.Exit(e2e.Main(m, suite, os.Getenv, os.Stderr)) }
