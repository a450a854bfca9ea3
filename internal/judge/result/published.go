package result

// Published is a published figure beside that of the run. It decides nothing: the two come from different
// machines.
type Published struct {
	What      string  `json:"what"`
	Metric    string  `json:"metric"`
	Arm       string  `json:"arm,omitempty"`
	Source    string  `json:"source"`
	Unit      string  `json:"unit"` // s, B, /s, %, or the axis's own
	Published float64 `json:"published"`
	// Found is the median over the runs that count, or the change with its interval from Lo to Hi; null
	// where the run has no such figure. Times of parts that pass faster are converted.
	Found *float64 `json:"found"`
	Lo    *float64 `json:"lo"`
	Hi    *float64 `json:"hi"`
	At    *float64 `json:"at"` // the level of Found; null for a load line
}
