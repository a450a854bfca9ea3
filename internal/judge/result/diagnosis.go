package result

// Diagnosis is a signature of a failure that is known, which steps have shown.
type Diagnosis struct {
	Signature   string `json:"signature"`
	Title       string `json:"title"`
	Evidence    string `json:"evidence"`
	Explanation string `json:"explanation"`
	Remedy      string `json:"remedy"`
	Source      string `json:"source,omitempty"`
	// Count is how much has matched, over all steps; First when the first of it
	// came in Step, the first of those that failed, or of all where none did.
	Count int    `json:"count"`
	First string `json:"first"`
	Step  int    `json:"step"`
	// Steps are all that have shown it.
	Steps []int `json:"steps"`
	// Failing says that it was shown by a step in which a goal did not hold.
	Failing bool    `json:"failing"`
	Matches []Match `json:"samples"`
}

// Match is one of what has matched a signature.
type Match struct {
	Time   string `json:"time"`
	Object string `json:"object,omitempty"`
	Text   string `json:"text"`
}

// LogTail is the end of what a container of a failing object has written, secrets masked.
type LogTail struct {
	Object    string   `json:"object"`
	Container string   `json:"container,omitempty"`
	Reason    string   `json:"reason,omitempty"` // what kept the object
	Previous  bool     `json:"previous,omitempty"`
	Lines     []string `json:"lines"`
	Masked    int      `json:"masked,omitempty"` // lines in which something was masked
	Error     string   `json:"error,omitempty"`  // why there are none
}
