package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/documents"
)

// documented holds the flags about the documents of a configuration's run.
type documented struct {
	uuid     string // "" for one that is drawn
	metadata map[string]any
	// into replaces the configuration's directory; local writes documents even if the
	// configuration does not ask for them.
	into  string
	local bool
	// server gets them too, unless it has no URL.
	server documents.Server
	ended  *ended
}

// ended holds the result of a run, for kube-burner's exit codes.
type ended struct {
	result *result.Result
	err    error // why it was cut
	// unsent says that the documents are not where they were to be.
	unsent bool
}

// places returns where the run's documents go. Errors of its configuration are reported elsewhere.
func (r *runner) places() []documents.Place {
	c, err := r.configuration("")
	if c == nil || err != nil {
		return nil
	}
	return r.documentsOf(c, "collected-metrics-UUID").Places
}

// configuration returns the configuration of a run whose jobs are steps; nil for any other run.
func (r *runner) configuration(uuid string) (*kubeburner.Config, error) {
	if !r.workload.AsItIs || r.plan.Axis.Name != workload.AxisJobs {
		return nil, nil
	}
	params, err := r.workload.Resolve(r.plan.Params)
	if err != nil {
		return nil, err
	}
	return r.workload.Config(params, cmp.Or(uuid, anyUUID))
}

// documentsOf returns the configuration as documents need it; byDefault names their directory.
func (r *runner) documentsOf(c *kubeburner.Config, byDefault string) documents.Configuration {
	of := documents.Of(c, process.Version, r.metadata)
	if len(of.Places) == 0 && (r.local || r.into != "") {
		of.Places = []documents.Place{{Directory: byDefault}}
	}
	for i := range of.Places {
		of.Places[i].Directory = cmp.Or(r.into, of.Places[i].Directory)
	}
	return of
}

// keep returns the function that writes the configuration into the run directory, or nil
// without documents.
func (r *runner) keep(uuid string) (func(record.Dir) error, error) {
	c, err := r.configuration(uuid)
	if c == nil || err != nil {
		return nil, err
	}
	of := r.documentsOf(c, "collected-metrics-"+uuid)
	return func(dir record.Dir) error { return dir.WriteMasked(documents.File, of, r.p.Secrets) }, nil
}

// staysHere refuses documents that a configuration, which may be somebody else's, would
// have written elsewhere.
func (d documented) staysHere(c *kubeburner.Config) error {
	for _, p := range documents.Of(c, "", nil).Places {
		for _, path := range []string{cmp.Or(d.into, p.Directory), p.Tarball} {
			if path != "" && path != d.into && (filepath.IsAbs(path) || !within(".", path)) {
				return process.Usagef("name one below it that is not hidden, or give --metrics-directory to 'plimsoll kube-burner init'", "the configuration has its documents written to %s, which does not lie below the working directory", path)
			}
		}
	}
	return nil
}

// document writes the documents of a run where its configuration says.
func (r *runner) document(dir record.Dir) error {
	c, err := documents.Read(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(c.Places) == 0 && r.server.URL == "" {
		return nil
	}
	if err != nil {
		return err
	}
	list, err := documents.Make(dir, c)
	if err != nil {
		return err
	}
	for _, place := range c.Places {
		place.Named = r.into != "" && place.Directory == r.into
		n, err := documents.Write(".", place, list)
		if err != nil {
			return err
		}
		if !r.quiet {
			r.p.Printf("Documents: %d files in %s\n", n, place.Directory)
		}
	}
	if r.server.URL == "" {
		return nil
	}
	defer r.p.WaitFor("sending the documents")()
	n, err := r.server.Send(r.stop.Hard, documents.Items(list))
	if err == nil && !r.quiet {
		r.p.Printf("Documents: %d sent to the index %s\n", n, r.server.Index)
	}
	return err
}

// writeDocuments writes the documents of a record that was judged into a directory.
func writeDocuments(p *process.Process, dir record.Dir, into string) error {
	c, err := documents.Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return process.Usagef("'plimsoll run CONFIGURATION' and 'plimsoll kube-burner init' leave one", "--documents: %s is not a run of a kube-burner configuration", dir)
	}
	if err != nil {
		return err
	}
	list, err := documents.Make(dir, c)
	if err != nil {
		return fmt.Errorf("make the documents of %s: %w", dir, err)
	}
	n, err := documents.Write(".", documents.Place{Directory: into, Named: true}, list)
	if err == nil {
		p.Logf("%d documents are in %s\n", n, into)
	}
	return err
}
