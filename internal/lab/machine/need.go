package machine

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// FindProgram also looks where a user's PATH often does not lead.
func FindProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if p, sbinErr := exec.LookPath(filepath.Join(dir, name)); sbinErr == nil {
			return p, nil
		}
	}
	return "", err
}

// Need is one thing of the system's that is needed.
type Need struct {
	What string
	// Package is Debian's package that has it.
	Package string
	// Found is where it is, "" if it is not.
	Found string
	// Optional is what can be done without.
	Optional bool
}

// MissingError says what something needs and this machine lacks.
type MissingError struct {
	For  string // such as "a real node"
	What []string
	// Packages are those of Debian that have it; empty if it is not a matter
	// of packages.
	Packages []string
	// Rootless says what does without root, "" for nothing.
	Rootless string
}

// Missing is what is lacking of what something needs: programs, and root.
func Missing(what, rootless string, needs []Need) *MissingError {
	e := &MissingError{For: what, Rootless: rootless}
	for _, n := range needs {
		if n.Found != "" || n.Optional {
			continue
		}
		e.What = append(e.What, n.What)
		if !slices.Contains(e.Packages, n.Package) {
			e.Packages = append(e.Packages, n.Package)
		}
	}
	if os.Geteuid() != 0 {
		e.What = append(e.What, NeedRoot)
	}
	return e
}

func (e *MissingError) Error() string { return e.For + " needs " + strings.Join(e.What, ", ") }

// Install is the command that installs packages.
func Install(packages ...string) string {
	return "apt-get install --no-install-recommends " + strings.Join(packages, " ")
}

// Remedy is the command that helps, "" if there is none.
func (e *MissingError) Remedy() string {
	var words []string
	if len(e.Packages) > 0 {
		words = append(words, Install(e.Packages...))
	}
	if slices.Contains(e.What, NeedRoot) {
		text := "run it as root"
		if e.Rootless != "" {
			text += "; " + e.Rootless
		}
		words = append(words, text)
	}
	return strings.Join(words, ", and ")
}

// NeedRoot is what is missing to any other user.
const NeedRoot = "root"
