// Package image makes container images without a daemon and writes them to a file, a registry or a lab.
package image

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"debug/elf"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Local begins the references of images in no registry: a node has the image or cannot run it.
const Local = "localhost/"

// References of the images on a lab's real node.
const (
	AgentReference = Local + "plimsoll-agent:latest"
	SelfReference  = Local + "plimsoll:latest"
)

// TraefikReference returns the reference of the image of a version of Traefik.
func TraefikReference(version string) string { return Local + "plimsoll-traefik:" + version }

// At returns a local image's reference in a registry, or in a path of one, or a *ReferenceError.
func At(registry, local string) (string, error) {
	reference := strings.TrimSuffix(registry, "/") + "/" + strings.TrimPrefix(local, Local)
	if at := strings.LastIndexByte(reference, '@'); at >= 0 || strings.Contains(reference, "://") {
		return "", &ReferenceError{reference[at+1:], errors.New("it has no scheme, no user and no digest")} // what is before @ may be a password
	}
	for part := range strings.SplitSeq(reference, "/") {
		if strings.Trim(part, ".") == "" {
			return "", &ReferenceError{reference, fmt.Errorf("no part of a name is %q", part)}
		}
	}
	if _, err := name.NewTag(reference); err != nil {
		return "", &ReferenceError{reference, err}
	}
	return reference, nil
}

// Check returns a *ReferenceError for what no image can be named by.
func Check(reference string) error {
	if _, err := name.ParseReference(reference); err != nil {
		return &ReferenceError{reference, err}
	}
	return nil
}

// noRoot is a user by number: a kubelet that must not run root cannot tell what a name stands for.
const noRoot = "65532:0"

// built holds the agent when the program was built with it (make build).
//
//go:embed all:built
var built embed.FS

const builtAgent = "built/agent"

// Agent makes the image of the agent, a static program with a role for each kind of container. A program
// without the built agent uses its own executable, which is twenty times as large.
func Agent(executable string) (v1.Image, error) {
	program, err := agentProgram(executable)
	if err != nil {
		return nil, fmt.Errorf("make the agent's image: %w", err)
	}
	return agentOf(program, runtime.GOARCH)
}

func agentProgram(executable string) ([]byte, error) {
	program, err := built.ReadFile(builtAgent)
	if errors.Is(err, fs.ErrNotExist) {
		program, err = os.ReadFile(executable)
	}
	return program, err
}

func agentOf(program []byte, arch string) (v1.Image, error) {
	return programImage(program, "agent", tmp(), arch, v1.Config{Cmd: []string{"pause"}, WorkingDir: "/"})
}

// Self makes the image of this program, for a pod that loads the cluster that it runs in. The program
// writes to SelfData alone, where the pod mounts a volume; the rest of the root may be read-only.
func Self(executable string) (v1.Image, error) {
	program, err := os.ReadFile(executable)
	if err != nil {
		return nil, fmt.Errorf("make the image of this program: %w", err)
	}
	return selfOf(program, runtime.GOARCH)
}

func selfOf(program []byte, arch string) (v1.Image, error) {
	return programImage(program, "plimsoll", tar.Header{Name: strings.TrimPrefix(SelfData, "/") + "/", Typeflag: tar.TypeDir, Mode: 0o777}, arch, v1.Config{
		WorkingDir: SelfData, Env: []string{"HOME=" + SelfData, "XDG_STATE_HOME=" + SelfData, "TMPDIR=" + SelfData},
	})
}

// Traefik makes the image of Traefik, an ingress controller, from its program at a path.
func Traefik(path string) (v1.Image, error) {
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("make the image of Traefik: %w", err)
	}
	return programImage(program, "traefik", tmp(), runtime.GOARCH, v1.Config{WorkingDir: "/"})
}

// tmp returns the directory of temporary files.
func tmp() tar.Header { return tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777} }

// programImage makes an image that runs a static program of that name, beside a directory.
func programImage(program []byte, name string, directory tar.Header, arch string, config v1.Config) (v1.Image, error) {
	config.Entrypoint, config.User = []string{"/" + name}, noRoot
	layer, err := programLayer(program, name, directory)
	var image v1.Image
	if err == nil {
		image, err = assemble(arch, config, layer)
	}
	if err != nil {
		return nil, fmt.Errorf("make the image of %s: %w", name, err)
	}
	return image, nil
}

// SelfData is the directory of the state, the records and the temporary files of a program in its image.
const SelfData = "/data"

// alone fails for a program that needs other files to start, which the image does not have.
func alone(program []byte) error {
	file, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("not a Linux program: %w", err)
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("the program was linked dynamically, and cannot start in an image that holds nothing else: build it with CGO_ENABLED=0, as make does")
		}
	}
	return nil
}

// programLayer makes a layer of a directory and a static program of that name.
func programLayer(program []byte, name string, directory tar.Header) ([]byte, error) {
	if err := alone(program); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{directory, {Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(program))}} {
		// The same program must make the same image.
		h.ModTime = time.Unix(0, 0)
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
	}
	if _, err := w.Write(program); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// HasAgent reports whether the program was built with the small agent.
func HasAgent() bool {
	_, err := fs.Stat(built, builtAgent)
	return err == nil
}

// assemble makes an image of layers, each a tar archive.
func assemble(arch string, config v1.Config, layers ...[]byte) (v1.Image, error) {
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: "linux", Architecture: arch, Config: config, RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	for _, data := range layers {
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(data)), nil
		}, tarball.WithCompression(compression.None))
		if err != nil {
			return nil, err
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return nil, err
		}
	}
	return image, nil
}

// ReferenceError reports an invalid reference of an image.
type ReferenceError struct {
	Reference string
	Err       error
}

func (e *ReferenceError) Error() string { return fmt.Sprintf("image %q: %v", e.Reference, e.Err) }

// Unwrap returns the cause.
func (e *ReferenceError) Unwrap() error { return e.Err }

// Save writes an image as `docker save` would, and an index as an OCI layout in a tar archive. It returns a
// *ReferenceError for a bad reference.
func Save(made Made, reference, file string) error {
	tag, err := name.NewTag(reference)
	if err != nil {
		return &ReferenceError{reference, err}
	}
	switch it := made.(type) {
	case v1.ImageIndex:
		err = saveLayout(it, reference, file)
	case v1.Image:
		err = tarball.WriteToFile(file, tag, it)
	}
	if err != nil {
		return fmt.Errorf("save image %s: %w", reference, err)
	}
	return nil
}

// Registry says how a registry is reached.
type Registry struct {
	Insecure  bool                                  // by plain HTTP
	Authority []byte                                // a certificate authority (PEM) besides the system's, or nil
	Proxy     func(*http.Request) (*url.URL, error) // nil for none
}

// Push sends an image to a registry with docker's or podman's credentials. It returns a *ReferenceError for
// a bad reference.
func Push(ctx context.Context, made Made, reference string, to Registry) error {
	var options []name.Option
	if to.Insecure {
		options = append(options, name.Insecure)
	}
	tag, err := name.NewTag(reference, options...)
	if err != nil {
		return &ReferenceError{reference, err}
	}
	transport := remote.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = to.Proxy
	if to.Authority != nil {
		known, err := x509.SystemCertPool()
		if err != nil {
			known = x509.NewCertPool()
		}
		if !known.AppendCertsFromPEM(to.Authority) {
			return fmt.Errorf("push image %s: the certificate authority is not a PEM file with certificates", reference)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: known}
	}
	if err := remote.Push(tag, made, remote.WithContext(ctx), remote.WithTransport(transport), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push image %s: %w", reference, err)
	}
	return nil
}
