// Package e2e runs whole commands, as a user does. Each of its folders holds the tests
// of one area:
//
//   - kubernetes: loads of clusters, and labs
//   - virt: loads of virtual machines
//   - router: loads of routers and HTTP servers
//   - storage: IO, small files and volumes
//   - network: network paths
//   - metrics: scraped metrics, objectives on them, and queries
//   - advise: tune and lint
//   - records: searches on the simulated target, and what commands make of records
//
// This package holds what they share, and the smoke test of each real part. The tests
// of flags, help and errors are in internal/cli. Only tests import it.
package e2e
