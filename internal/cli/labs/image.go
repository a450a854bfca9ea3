package labs

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpproxy"

	"plimsoll.dev/plimsoll/internal/cli/experiment"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/size"
)

func newImageCommand(p *process.Process) *cobra.Command {
	return process.Group(&cobra.Command{
		Use:   "image",
		Short: "Build images of the workloads and of this program, without a daemon",
		Long: `Build the images that the workloads run: ` + strings.Join(lab.WorkloadImages(), ", ") + `. A lab's real node has
the agent, and each other image that was built before the lab was created. For another
cluster, push the images to a registry that it can reach, or save them to a file and
load the file on its nodes.

The image ` + lab.ImageSelf + ` is this program, for a pod that loads the cluster that it runs in.
It runs as user 65532 with a read-only root, and writes below ` + image.SelfData + `, a volume.

With --from the images ` + lab.ImageAgent + ` and ` + lab.ImageSelf + ` are made of a release, for each architecture of
Linux that it has. The image ` + lab.ImageTraefik + `, the ingress controller of labs, is made of a program:
that in $PATH, or --from FILE.`,
	}, newImageBuildCommand(p), experiment.NewImageListCommand(p), newImageSaveCommand(p), newImagePushCommand(p))
}

// releaseFlag adds the flag of the directory of a release.
func releaseFlag(cmd *cobra.Command, from *string) {
	cmd.Flags().StringVar(from, "from", "", "`directory` of a release (its archives and checksums.txt), or Traefik's program, that the image is made of")
}

// images returns the store that makes the image of that name, of a release or with "" of this program.
func images(p *process.Process, name, release string) (lab.Store, error) {
	names := lab.ImageNames()
	if !slices.Contains(names, name) {
		return lab.Store{}, process.Usagef(nearest.Hint(name, names, "there is: "+strings.Join(names, ", ")), "there is no image %q", name)
	}
	switch {
	case release != "" && (name == lab.ImagePostgreSQL || name == lab.ImageFio):
		return lab.Store{}, process.Usagef("leave --from out, or name the images of a release: "+lab.ImageAgent+", "+lab.ImageSelf, "the image %s is made of a distribution's packages, and no release has it", name)
	case release == "" && runtime.GOOS != "linux":
		return lab.Store{}, &system.UnableError{Err: fmt.Errorf("the image %s needs a program for Linux", name), Hint: "give the directory of a release: --from DIR"}
	case release == "" && slices.Contains([]string{lab.ImageAgent, lab.ImagePostgreSQL, lab.ImageFio}, name) && !image.HasAgent():
		p.Logf("note: this program was built without the small agent (make build adds it): the image contains the whole program\n")
	}
	dir, err := p.StateDir()
	return lab.Store{Root: dir, Executable: p.Executable, From: release}, err
}

// imageError makes usage errors of names that no image can have, and says what to do about a registry that
// took no image.
func imageError(err error) error {
	if _, ok := errors.AsType[*image.ReferenceError](err); ok {
		return process.Usagef("for example registry.example:5000/team", "%w", err)
	}
	hint := ""
	refused, isRefused := errors.AsType[*transport.Error](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	switch {
	case unknown:
		hint = "give the registry's certificate authority: --registry-ca FILE"
	case isRefused && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden):
		hint = "log in: docker login REGISTRY, or podman login REGISTRY"
	case errors.Is(err, http.ErrSchemeMismatch):
		hint = "the registry speaks plain HTTP: --insecure"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		hint = "push again: the registry keeps the layers that it has"
	}
	if hint == "" {
		return kubernetes.LabError(err)
	}
	return &system.UnableError{Err: err, Hint: hint}
}

func newImageBuildCommand(p *process.Process) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:       "build NAME",
		Short:     "Build an image and keep it for the real nodes of later labs",
		Example:   `  plimsoll image build postgresql`,
		Args:      process.ExactlyOne("image"),
		ValidArgs: lab.ImageNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := images(p, args[0], from)
			if err != nil {
				return err
			}
			made, reference, file, err := store.BuildImage(cmd.Context(), args[0])
			if err != nil {
				return imageError(err)
			}
			return tellImage(p, made, reference, file)
		},
	}
	releaseFlag(cmd, &from)
	return cmd
}

// tellImage says what was made, and in which file it is, "" for none.
func tellImage(p *process.Process, made image.Made, reference, file string) error {
	digest, err := made.Digest()
	var bytes int64
	if err == nil {
		bytes, err = image.Size(made)
	}
	if err != nil {
		return fmt.Errorf("describe image %s: %w", reference, err)
	}
	line := fmt.Sprintf("%s  %s  %.1f MiB", reference, digest, float64(bytes)/(1<<20))
	if file != "" {
		line += "  " + file
	}
	p.Printf("%s\n", line)
	return nil
}

