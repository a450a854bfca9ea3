package reading

// Input is a file to look at.
type Input struct {
	Name    string
	Data    []byte
	Asked   bool // the user named this file, so that an unknown kind is worth a note
	Checked bool // means that the caller has checked this kind of file, with Faults as its findings
	Faults  []Fault
}

// Fault is a mistake in a file of this program's own formats.
type Fault struct {
	File         string
	Line, Column int
	Path, Found  string
	Fix          string
}
