package process

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/size"
	"plimsoll.dev/plimsoll/workloads"
)

// PrometheusToken names the environment variable that holds the bearer token of a Prometheus.
const PrometheusToken = "PLIMSOLL_PROMETHEUS_TOKEN"

// LoadWorkload finds a workload by its name, its directory, or its file in kube-burner's
// format. Users' mistakes are usage errors.
func LoadWorkload(name string) (*workload.Workload, error) { return LoadAllowed(name, nil) }

// LoadAllowed does what LoadWorkload does; a file in kube-burner's format may also read the allowed files and
// directories.
func LoadAllowed(name string, allow []string) (*workload.Workload, error) {
	var unknown *workload.UnknownError
	var w *workload.Workload
	var err error
	if dir, ok := Configuration(name); ok {
		w, err = workload.OfConfiguration(admitting{dir, filepath.Dir(name), allow}, filepath.Base(name), Clusters())
	} else if strings.ContainsRune(name, filepath.Separator) || name == "." {
		// Links within it lead nowhere else.
		var root *os.Root
		if root, err = os.OpenRoot(name); err == nil {
			w, err = workload.Read(root.FS(), Targets())
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, Usagef("'plimsoll workloads export NAME DIR' writes one to start with", "there is no workload in %s: it has no %s", name, workload.File)
		}
	} else {
		w, err = workload.Load(workloads.FS(), name, Targets())
	}
	switch {
	case errors.As(err, &unknown):
		return nil, Usagef(nearest.Hint(unknown.Name, unknown.Known, "there is: "+strings.Join(unknown.Known, ", ")+"; write a directory with a slash: ./"+name),
			"there is no workload %q", unknown.Name)
	case err != nil:
		return nil, Usagef("", "%w", err)
	}
	return w, nil
}

// admitting is a directory, from which names lead to allowed files and directories elsewhere too.
type admitting struct {
	fs.FS
	dir   string
	allow []string
}

// Open implements fs.FS. A name that leads elsewhere is fs.ErrInvalid.
func (a admitting) Open(name string) (fs.File, error) {
	if fs.ValidPath(name) {
		f, err := a.FS.Open(name)
		// kube-burner reads what is named from the working directory; that may be a file in the same directory.
		if rest, below := strings.CutPrefix(name, filepath.ToSlash(a.dir)+"/"); below && errors.Is(err, fs.ErrNotExist) {
			return a.FS.Open(rest)
		}
		return f, err
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(a.dir, name)
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	for _, allowed := range a.allow {
		if allowed, err = filepath.Abs(allowed); err != nil {
			return nil, err
		}
		within, err := filepath.Rel(allowed, path)
		switch {
		case err != nil || !filepath.IsLocal(within):
		case within == ".":
			return os.Open(path)
		default: // links within the directory lead nowhere else
			root, err := os.OpenRoot(allowed)
			if err != nil {
				return nil, err
			}
			defer root.Close()
			return root.Open(within)
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
}

// Configuration reports whether a name is a file in kube-burner's format, and returns its
// directory, whose links lead nowhere else.
func Configuration(name string) (fs.FS, bool) {
	if ext := filepath.Ext(name); ext != ".yml" && ext != ".yaml" && ext != ".json" {
		return nil, false
	}
	text, err := size.ReadFile(name)
	s := "\n" + string(text)
	asks := strings.Contains(s, "\njobs:") || strings.Contains(s, "\nglobal:") && strings.Contains(s, "measurements:") // for 'kube-burner measure'
	if err != nil || !asks || strings.Contains(s, "\nschema:") {
		return nil, false
	}
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return nil, false
	}
	return root.FS(), true
}

// LoadPlan reads an experiment file. Users' mistakes are usage errors.
func LoadPlan(file string) (*plan.Plan, error) {
	loaded, err := plan.Load(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Usagef(nearest.File(file), "file %s does not exist", file)
	case err != nil:
		return nil, Usagef("", "%w", err)
	}
	return loaded, nil
}

// ClusterFlags name a cluster, or none.
type ClusterFlags struct {
	Kubeconfig, Context, Lab string
	InCluster                bool
}

// Add adds the flags, to do with the cluster what verb says.
func (c *ClusterFlags) Add(cmd *cobra.Command, verb string) {
	flags := cmd.Flags()
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", verb+" the cluster of this kubeconfig `file`")
	flags.StringVar(&c.Context, "context", "", "the kubeconfig's context, by default its current one")
	flags.StringVar(&c.Lab, "lab", "", verb+" the lab of this `name`")
	flags.BoolVar(&c.InCluster, "in-cluster", false, verb+" the cluster that this program runs in")
}

// Check refuses two clusters, and with missing none.
func (c *ClusterFlags) Check(missing error) error {
	var named []string
	if c.Lab != "" {
		named = append(named, "--lab")
	}
	if c.Kubeconfig != "" {
		named = append(named, "--kubeconfig")
	}
	if c.InCluster {
		named = append(named, "--in-cluster")
	}
	switch {
	case len(named) > 1:
		return Usagef("keep one of them", "%s each name a cluster", strings.Join(named, " and "))
	case c.InCluster && c.Context != "":
		return Usagef("leave it out, or give --kubeconfig FILE", "--context belongs to a kubeconfig, and --in-cluster reads none")
	case len(named) == 0:
		return missing
	}
	return nil
}

// Connect opens a connection to the cluster; l is its lab if that was
// named, else nil.
func (c *ClusterFlags) Connect(ctx context.Context, p *Process) (connected *kubernetes.Cluster, l *lab.Lab, err error) {
	at := kubernetes.Settings{Kubeconfig: c.Kubeconfig, Context: c.Context, InCluster: c.InCluster}
	if c.Lab != "" {
		if l, err = kubernetes.OpenLab(ctx, p.Host(), c.Lab); err != nil {
			return nil, nil, err
		}
		at.Kubeconfig = l.Kubeconfig()
	}
	connected, err = at.Connect(p.Host())
	return connected, l, err
}
