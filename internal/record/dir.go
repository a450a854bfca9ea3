package record

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/goccy/go-yaml"

	"plimsoll.dev/plimsoll/internal/text/redact"
)

// Names of the files in a run directory.
const (
	ExperimentFile  = "experiment.yaml"
	EnvironmentFile = "environment.json"
	HistoryFile     = "history.jsonl.zst"
	ObjectsFile     = "objects.parquet"
	WindowsFile     = "windows.parquet" // of streams alone
	ResultFile      = "result.json"
	ReportFile      = "report.html"
	BaselineFile    = "baseline.json" // how the run compares with an earlier one
	CellsDir        = "cells"         // a run directory for each cell of a grid
)

// RunsDir holds the run directories that nobody named.
const RunsDir = "plimsoll-runs"

// Dir is the path of a run directory.
type Dir string

// NotRunDirError says that a path holds no recorded run.
type NotRunDirError struct {
	Path string
	Why  string
}

func (e *NotRunDirError) Error() string {
	return fmt.Sprintf("%s is not a run directory: %s", e.Path, e.Why)
}

// A record shows how a cluster is built, and parts of its logs: only its user may read it.
const (
	fileMode = 0o600
	DirMode  = 0o700 // of a run directory, and of those that are made for it
)

// CreateDir makes an empty run directory. It refuses any existing path but an empty directory.
func CreateDir(path string) (Dir, error) {
	if err := os.MkdirAll(filepath.Dir(path), DirMode); err != nil {
		return "", fmt.Errorf("create run directory: %w", err)
	}
	var entries []os.DirEntry
	err := os.Mkdir(path, DirMode)
	if errors.Is(err, fs.ErrExist) {
		entries, err = os.ReadDir(path)
	}
	if err != nil {
		return "", fmt.Errorf("create run directory: %w", err)
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("create run directory %s: it exists and is not empty: %w", path, fs.ErrExist)
	}
	return Dir(path), nil
}

// NewDir makes a run directory that nothing else uses: at the path, or the first free of path-2, path-3.
func NewDir(path string) (Dir, error) {
	if err := os.MkdirAll(filepath.Dir(path), DirMode); err != nil {
		return "", fmt.Errorf("create run directory: %w", err)
	}
	at := path
	for n := 2; ; n++ {
		err := os.Mkdir(at, DirMode)
		if err == nil {
			return Dir(at), nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("create run directory: %w", err)
		}
		at = fmt.Sprintf("%s-%d", path, n)
	}
}

// IsGrid reports whether a directory, not a link, belongs to an experiment with directories of cells.
func IsGrid(path string) bool {
	info, err := os.Lstat(filepath.Join(path, CellsDir))
	return err == nil && info.IsDir()
}

// OpenDir opens a recorded run for reading.
func OpenDir(path string) (Dir, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", &NotRunDirError{path, "it does not exist"}
	}
	if !info.IsDir() {
		return "", &NotRunDirError{path, "it is a file"}
	}
	if _, err := os.Stat(filepath.Join(path, HistoryFile)); err != nil {
		why := "it has no " + HistoryFile
		if IsGrid(path) {
			why = "it is of an experiment with several cells, and each has its own below " + CellsDir
		}
		return "", &NotRunDirError{path, why}
	}
	entries, err := os.ReadDir(path) // a record of somebody else may have files without an end
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(path, e.Name())); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			return "", &NotRunDirError{path, fmt.Sprintf("its %s is not a file that can be read whole: %s", e.Name(), info.Mode())}
		}
	}
	return Dir(path), err
}

// OpenCell opens a cell of a grid by its name in CellsDir. It refuses a link, which leads elsewhere.
func (d Dir) OpenCell(name string) (Dir, error) {
	path := d.Path(filepath.Join(CellsDir, name))
	if info, err := os.Lstat(path); err == nil && !info.IsDir() {
		return "", &NotRunDirError{path, "a cell has a directory of its own, and this is " + info.Mode().String()}
	}
	return OpenDir(path)
}

// Path returns the path of one of the directory's files.
func (d Dir) Path(name string) string { return filepath.Join(string(d), name) }

