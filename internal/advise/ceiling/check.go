package ceiling

import "plimsoll.dev/plimsoll/internal/record"

// CheckSchema names the format of `plimsoll check -o json`.
const CheckSchema = "plimsoll/check/v1"

// Check is the document of `plimsoll check -o json`: what is known of a cluster without a load.
type Check struct {
	Schema   string                 `json:"schema"`
	Version  string                 `json:"version"` // of this program
	Target   CheckTarget            `json:"target"`
	Severity record.Severity        `json:"severity"` // of the worst finding
	ExitCode int                    `json:"exitCode"` // 1 for an error
	Findings []record.HealthFinding `json:"findings"`
	Table    record.CeilingTable    `json:"table"`
	Kind     record.ObjectKind      `json:"-"`       // of the objects that the ceilings count
	Binding  *string                `json:"binding"` // names the ceiling that binds first, null without a hard one
}

// CheckTarget names a lab or cluster, with the address and version of its API server, "" if unknown.
type CheckTarget struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Private bool   `json:"private,omitempty"`
	Server  string `json:"server"`
	Version string `json:"version"`
}
