package proc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// Program is a program of the system's that something needs.
type Program struct {
	// Name is its file's name, or a title if Look finds it.
	Name string
	// Package is Debian's package that has it. Get says what to do where none does.
	Package, Get string
	// For names the part that needs it, such as "real guests".
	For string
	// Optional says what it is for, such as "for bricks=xfs", if the rest works without it.
	Optional string
	// Look finds it where it lies at a place of its own, "" where it is not there;
	// nil looks where commands lie.
	Look func() string
	// Asks is the argument at which it tells its version, "" for none. Version
	// finds it in the answer, and in a second group what library it runs with; nil
	// is the first number with a point.
	Asks    string
	Version *regexp.Regexp
	// Suits says why a version does not do; nil is any.
	Suits func(version string) error
}

// Found is a program that is installed.
type Found struct{ Path, Version, Library string }

// String names all that is known of it.
func (f Found) String() string {
	text := strings.TrimSpace(f.Path + " " + f.Version)
	if f.Library != "" {
		text += ", " + f.Library
	}
	return text
}

// Find finds the program and asks it for its version: at a path, or where it is
// installed for "". One that is not installed is a *MissingError.
func (p Program) Find(ctx context.Context, path string) (Found, error) {
	if path == "" {
		if path = p.path(); path == "" {
			missing := &MissingError{For: p.For, What: []string{p.Name}, Get: p.Get}
			if p.Package != "" {
				missing.Packages = []string{p.Package}
			}
			return Found{}, missing
		}
	} else if at, err := exec.LookPath(path); err != nil {
		return Found{}, fmt.Errorf("there is no %s: %s was not found", p.Name, path)
	} else {
		path = at
	}
	found := Found{Path: path}
	if p.Asks == "" {
		return found, nil
	}
	ask := exec.CommandContext(ctx, path, p.Asks)
	ask.Env = Environment()
	text, err := ask.CombinedOutput()
	if err != nil {
		return found, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	version := p.Version
	if version == nil {
		version = anyVersion
	}
	groups := append(version.FindStringSubmatch(string(text)), "")
	if len(groups) < 2 {
		return found, fmt.Errorf("%s does not tell a version of %s: it is another program", path, p.Name)
	}
	found.Version, found.Library = groups[1], strings.TrimSpace(groups[2])
	if p.Suits != nil {
		return found, p.Suits(found.Version)
	}
	return found, nil
}

var anyVersion = regexp.MustCompile(`(\d+\.\d+[.\d]*)`)

// path returns its path, also from directories that a user's PATH often lacks; "" if missing.
func (p Program) path() string {
	if p.Look != nil {
		return p.Look()
	}
	for _, dir := range []string{"", "/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if found, err := exec.LookPath(filepath.Join(dir, p.Name)); err == nil {
			return found
		}
	}
	return ""
}

// MissingError says what something needs and this machine lacks.
type MissingError struct {
	For  string // such as "a real node"
	What []string
	// Packages names the Debian packages that have it; empty if no package does.
	Packages []string
	Get      string // what to do instead of installing packages
	// Rootless says what does without root, "" for nothing.
	Rootless string
}

// Look finds programs, by their names, and says what is lacking of all that
// something needs: of programs that cannot be done without, and of root.
func Look(what, rootless string, needs []Program) (paths map[string]string, missing *MissingError) {
	paths, missing = make(map[string]string), &MissingError{For: what, Rootless: rootless}
	for _, n := range needs {
		if paths[n.Name] = n.path(); paths[n.Name] != "" || n.Optional != "" {
			continue
		}
		missing.What = append(missing.What, n.Name)
		if !slices.Contains(missing.Packages, n.Package) {
			missing.Packages = append(missing.Packages, n.Package)
		}
	}
	if os.Geteuid() != 0 {
		missing.What = append(missing.What, needRoot)
	}
	return paths, missing
}

// Err returns nil if nothing is missing.
func (e *MissingError) Err() error {
	if len(e.What) == 0 {
		return nil
	}
	return e
}

// Error implements error.
func (e *MissingError) Error() string {
	return "missing for " + e.For + ": " + strings.Join(e.What, ", ")
}

// Install returns the command that installs packages.
func Install(packages ...string) string {
	return "apt-get install --no-install-recommends " + strings.Join(packages, " ")
}

// Remedy returns the command that helps, or "".
func (e *MissingError) Remedy() string {
	var words []string
	if len(e.Packages) > 0 {
		words = append(words, Install(e.Packages...))
	} else if e.Get != "" {
		words = append(words, e.Get)
	}
	if slices.Contains(e.What, needRoot) {
		text := "run it as root"
		if e.Rootless != "" {
			text += "; " + e.Rootless
		}
		words = append(words, text)
	}
	return strings.Join(words, ", and ")
}

// needRoot stands for root's rights among missing programs.
const needRoot = "root"

// Tie starts processes that die with this one, whatever ends it: from one
// operating system thread that lives as long as the Tie does. The kernel sends a
// parent-death signal when the thread that forked ends, not the process; Go's
// threads come and go.
type Tie struct{ calls chan func() }

// NewTie makes a Tie, which must be closed.
func NewTie() *Tie {
	t := &Tie{make(chan func())}
	go t.run()
	return t
}

func (t *Tie) run() {
	runtime.LockOSThread() // the thread ends with the goroutine, as it is not unlocked
	if onFirstThread() {
		// Go never ends the process's first thread. While it is held here, a
		// goroutine that begins runs on another one.
		held := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(held)
			t.serve()
		}()
		<-held
		runtime.UnlockOSThread()
		return
	}
	t.serve()
}

func (t *Tie) serve() {
	for call := range t.calls {
		call()
	}
}

// Do calls a function on the thread, such as one that enters a namespace and
// starts a process there.
func (t *Tie) Do(call func() error) error {
	result := make(chan error)
	t.calls <- func() { result <- call() }
	return <-result
}

// Close ends the thread and with it whatever it started and still runs.
func (t *Tie) Close() { close(t.calls) }
