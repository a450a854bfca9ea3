// Package e2e runs whole commands, as a user does: its folders hold the tests of
// one area each. This package holds what they share, and the smoke test of each
// real part. Only tests import it.
package e2e
