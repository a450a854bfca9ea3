package result

// Diagnosis is a signature of a known failure that steps have shown.
type Diagnosis struct {
	Signature   string `json:"signature"`
	Title       string `json:"title"`
	Evidence    string `json:"evidence"`
	Explanation string `json:"explanation"`
	Remedy      string `json:"remedy"`
	Source      string `json:"source,omitempty"`
	// Count counts its matches over all steps. First is the time of the first match in Step, the first
	// failed step that shows it, or the first of all.
	Count   int     `json:"count"`
	First   string  `json:"first"`
	Step    int     `json:"step"`
	Steps   []int   `json:"steps"`   // all that have shown it
	Failing bool    `json:"failing"` // a step in which a goal did not hold has shown it
	Matches []Match `json:"samples"`
}

// Match is one match of a signature.
type Match struct {
	Time   string `json:"time"`
	Object string `json:"object,omitempty"`
	Text   string `json:"text"`
}

// LogTail is the end of the log of a failing object's container, secrets masked.
type LogTail struct {
	Object    string   `json:"object"`
	Container string   `json:"container,omitempty"`
	Reason    string   `json:"reason,omitempty"` // that the object was not ready
	Previous  bool     `json:"previous,omitempty"`
	Lines     []string `json:"lines"`
	Masked    int      `json:"masked,omitempty"` // lines in which something was masked
	Error     string   `json:"error,omitempty"`  // why there are none
}