func newImageSaveCommand(p *process.Process) *cobra.Command {
	var reference, from string
	cmd := &cobra.Command{
		Use:   "save NAME FILE",
		Short: "Write an image to a file that docker, podman and ctr load",
		Long: `Write an image to a file that docker, podman and ctr load: of a release (--from), with
all its architectures, as an OCI layout.`,
		Example: `  plimsoll image save agent agent.tar
  ctr -n k8s.io images import agent.tar
  plimsoll image save self plimsoll.tar --from dist`,
		Args: process.ExactlyTwo("want an image and a file", "plimsoll image save agent agent.tar"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return makeImage(cmd.Context(), p, args[0], from, args[1], func(made image.Made, standard string) (string, error) {
				reference = cmp.Or(reference, standard)
				return reference, image.Save(made, reference, args[1])
			})
		},
	}
	releaseFlag(cmd, &from)
	cmd.Flags().StringVar(&reference, "as", "", "`reference` of the image in the file")
	return cmd
}

func newImagePushCommand(p *process.Process) *cobra.Command {
	var to image.Registry
	var names []string
	var from, authority string
	cmd := &cobra.Command{
		Use:   "push REGISTRY",
		Short: "Push the images to a registry",
		Long: `Push the images of the workloads, or those of --image, to a registry or a path in it,
with the credentials of docker or podman, and by the proxy of $HTTPS_PROXY. With
--images and the same path a run, and 'plimsoll check', takes them from there.

For a registry that this network does not reach, save images here, carry the file
there, and push it with --from FILE.`,
		Example: `  plimsoll image push registry.example:5000/team
  plimsoll limit node-density-cni --kubeconfig k --images registry.example:5000/team
  plimsoll image push registry.example:5000/team --image self --from dist
  plimsoll image push registry.example:5000/team --from plimsoll.tar --registry-ca ca.pem`,
		Args: process.ExactlyOne("registry"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if authority != "" {
				var err error
				if to.Authority, err = size.ReadFile(authority); err != nil {
					return process.Usagef("give a PEM file with certificates", "--registry-ca: %w", err)
				}
			}
			env := func(name string) string { return cmp.Or(p.Env(name), p.Env(strings.ToLower(name))) }
			proxy := (&httpproxy.Config{HTTPProxy: env("HTTP_PROXY"), HTTPSProxy: env("HTTPS_PROXY"), NoProxy: env("NO_PROXY")}).ProxyFunc()
			to.Proxy = func(r *http.Request) (*url.URL, error) { return proxy(r.URL) }
			put := func(made image.Made, standard string) (string, error) {
				reference, err := image.At(args[0], standard)
				if err != nil {
					return "", err
				}
				return reference, image.Push(cmd.Context(), made, reference, to)
			}
			if info, err := os.Stat(from); err == nil && !info.IsDir() {
				if cmd.Flags().Changed("image") {
					return process.Usagef("leave --image out", "--from %s: all images of the file are pushed", from)
				}
				return pushSaved(p, from, put)
			} else if err != nil && from != "" {
				return process.Usagef("give a file of 'plimsoll image save', or the directory of a release", "--from: %w", err)
			}
			for _, n := range names {
				if err := makeImage(cmd.Context(), p, n, from, "", put); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&to.Insecure, "insecure", false, "use plain HTTP")
	cmd.Flags().StringVar(&authority, "registry-ca", "", "`file` with the registry's certificate authority (PEM), trusted besides the system's")
	cmd.Flags().StringVar(&from, "from", "", "`file` of 'plimsoll image save', or directory of a release that the images are made of")
	cmd.Flags().StringSliceVar(&names, "image", lab.WorkloadImages(), "which images: "+strings.Join(lab.ImageNames(), ", "))
	return cmd
}

// pushSaved pushes the images of a file.
func pushSaved(p *process.Process, file string, put func(made image.Made, standard string) (string, error)) error {
	list, done, err := image.Read(file)
	if err != nil {
		return err
	}
	defer done()
	for _, saved := range list {
		_, name, _ := strings.Cut(saved.Reference, "/") // without the registry
		reference, err := put(saved.Made, name)
		if err != nil {
			return imageError(err)
		}
		if err := tellImage(p, saved.Made, reference, ""); err != nil {
			return err
		}
	}
	return nil
}

// makeImage makes an image, has it put somewhere, and says by which reference it is
// there; file as for tellImage.
func makeImage(ctx context.Context, p *process.Process, name, from, file string, put func(made image.Made, standard string) (string, error)) error {
	store, err := images(p, name, from)
	if err != nil {
		return err
	}
	made, standard, done, err := store.MakeImage(ctx, name)
	if err != nil {
		return imageError(err)
	}
	defer done()
	reference, err := put(made, standard)
	if err != nil {
		return imageError(err)
	}
	return tellImage(p, made, reference, file)
}
