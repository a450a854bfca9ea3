package labs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/text/nearest"
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
It runs as user 65532 with a read-only root, and writes below ` + image.SelfData + `, a volume.`,
	}, newImageBuildCommand(p), newImageSaveCommand(p), newImagePushCommand(p))
}

// images returns the store that makes the image of that name.
func images(p *process.Process, name string) (lab.Store, error) {
	names := lab.ImageNames()
	if !slices.Contains(names, name) {
		return lab.Store{}, process.Usagef(nearest.Hint(name, names, "there is: "+strings.Join(names, ", ")), "there is no image %q", name)
	}
	if name != lab.ImageSelf && !image.HasAgent() {
		p.Logf("note: this program was built without the small agent (make build adds it): the image contains the whole program\n")
	}
	dir, err := p.StateDir()
	return lab.Store{Root: dir, Executable: p.Executable}, err
}

// imageUsage makes usage errors of names that no image can have.
func imageUsage(err error) error {
	if _, ok := errors.AsType[*image.ReferenceError](err); ok {
		return process.Usagef("for example registry.example:5000/team", "%w", err)
	}
	return err
}

// digestAndSize returns the digest of an image and the bytes of its layers.
func digestAndSize(made v1.Image) (digest v1.Hash, size int64, err error) {
	if digest, err = made.Digest(); err != nil {
		return digest, 0, err
	}
	layers, err := made.Layers()
	for _, l := range layers {
		n, err := l.Size()
		if err != nil {
			return digest, 0, err
		}
		size += n
	}
	return digest, size, err
}

func newImageBuildCommand(p *process.Process) *cobra.Command {
	return &cobra.Command{
		Use:       "build NAME",
		Short:     "Build an image and keep it for the real nodes of later labs",
		Example:   `  plimsoll image build postgresql`,
		Args:      process.ExactlyOne("image"),
		ValidArgs: lab.ImageNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := images(p, args[0])
			if err != nil {
				return err
			}
			made, reference, file, err := store.BuildImage(cmd.Context(), args[0])
			if err != nil {
				return imageUsage(err)
			}
			return tellImage(p, made, reference, file)
		},
	}
}

// tellImage says what was made, and in which file it is, "" for none.
func tellImage(p *process.Process, made v1.Image, reference, file string) error {
	digest, size, err := digestAndSize(made)
	if err != nil {
		return fmt.Errorf("describe image %s: %w", reference, err)
	}
	line := fmt.Sprintf("%s  %s  %.1f MiB", reference, digest, float64(size)/(1<<20))
	if file != "" {
		line += "  " + file
	}
	p.Printf("%s\n", line)
	return nil
}

func newImageSaveCommand(p *process.Process) *cobra.Command {
	var reference string
	cmd := &cobra.Command{
		Use:   "save NAME FILE",
		Short: "Write an image to a file that docker, podman and ctr load",
		Example: `  plimsoll image save agent agent.tar
  ctr -n k8s.io images import agent.tar`,
		Args: process.ExactlyTwo("want an image and a file", "plimsoll image save agent agent.tar"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return makeImage(cmd.Context(), p, args[0], args[1], func(made v1.Image, standard string) (string, error) {
				reference = cmp.Or(reference, standard)
				return reference, image.Save(made, reference, args[1])
			})
		},
	}
	cmd.Flags().StringVar(&reference, "as", "", "`reference` of the image in the file")
	return cmd
}

func newImagePushCommand(p *process.Process) *cobra.Command {
	var insecure bool
	var names []string
	cmd := &cobra.Command{
		Use:   "push REGISTRY",
		Short: "Push the images to a registry",
		Long: `Push the images of the workloads, or those of --image, to a registry or a path in it,
with the credentials of docker or podman. With --images and the same path a run, and
'plimsoll check', takes them from there.`,
		Example: `  plimsoll image push registry.example:5000/team
  plimsoll limit node-density-cni --kubeconfig k --images registry.example:5000/team
  plimsoll image push registry.example:5000/team --image self`,
		Args: process.ExactlyOne("registry"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, n := range names {
				if err := makeImage(cmd.Context(), p, n, "", func(made v1.Image, standard string) (string, error) {
					reference, err := image.At(args[0], standard)
					if err != nil {
						return "", err
					}
					return reference, image.Push(cmd.Context(), made, reference, insecure)
				}); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&insecure, "insecure", false, "use plain HTTP")
	cmd.Flags().StringSliceVar(&names, "image", lab.WorkloadImages(), "which images: "+strings.Join(lab.ImageNames(), ", "))
	return cmd
}

// makeImage makes an image, has it put somewhere, and says by which reference it is
// there; file as for tellImage.
func makeImage(ctx context.Context, p *process.Process, name, file string, put func(made v1.Image, standard string) (string, error)) error {
	store, err := images(p, name)
	if err != nil {
		return err
	}
	made, standard, done, err := store.MakeImage(ctx, name)
	if err != nil {
		return err
	}
	defer done()
	reference, err := put(made, standard)
	if err != nil {
		return imageUsage(err)
	}
	return tellImage(p, made, reference, file)
}
