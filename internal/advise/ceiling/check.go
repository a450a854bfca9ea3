package ceiling

import "plimsoll.dev/plimsoll/internal/record"

// CheckSchema names the format of what `plimsoll check -o json` prints.
const CheckSchema = "plimsoll/check/v1"

// Check is what was found out about a cluster without loading it: the document
// of `plimsoll check -o json`.
type Check struct {
	Schema  string `json:"schema"`
	Version string `json:"version"` // of this program
	// Target is what was looked at: its kind (lab or cluster), its name, the
	// address of its API server and that server's version, "" when not known.
	Target CheckTarget `json:"target"`
	// Severity is the worst of the findings, and ExitCode 1 for an error.
	Severity record.Severity        `json:"severity"`
	ExitCode int                    `json:"exitCode"`
	Findings []record.HealthFinding `json:"findings"`
	Table    record.CeilingTable    `json:"table"`
	// Kind is that of the objects that the target's ceilings count.
	Kind record.ObjectKind `json:"-"`
	// Binding is the name of the ceiling that binds first, null where no hard
	// one is known.
	Binding *string `json:"binding"`
}

// CheckTarget names a cluster.
type CheckTarget struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Private bool   `json:"private,omitempty"`
	Server  string `json:"server"`
	Version string `json:"version"`
}
