package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/image"
	"plimsoll.dev/plimsoll/internal/lab"
)

// imageAgent is the image of the workloads' own containers.
const imageAgent = "agent"

// imagePostgres is the image of the workloads' database.
const imagePostgres = "postgresql"

func imageNames() []string { return []string{imageAgent, imagePostgres} }

func newImageCommand(p *Process) *cobra.Command {
	return group(&cobra.Command{
		Use:   "image",
		Short: "Make the images that the workloads run, without a registry or a daemon",
		Long: `Make the images that the workloads run. A laboratory's real node has them
the agent, and PostgreSQL if that was built before it was made; for another cluster push them to a registry that it can reach, or save
them to a file and load that on its nodes.

The images are: ` + strings.Join(imageNames(), ", ") + `.`,
	}, newImageBuildCommand(p), newImageSaveCommand(p), newImagePushCommand(p))
}

// makeImage makes an image by its name. When it is not needed any more, done
// removes what it was made of.
func makeImage(ctx context.Context, p *Process, name string) (made v1.Image, reference string, done func(), err error) {
	if !slices.Contains(imageNames(), name) {
		return nil, "", nil, usagef(didYouMean(name, imageNames(), "there is: "+strings.Join(imageNames(), ", ")), "there is no image %q", name)
	}
	if !image.HasAgent() {
		p.logf("note: this program was built without the small agent (make build adds it): the image holds the whole program\n")
	}
	done = func() {}
	if name == imageAgent {
		made, err = image.Agent(p.Executable)
		return made, image.AgentReference, done, err
	}
	dir, err := os.MkdirTemp("", "plimsoll-image")
	if err != nil {
		return nil, "", nil, fmt.Errorf("make image %s: %w", name, err)
	}
	done = func() { os.RemoveAll(dir) }
	made, err = image.PostgreSQL(ctx, p.Executable, dir)
	if err != nil {
		done()
	}
	return made, image.PostgresReference, done, err
}

// imageFile is where a built image is kept, for laboratories to come.
func imageFile(stateDir, name string) string {
	return filepath.Join(stateDir, lab.ImagesDir, name+".tar")
}

// buildImage makes an image and keeps it.
func buildImage(ctx context.Context, p *Process, name string) (made v1.Image, reference, file string, err error) {
	made, reference, done, err := makeImage(ctx, p, name)
	if err != nil {
		return nil, "", "", err
	}
	defer done()
	dir, err := p.stateDir()
	if err != nil {
		return nil, "", "", err
	}
	file = imageFile(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, "", "", fmt.Errorf("build image %s: %w", name, err)
	}
	// In one move, so that a laboratory never imports half of it.
	if err := image.Save(made, reference, file+".new"); err != nil {
		return nil, "", "", imageUsage(err)
	}
	return made, reference, file, os.Rename(file+".new", file)
}

// imageUsage makes usage errors of names that no image can have.
func imageUsage(err error) error {
	var bad *image.ReferenceError
	if errors.As(err, &bad) {
		return usagef("for example registry.example:5000/team", "%w", err)
	}
	return err
}

// describeImage says in a line what was made.
func describeImage(made v1.Image, reference string) (string, error) {
	digest, err := made.Digest()
	if err != nil {
		return "", fmt.Errorf("describe image %s: %w", reference, err)
	}
	layers, err := made.Layers()
	if err != nil {
		return "", fmt.Errorf("describe image %s: %w", reference, err)
	}
	var size int64
	for _, l := range layers {
		n, err := l.Size()
		if err != nil {
			return "", fmt.Errorf("describe image %s: %w", reference, err)
		}
		size += n
	}
	return fmt.Sprintf("%s  %s  %.1f MiB", reference, digest, float64(size)/(1<<20)), nil
}

func newImageBuildCommand(p *Process) *cobra.Command {
	return &cobra.Command{
		Use:       "build NAME",
		Short:     "Make an image and keep it for the real nodes of laboratories to come",
		Example:   `  plimsoll image build postgresql`,
		Args:      exactlyOne("image"),
		ValidArgs: imageNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			made, reference, file, err := buildImage(cmd.Context(), p, args[0])
			if err != nil {
				return err
			}
			return tellImage(p, made, reference, file)
		},
	}
}

// tellImage says what was made and where it is.
func tellImage(p *Process, made v1.Image, reference, file string) error {
	line, err := describeImage(made, reference)
	if err != nil {
		return err
	}
	p.printf("%s  %s\n", line, file)
	return nil
}

func newImageSaveCommand(p *Process) *cobra.Command {
	var reference string
	cmd := &cobra.Command{
		Use:   "save NAME FILE",
		Short: "Write an image to a file that docker, podman and ctr load",
		Example: `  plimsoll image save agent agent.tar
  ctr -n k8s.io images import agent.tar`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("for example 'plimsoll image save agent agent.tar'", "want an image and a file")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			made, standard, done, err := makeImage(cmd.Context(), p, args[0])
			if err != nil {
				return err
			}
			defer done()
			if reference == "" {
				reference = standard
			}
			if err := image.Save(made, reference, args[1]); err != nil {
				return imageUsage(err)
			}
			return tellImage(p, made, reference, args[1])
		},
	}
	cmd.Flags().StringVar(&reference, "as", "", "`reference` that the image has in the file")
	return cmd
}

func newImagePushCommand(p *Process) *cobra.Command {
	var insecure bool
	var names []string
	cmd := &cobra.Command{
		Use:   "push REGISTRY",
		Short: "Send the images to a registry",
		Long: `Send the images to a registry, under its name or a path in it, with the
credentials that docker or podman have for it. What it prints is what --set
image= takes.`,
		Example: `  plimsoll image push registry.example:5000/team
  plimsoll limit node-density --kubeconfig k --set image=registry.example:5000/team/plimsoll-agent:latest`,
		Args: exactlyOne("registry"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, n := range names {
				if err := pushImage(cmd.Context(), p, n, args[0], insecure); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&insecure, "insecure", false, "the registry speaks plain HTTP")
	cmd.Flags().StringSliceVar(&names, "image", imageNames(), "which images")
	return cmd
}

func pushImage(ctx context.Context, p *Process, name, registry string, insecure bool) error {
	made, standard, done, err := makeImage(ctx, p, name)
	if err != nil {
		return err
	}
	defer done()
	reference := strings.TrimSuffix(registry, "/") + "/" + strings.TrimPrefix(standard, "localhost/")
	if err := image.Push(ctx, made, reference, insecure); err != nil {
		return imageUsage(err)
	}
	line, err := describeImage(made, reference)
	if err != nil {
		return err
	}
	p.printf("%s\n", line)
	return nil
}
