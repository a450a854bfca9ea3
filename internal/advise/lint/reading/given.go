package reading

// Input is a file to look at.
type Input struct {
	Name string
	Data []byte
	// Asked says that the user named this very file: that it is of no known
	// kind is then worth a note.
	Asked bool
	// Checked says that the caller knows this kind of file and has looked at it;
	// Faults are what it found, in this file or in those that belong to it.
	Checked bool
	Faults  []Fault
}

// Fault is a mistake in a file of this program's own formats.
type Fault struct {
	File         string // that it stands in
	Line, Column int
	Path, Found  string
	Fix          string
}
