package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// References of the images made of packages, on a lab's real node.
const (
	PostgresReference = Local + "plimsoll-postgresql:latest"
	FioReference      = Local + "plimsoll-fio:latest"
)

// postgresUser owns the database unless the cluster chooses another user: the server refuses root.
const postgresUser = 999

// NoPackagesError reports that this system has no packages to make an image of.
type NoPackagesError struct{ Err error }

func (e *NoPackagesError) Error() string {
	return fmt.Sprintf("the image is made of the packages of Debian or Ubuntu: %v", e.Err)
}

// Unwrap returns the cause.
func (e *NoPackagesError) Unwrap() error { return e.Err }

// PostgreSQL makes the image of a PostgreSQL server from packages that it unpacks in dir, which the image
// needs. The agent makes the database at the start. Without packages it returns a *NoPackagesError.
func PostgreSQL(ctx context.Context, executable, dir string) (v1.Image, error) {
	program, err := agentProgram(executable)
	if err != nil {
		return nil, fmt.Errorf("make the image of PostgreSQL: %w", err)
	}
	return packaged(ctx, program, dir, postgreSQL(), v1.Config{
		Cmd: []string{"postgres"}, User: fmt.Sprintf("%d:0", postgresUser), Env: []string{"PATH=/usr/bin", "HOME=/tmp"},
		ExposedPorts: map[string]struct{}{"5432/tcp": {}},
	})
}

// FioData is the directory of the volume on which the clients of Fio do IO.
const FioData = "/data"

// Fio makes the image of clients that do IO: this program, with all roles of the agent, and fio.
func Fio(ctx context.Context, executable, dir string) (v1.Image, error) {
	program, err := os.ReadFile(executable)
	if err != nil {
		return nil, fmt.Errorf("make the image of fio: %w", err)
	}
	return packaged(ctx, program, dir, fio(), v1.Config{Cmd: []string{"pause"}, User: noRoot, Env: []string{"PATH=/usr/bin", "HOME=/tmp"}})
}

// packaged makes an image of the agent's program, and of what packages have for a root.
func packaged(ctx context.Context, program []byte, dir string, of root, config v1.Config) (image v1.Image, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("make the image of %s: %w", of.what, err)
		}
	}()
	agent, err := programLayer(program, "agent", tmp())
	if err != nil {
		return nil, err
	}
	packages, err := download(ctx, dir, of.packages...)
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	w := newRootWriter(&layer, of)
	for _, p := range packages {
		if err := unpack(ctx, p, w.add); err != nil {
			return nil, err
		}
	}
	if err := w.finish(); err != nil {
		return nil, err
	}
	config.Entrypoint, config.WorkingDir = []string{"/agent"}, "/"
	return assemble(runtime.GOARCH, config, agent, layer.Bytes())
}

// download gets packages with their dependencies, as if nothing were installed.
func download(ctx context.Context, dir string, names ...string) ([]string, error) {
	if err := os.MkdirAll(filepath.Join(dir, "partial"), 0o700); err != nil {
		return nil, err
	}
	status := filepath.Join(dir, "status")
	if err := os.WriteFile(status, nil, 0o600); err != nil {
		return nil, err
	}
	args := append([]string{
		"-o", "Dir::State::status=" + status, "-o", "Dir::Cache::archives=" + dir,
		"-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=root",
		"--yes", "--no-install-recommends", "--download-only", "install",
	}, names...)
	out, err := exec.CommandContext(ctx, "apt-get", args...).CombinedOutput()
	if err != nil {
		return nil, &NoPackagesError{fmt.Errorf("apt-get: %w: %s ('apt-get update' reads what there is)", err, lastLine(out))}
	}
	packages, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err == nil && len(packages) == 0 {
		err = &NoPackagesError{errors.New("apt-get has downloaded none")}
	}
	return packages, err
}

// unpack calls add for each file of a package.
func unpack(ctx context.Context, file string, add func(*tar.Header, io.Reader) error) (err error) {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", file)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return &NoPackagesError{err}
	}
	defer func() {
		_, _ = io.Copy(io.Discard, out) // the program waits for its reader
		if waitErr := cmd.Wait(); err == nil && waitErr != nil {
			err = fmt.Errorf("unpack %s: %w", filepath.Base(file), waitErr)
		}
	}()
	for r := tar.NewReader(out); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = add(header, r)
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", filepath.Base(file), err)
		}
	}
}

// root says what a file system has that runs one program and nothing else.
type root struct {
	what         string // the program
	packages     []string
	program      *regexp.Regexp // its file, perhaps with its version
	wanted, left []*regexp.Regexp
	beside       func(version string) []tar.Header // beside the files of the packages
	accounts     string
}

func patterns(list ...string) (of []*regexp.Regexp) {
	for _, p := range list {
		of = append(of, regexp.MustCompile(p))
	}
	return of
}

