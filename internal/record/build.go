package record

// Build identifies a build of the program.
type Build struct {
	Version      string `json:"version"`
	Commit       string `json:"commit,omitempty"`   // "": unknown, as of a build outside of a checkout
	Modified     bool   `json:"modified,omitempty"` // the checkout had changes beside the commit
	Date         string `json:"date,omitempty"`     // of the commit, RFC 3339
	Go           string `json:"go"`
	ControlPlane string `json:"kubernetes"` // version of the Kubernetes that is compiled in
	Platform     string `json:"platform"`   // such as linux/amd64
}

// String returns the build in a line.
func (b Build) String() string {
	commit := "development build"
	if b.Commit != "" {
		commit = "commit " + b.Commit[:min(len(b.Commit), 12)]
		if b.Modified {
			commit += " with changes"
		}
		commit += " of " + b.Date
	}
	return "plimsoll " + b.Version + " (" + commit + "), Kubernetes " + b.ControlPlane + ", " + b.Go + ", " + b.Platform
}
