package record

// CeilingClass says how firm a ceiling is.
type CeilingClass string

// The classes of ceilings.
const (
	CeilingHard        CeilingClass = "hard"        // requests beyond it fail
	CeilingAdvisory    CeilingClass = "advisory"    // beyond it is untested ground, or it is an estimate
	CeilingUnknown     CeilingClass = "unknown"     // there is one, and it could not be read
	CeilingNotEnforced CeilingClass = "notEnforced" // simulated nodes have it and do not keep it
	CeilingUnbound     CeilingClass = "unbound"     // this workload never reaches it
)

// Ceiling is a limit that is known before any load, or whose value is unknown.
type Ceiling struct {
	Name  string       `json:"name"` // a fixed key, such as allocatablePods
	What  string       `json:"what"` // in words
	Class CeilingClass `json:"class"`
	Level *float64     `json:"level"` // highest level that it allows, null where unknown or out of the workload's reach
	Total *float64     `json:"total"` // number of the pods that the workload's nodes then hold, with those that were there before
	// Limit, Used and Left are in Unit, over all nodes that the workload can land on; null is unknown.
	Limit  *float64 `json:"limit"`
	Used   *float64 `json:"used"`
	Left   *float64 `json:"left"`
	Unit   string   `json:"unit"`
	Binds  bool     `json:"binds,omitempty"`  // this is the ceiling that binds first: the known hard one with the lowest level
	Reason string   `json:"reason,omitempty"` // failure beyond it in a result's words, Sign what identifies it; or ""
	Sign   string   `json:"sign,omitempty"`
	From   string   `json:"from,omitempty"` // its source, or publisher
	Note   string   `json:"note,omitempty"`
}

// CeilingTable holds a workload's ceilings on a cluster, the lowest first and those without level last.
type CeilingTable struct {
	Workload  string    `json:"workload"` // "" for pods that ask for nothing
	Axis      string    `json:"axis"`
	Unit      string    `json:"unit"`
	Places    *int      `json:"nodes"` // number of those for the workload, of AllPlaces; Others the pods there or waiting; or null
	AllPlaces *int      `json:"allNodes"`
	Others    *int      `json:"others"`
	Simulated int       `json:"simulated"`     // of Places
	Arm       string    `json:"arm,omitempty"` // of a comparison, "" for none
	Ceilings  []Ceiling `json:"ceilings"`
	Notes     []string  `json:"notes"`
}

// Binding returns the ceiling that binds first, nil where no hard one is known.
func (t *CeilingTable) Binding() *Ceiling {
	for i := range t.Ceilings {
		if t.Ceilings[i].Binds {
			return &t.Ceilings[i]
		}
	}
	return nil
}

// Advised returns the lowest advisory ceiling, or nil.
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
	SeverityError   Severity = "error" // a load would fail, or prove nothing
	SeverityWarning Severity = "warning"
	SeverityOK      Severity = "ok"
)

// HealthFinding is one examination before any load.
type HealthFinding struct {
	Severity Severity `json:"severity"`
	What     string   `json:"what"` // the subject, in a word or two
	Text     string   `json:"text"`
	Places   []string `json:"places,omitempty"` // where it was found, such as namespaces; none where Text says it
	Hint     string   `json:"hint,omitempty"`   // what to do about it, "" for nothing
	Stops    bool     `json:"stops,omitempty"`  // no load should begin
}

func (f HealthFinding) String() string { return Warning{Text: f.Text, Places: f.Places}.String() }

// Warning returns the finding as a warning of a result.
func (f HealthFinding) Warning() Warning {
	return Warning{Kind: WarningBefore, Text: f.What + ": " + f.Text, Places: f.Places, Count: max(len(f.Places), 1)}
}