// libraries are wanted by every program, and its loader.
const libraries, loader = `^usr/lib/[^/]+-linux-gnu/(ceph/)?[^/]+\.so(\.[^/]*)?$`, `^usr/lib(64)?/ld-[^/]+$`

func postgreSQL() root {
	return root{
		what: "PostgreSQL", packages: []string{"postgresql", "dash"}, program: regexp.MustCompile(`^usr/lib/postgresql/([0-9]+)/bin/postgres$`),
		wanted: patterns(
			`^usr/lib/postgresql/[0-9]+/(bin/(postgres|initdb)$|lib/[^/]+\.so$)`, `^usr/share/postgresql/[0-9]+/`, `^usr/share/zoneinfo/`, libraries, loader,
			`^usr/bin/(sh|dash)$`, // initdb calls the server by a shell
		),
		// Large and unused: the compiler of queries, other languages, manuals.
		left: patterns(`/(llvmjit[^/]*|libLLVM[^/]*|libperl[^/]*|libz3[^/]*)$`, `^usr/share/postgresql/[0-9]+/man/`, `^usr/share/zoneinfo/(right|posix)/`),
		beside: func(version string) []tar.Header {
			return []tar.Header{
				{Name: "postgresql", Typeflag: tar.TypeSymlink, Linkname: "usr/lib/postgresql/" + version},
				// A cluster may run it as any user of the group 0, which needs a name too.
				{Name: "data/", Typeflag: tar.TypeDir, Mode: 0o770, Uid: postgresUser},
			}
		},
		accounts: fmt.Sprintf("root:x:0:0::/:/bin/sh\npostgres:x:%d:0::/tmp:/bin/sh\n", postgresUser),
	}
}

func fio() root {
	return root{
		what: "fio", packages: []string{"fio"}, program: regexp.MustCompile(`^usr/bin/fio()$`), wanted: patterns(`^usr/bin/fio$`, libraries, loader),
		beside: func(string) []tar.Header { return nil }, accounts: "root:x:0:0::/:/bin/sh\n",
	}
}

// rootWriter writes a root as a tar archive.
type rootWriter struct {
	root
	tar     *tar.Writer
	seen    map[string]bool
	found   bool   // the program
	version string // of it, as in the name of its directory
}

func newRootWriter(to io.Writer, of root) *rootWriter {
	return &rootWriter{root: of, tar: tar.NewWriter(to), seen: make(map[string]bool)}
}

// rootName returns a file's name in a root where /bin and /lib are links into /usr.
func rootName(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	for _, dir := range []string{"bin/", "lib/", "lib64/"} {
		if strings.HasPrefix(name, dir) {
			return "usr/" + name
		}
	}
	return name
}

// add takes a file of a package if it is needed: no device, and no rights beyond those of its user.
func (w *rootWriter) add(header *tar.Header, content io.Reader) error {
	name := rootName(header.Name)
	if m := w.program.FindStringSubmatch(name); m != nil {
		w.found, w.version = true, m[1]
	}
	matches := func(r *regexp.Regexp) bool { return r.MatchString(name) }
	if !slices.Contains([]byte{tar.TypeReg, tar.TypeLink, tar.TypeSymlink}, header.Typeflag) || w.seen[name] || !slices.ContainsFunc(w.wanted, matches) || slices.ContainsFunc(w.left, matches) {
		return nil
	}
	w.seen[name] = true
	out := tar.Header{Name: name, Typeflag: header.Typeflag, Mode: header.Mode & 0o777, Size: header.Size, ModTime: header.ModTime, Linkname: header.Linkname}
	if out.Typeflag == tar.TypeLink {
		out.Linkname = rootName(header.Linkname)
	}
	if err := w.tar.WriteHeader(&out); err != nil {
		return err
	}
	_, err := io.Copy(w.tar, content)
	return err
}

func (w *rootWriter) finish() error {
	if !w.found {
		return &NoPackagesError{fmt.Errorf("they hold no %s", w.what)}
	}
	for _, h := range append([]tar.Header{
		{Name: "bin", Typeflag: tar.TypeSymlink, Linkname: "usr/bin"},
		{Name: "lib", Typeflag: tar.TypeSymlink, Linkname: "usr/lib"},
		{Name: "lib64", Typeflag: tar.TypeSymlink, Linkname: "usr/lib64"},
		{Name: "etc/passwd", Typeflag: tar.TypeReg, Mode: 0o664, Size: int64(len(w.accounts))},
	}, w.beside(w.version)...) {
		h.ModTime = time.Unix(0, 0)
		if err := w.tar.WriteHeader(&h); err != nil {
			return err
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w.tar, w.accounts); err != nil {
				return err
			}
		}
	}
	return w.tar.Close()
}
