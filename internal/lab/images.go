package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"plimsoll.dev/plimsoll/internal/lab/image"
)

// The images that can be made.
const (
	ImageAgent      = "agent"      // of the workloads' own containers
	ImagePostgreSQL = "postgresql" // of the workloads' database
)

// ImageNames are the images that can be made.
func ImageNames() []string { return []string{ImageAgent, ImagePostgreSQL} }

// MakeImage makes an image by its name, which is one of ImageNames. When it is
// not needed any more, done removes what it was made of.
func (s Store) MakeImage(ctx context.Context, name string) (made v1.Image, reference string, done func(), err error) {
	done = func() {}
	if name == ImageAgent {
		made, err = image.Agent(s.Executable)
		return made, image.AgentReference, done, err
	}
	dir, err := os.MkdirTemp("", "plimsoll-image")
	if err != nil {
		return nil, "", nil, fmt.Errorf("make image %s: %w", name, err)
	}
	done = func() { os.RemoveAll(dir) }
	made, err = image.PostgreSQL(ctx, s.Executable, dir)
	if err != nil {
		done()
	}
	return made, image.PostgresReference, done, err
}

// ImageFile is where a built image is kept, for labs to come.
func (s Store) ImageFile(name string) string {
	return filepath.Join(s.Root, ImagesDir, name+".tar")
}

// BuildImage makes an image and keeps it in a file.
func (s Store) BuildImage(ctx context.Context, name string) (made v1.Image, reference, file string, err error) {
	made, reference, done, err := s.MakeImage(ctx, name)
	if err != nil {
		return nil, "", "", err
	}
	defer done()
	file = s.ImageFile(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, "", "", fmt.Errorf("build image %s: %w", name, err)
	}
	// In one move, so that a lab never imports half of it.
	if err := image.Save(made, reference, file+".new"); err != nil {
		return nil, "", "", err
	}
	return made, reference, file, os.Rename(file+".new", file)
}
