package reading

// Input is a file to look at.
type Input struct {
	Name  string
	Data  []byte
	Asked bool // the user named this file, so that an unknown kind is worth a note
	// Checked means that the caller knows this kind of file and has checked it; Faults are its findings, in
	// this file or in those that belong to it.
	Checked bool
	Faults  []Fault
}

// Fault is a mistake in a file of this program's own formats.
type Fault struct {
	File         string
	Line, Column int
	Path, Found  string
	Fix          string
}
