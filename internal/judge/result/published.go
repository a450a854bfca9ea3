package result

// Published is a published figure beside what the run found. It decides
// nothing: the two were found on different machines.
type Published struct {
	What      string  `json:"what"`
	Metric    string  `json:"metric"`
	Arm       string  `json:"arm,omitempty"`
	Source    string  `json:"source"`
	Unit      string  `json:"unit"` // s, B, /s, %, or the axis's own
	Published float64 `json:"published"`
	// Found is the median over the runs that count, or the change; null where
	// the run has no such figure. Times of what passes faster are as they would be. Lo and Hi are the change's interval.
	Found *float64 `json:"found"`
	Lo    *float64 `json:"lo"`
	Hi    *float64 `json:"hi"`
	// At is the level at which it was found; null for a load line.
	At *float64 `json:"at"`
}
