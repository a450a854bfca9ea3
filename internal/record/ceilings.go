package record

// CeilingClass says what a ceiling is worth.
type CeilingClass string

// The classes of ceilings.
const (
	CeilingHard     CeilingClass = "hard"     // what is asked for beyond it fails
	CeilingAdvisory CeilingClass = "advisory" // beyond it is untested ground, or it is an estimate
	CeilingUnknown  CeilingClass = "unknown"  // there is one, and it could not be read
	// CeilingNotEnforced is a ceiling that simulated nodes have and do not keep.
	CeilingNotEnforced CeilingClass = "notEnforced"
	// CeilingUnbound is one that this workload does not come up against, however far it is raised.
	CeilingUnbound CeilingClass = "unbound"
)

// Ceiling is a limit that is known, or known of, before any load.
type Ceiling struct {
	Name  string       `json:"name"` // the same for ever, such as allocatablePods
	What  string       `json:"what"` // in words
	Class CeilingClass `json:"class"`
	// Level is the highest value on the axis that it allows, null where that is
	// not known or the workload does not come up against it.
	Level *float64 `json:"level"`
	// Total is how many pods, those that were there before included, the workload's nodes then hold.
	Total *float64 `json:"total"`
	// Limit, Used and Left are in Unit, over all nodes that the workload can land on; null is unknown.
	Limit *float64 `json:"limit"`
	Used  *float64 `json:"used"`
	Left  *float64 `json:"left"`
	Unit  string   `json:"unit"`
	// Binds marks the one that binds first: of the hard ones that are known the
	// one with the lowest level.
	Binds bool `json:"binds,omitempty"`
	// Reason is the failure beyond it in the words in which a result would tell it, and Sign the part of
	// them by which it is recognised. Empty where nothing fails at once.
	Reason string `json:"reason,omitempty"`
	Sign   string `json:"sign,omitempty"`
	// From is where it was read, or who publishes it.
	From string `json:"from,omitempty"`
	Note string `json:"note,omitempty"`
}

// CeilingTable is all ceilings of a workload on a cluster, the lowest first and those
// without a level last.
type CeilingTable struct {
	Workload string `json:"workload"` // "" for pods that ask for nothing
	Axis     string `json:"axis"`
	Unit     string `json:"unit"`
	// Places is how many the workload can land on, of AllPlaces; Others how many pods stand there, or
	// wait for a place that could be there; null is not known.
	Places    *int `json:"nodes"`
	AllPlaces *int `json:"allNodes"`
	Others    *int `json:"others"`
	Simulated int  `json:"simulated"` // of Places
	// Arm is the arm of a comparison that the table is of, "" for none.
	Arm      string    `json:"arm,omitempty"`
	Ceilings []Ceiling `json:"ceilings"`
	Notes    []string  `json:"notes"`
}

// Binding is the ceiling that binds first, nil where no hard one is known.
func (t *CeilingTable) Binding() *Ceiling {
	for i := range t.Ceilings {
		if t.Ceilings[i].Binds {
			return &t.Ceilings[i]
		}
	}
	return nil
}

// Advised is the lowest of those that advise, nil where there is none.
func (t *CeilingTable) Advised() *Ceiling {
	for i := range t.Ceilings {
		if c := &t.Ceilings[i]; c.Class == CeilingAdvisory && c.Level != nil {
			return c
		}
	}
	return nil
}

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error" // a load would fail, or would say nothing
	SeverityWarning Severity = "warning"
	SeverityOK      Severity = "ok"
)

// HealthFinding is one thing that was looked at before any load.
type HealthFinding struct {
	Severity Severity `json:"severity"`
	What     string   `json:"what"` // what was looked at, in a word or two
	Text     string   `json:"text"`
	// Places are where it was found, such as namespaces; none where Text says it.
	Places []string `json:"places,omitempty"`
	// Hint is what to do about it, "" for nothing.
	Hint string `json:"hint,omitempty"`
	// Stops says that no load should begin.
	Stops bool `json:"stops,omitempty"`
}

// String is the finding in words, with the places.
func (f HealthFinding) String() string { return Warning{Text: f.Text, Places: f.Places}.String() }

// Warning is the finding as a warning of a result.
func (f HealthFinding) Warning() Warning {
	return Warning{Kind: WarningBefore, Text: f.What + ": " + f.Text, Places: f.Places, Count: max(len(f.Places), 1)}
}