// WriteFile writes a file of the directory whole: a reader sees the old content or the new.
func (d Dir) WriteFile(name string, data []byte) error {
	tmp, err := os.CreateTemp(string(d), "."+name+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	err = cmp.Or(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), d.Path(name))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// create makes a file again. It removes an old one, because a link would lead elsewhere.
func (d Dir) create(name string) (*os.File, error) {
	if err := os.Remove(d.Path(name)); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return os.OpenFile(d.Path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
}

// WriteJSON writes one of the directory's files as indented JSON, with what looks like a secret masked.
func (d Dir) WriteJSON(name string, v any) error { return d.WriteMasked(name, v, nil) }

// WriteMasked writes like WriteJSON, and masks known secrets too.
func (d Dir) WriteMasked(name string, v any, secrets *redact.Secrets) error {
	data, err := Encode(v, "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return d.WriteFile(name, append(secrets.JSON(data), '\n'))
}

// WriteResult writes result.json like WriteSealed.
func (d Dir) WriteResult(v any, secrets *redact.Secrets) error {
	return d.WriteSealed(ResultFile, v, secrets)
}

// WriteSealed writes a JSON file with the sum of the rest as its last key, masked like WriteMasked.
func (d Dir) WriteSealed(name string, v any, secrets *redact.Secrets) error {
	data, err := Encode(v, "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	data = bytes.TrimSuffix(secrets.JSON(data), []byte("\n}"))
	return d.WriteFile(name, fmt.Appendf(data, "%s%x\"\n}\n", sealKey, sha256.Sum256(data)))
}

const sealKey = ",\n  \"sha256\": \"" // stands between a result and its sum

// ErrChanged says that a file was changed since it was written.
var ErrChanged = errors.New("it was changed since it was written")

// Intact reports whether result.json is as it was written, by its sum.
func (d Dir) Intact() bool {
	data, err := d.ReadFile(ResultFile)
	return err == nil && intact(data) == nil
}

func intact(data []byte) error {
	at := bytes.LastIndex(data, []byte(sealKey))
	if at < 0 || string(data[at+len(sealKey):]) != fmt.Sprintf("%x\"\n}\n", sha256.Sum256(data[:at])) {
		return ErrChanged
	}
	return nil
}

const maxWhole = 256 << 20 // bound of the bytes of a file that is read whole: large results have some megabytes

// ReadFile reads a regular file of the directory whole, up to 256 MiB.
func (d Dir) ReadFile(name string) ([]byte, error) {
	info, err := os.Stat(d.Path(name))
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file that can be read whole: %s", d.Path(name), info.Mode())
	case info.Size() > maxWhole:
		return nil, fmt.Errorf("%s has %d bytes, and no more than %d (256 MiB) are read of it", d.Path(name), info.Size(), maxWhole)
	}
	return os.ReadFile(d.Path(name))
}

// ReadJSON reads one of the JSON files. The error is ErrChanged for a sealed one whose sum is wrong.
func (d Dir) ReadJSON(name string, v any) error {
	data, err := d.ReadFile(name)
	if err == nil && (name == ResultFile || name == BaselineFile) {
		err = intact(data)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w", d.Path(name), err)
	}
	return nil
}

// Sum returns the SHA-256 of one of the directory's files, in hexadecimal digits.
func (d Dir) Sum(name string) (string, error) {
	data, err := os.ReadFile(d.Path(name))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data)), nil
}

// Changed returns the files that exist with other sums, in order.
func (d Dir) Changed(sums map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if sum, err := d.Sum(filepath.Base(name)); err == nil && sum != sums[name] {
			list = append(list, name)
		}
	}
	return list
}

// Environment describes where a run took place: environment.json, as [Dir.Environment] reads it.
type Environment struct {
	Start     time.Time       `json:"start"` // the wall clock at T = 0 of the history
	Program   *Build          `json:"program,omitempty"`
	Target    TargetNaming    `json:"target"`
	Fidelity  Fidelity        `json:"fidelity"`
	Elsewhere bool            `json:"elsewhere,omitempty"` // the target does not run on the machine of this program
	Facts     []Fact          `json:"facts"`               // of the target and the machine
	Places    *Places         `json:"places,omitempty"`    // the facts of each place, nil for none
	Findings  []HealthFinding `json:"findings,omitempty"`  // problems of the target before any load, and Ceilings its levels by then; nil: unknown
	Ceilings  *CeilingTable   `json:"ceilings,omitempty"`
	Kind      *ObjectKind     `json:"kind"` // of the requested objects
}

// Environment reads environment.json. The error may be fs.ErrNotExist, or a *FormatError by its version.
func (d Dir) Environment() (*Environment, error) {
	var e Environment
	if err := d.ReadJSON(EnvironmentFile, &e); err != nil {
		return nil, err
	}
	if e.Kind == nil {
		return nil, d.FormatError(EnvironmentFile, "kind")
	}
	if err := e.Places.Check(); err != nil {
		return nil, fmt.Errorf("read %s: %w", d.Path(EnvironmentFile), err)
	}
	return &e, nil
}

// FormatError returns a *FormatError about one of the directory's files.
func (d Dir) FormatError(name, missing string) error {
	return &FormatError{File: d.Path(name), Missing: missing, Version: d.version()}
}

// version returns the version of the program that wrote the record, or "".
func (d Dir) version() string {
	var plan struct {
		AsRun struct {
			Version string `yaml:"version"`
		} `yaml:"asRun"`
	}
	if text, err := d.ReadFile(ExperimentFile); err != nil || yaml.Unmarshal(text, &plan) != nil {
		return ""
	}
	return plan.AsRun.Version
}

// FormatError reports a file of a record whose format this program does not read.
type FormatError struct {
	File    string
	Missing string // the key or column that every file of today's format has
	Version string // of the program that wrote it, "" where it is unknown
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("read %s: it has no %q: plimsoll %s wrote it in a format that this version does not read; analyze it with that version, or run the plan again", e.File, e.Missing, cmp.Or(e.Version, "of an unknown version"))
}

// TargetNaming says which target was loaded, and how it was chosen.
type TargetNaming struct {
	Kind    string `json:"kind"` // lab, cluster or sim
	Name    string `json:"name"` // the lab's or the context's name
	Private bool   `json:"private,omitempty"`
}

// Realness says whether a thing was real.
type Realness string

// The degrees of realness.
const (
	Real      Realness = "real"
	Simulated Realness = "simulated"
	None      Realness = "none"
)

// Fidelity says what was real and what simulated: no simulated figure is shown as a physical one.
type Fidelity struct {
	ControlPlane Realness `json:"controlPlane"`
	Nodes        Realness `json:"nodes"`
	Containers   Realness `json:"containers"`
	Guests       Realness `json:"guests"`
	// TimeScale says how many seconds of simulated parts a measured second stands for. 0 is 1.
	TimeScale float64  `json:"timeScale,omitempty"`
	Notes     []string `json:"notes"`
}

// FidelityPart is a part of the target.
type FidelityPart struct {
	Part string
	Is   Realness
}

// Parts returns the parts of the target.
func (f Fidelity) Parts() []FidelityPart {
	return []FidelityPart{{"control plane", f.ControlPlane}, {"nodes", f.Nodes}, {"containers", f.Containers}, {"guests", f.Guests}}
}
