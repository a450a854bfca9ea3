package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Made is an image, or an index of one image for each platform.
type Made interface {
	remote.Taggable
	Digest() (v1.Hash, error)
}

// Size returns the bytes of all layers.
func Size(made Made) (size int64, err error) {
	if index, ok := made.(v1.ImageIndex); ok {
		manifest, err := index.IndexManifest()
		if err != nil {
			return 0, err
		}
		for _, m := range manifest.Manifests {
			one, err := index.Image(m.Digest)
			if err != nil {
				return 0, err
			}
			n, err := Size(one)
			if size += n; err != nil {
				return 0, err
			}
		}
		return size, nil
	}
	layers, err := made.(v1.Image).Layers()
	for _, l := range layers {
		n, err := l.Size()
		if size += n; err != nil {
			return 0, err
		}
	}
	return size, err
}

// released matches the archives of Linux in checksums.txt; its groups are digest, file and architecture.
var released = regexp.MustCompile(`^([0-9a-f]{64})  (plimsoll_[^/]*_linux_([a-z0-9]+)\.tar\.gz)$`)

// SelfOf makes the image of the programs in a directory of a release, for each architecture of Linux.
func SelfOf(dir string) (v1.ImageIndex, error) { return indexOf(dir, "plimsoll", selfOf) }

// AgentOf makes the agent's image of the programs in a directory of a release, likewise.
func AgentOf(dir string) (v1.ImageIndex, error) { return indexOf(dir, "agent", agentOf) }

func indexOf(dir, program string, imageOf func(program []byte, arch string) (v1.Image, error)) (v1.ImageIndex, error) {
	list, err := os.ReadFile(filepath.Join(dir, "checksums.txt"))
	if err != nil {
		return nil, fmt.Errorf("%s is not the directory of a release: %w", dir, err)
	}
	index := v1.ImageIndex(empty.Index)
	n := 0
	for lines := bufio.NewScanner(bytes.NewReader(list)); lines.Scan(); {
		m := released.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		file := filepath.Join(dir, m[2])
		data, err := readProgram(file, m[1], program)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		one, err := imageOf(data, m[3])
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: m[3]}}})
		n++
	}
	if n == 0 {
		return nil, fmt.Errorf("%s has no program for Linux: checksums.txt names none", dir)
	}
	return index, nil
}

// readProgram returns a program of an archive that has this SHA-256.
func readProgram(file, sum, program string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if is := sha256.Sum256(text); hex.EncodeToString(is[:]) != sum {
		return nil, errors.New("the archive is damaged: its SHA-256 is not the one in checksums.txt")
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(z); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("it holds no %s", program)
		}
		if err != nil {
			return nil, err
		}
		if path.Base(head.Name) == program {
			return io.ReadAll(r)
		}
	}
}

// Annotations that name an image of a layout, for containerd and for others.
const (
	keyContainerd = "io.containerd.image.name"
	keyOCI        = "org.opencontainers.image.ref.name"
)

func saveLayout(index v1.ImageIndex, reference, file string) (err error) {
	dir, err := os.MkdirTemp("", "plimsoll-image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	at, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = at.AppendIndex(index, layout.WithAnnotations(map[string]string{keyContainerd: reference, keyOCI: reference}))
	}
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w := tar.NewWriter(f)
	return errors.Join(w.AddFS(os.DirFS(dir)), w.Close(), f.Close())
}

// Saved is an image of a file, with the reference that it was saved by.
type Saved struct {
	Made
	Reference string
}

// Read reads the images of a file that Save wrote, until done is called.
func Read(file string) (list []Saved, done func(), err error) {
	dir, err := os.MkdirTemp("", "plimsoll-image")
	if err != nil {
		return nil, nil, err
	}
	done = func() { os.RemoveAll(dir) }
	if err := extract(file, dir); err != nil {
		done()
		return nil, nil, fmt.Errorf("read %s: %w", file, err)
	}
	if list, err = savedLayout(dir); errors.Is(err, fs.ErrNotExist) {
		list, err = savedByDocker(file)
	}
	if err == nil && len(list) == 0 {
		err = errors.New("it names no image")
	}
	if err != nil {
		done()
		return nil, nil, fmt.Errorf("%s is not a file of 'plimsoll image save': %w", file, err)
	}
	return list, done, nil
}

// extract writes the files of an archive below a directory. It needs the end of the archive: one that was cut
// between two files looks whole to a reader.
func extract(file, dir string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	cut := errors.New("the archive is cut")
	var end [1024]byte
	if info, err := f.Stat(); err != nil {
		return err
	} else if _, err := f.ReadAt(end[:], max(0, info.Size()-int64(len(end)))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for r := tar.NewReader(f); ; {
		head, err := r.Next()
		switch {
		case errors.Is(err, io.EOF) && end != [1024]byte{}, errors.Is(err, io.ErrUnexpectedEOF):
			return cut
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case head.Typeflag != tar.TypeReg:
			continue
		}
		if err := root.MkdirAll(path.Dir(head.Name), 0o700); err != nil {
			return err
		}
		to, err := root.Create(head.Name)
		if err != nil {
			return err
		}
		_, err = io.Copy(to, r)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = cut
		}
		if err := errors.Join(err, to.Close()); err != nil {
			return err
		}
	}
}

func savedLayout(dir string) (list []Saved, err error) {
	if _, err := os.Stat(filepath.Join(dir, "index.json")); err != nil {
		return nil, err
	}
	all, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, m := range manifest.Manifests {
		saved := Saved{Reference: m.Annotations[keyContainerd]}
		if m.MediaType.IsIndex() {
			saved.Made, err = all.ImageIndex(m.Digest)
		} else {
			saved.Made, err = all.Image(m.Digest)
		}
		if err != nil {
			return nil, err
		}
		if saved.Reference != "" {
			list = append(list, saved)
		}
	}
	return list, nil
}

// Reference returns the reference of the image in a file that Save wrote for one platform.
func Reference(file string) (string, error) {
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(file) })
	if err == nil && (len(manifest) != 1 || len(manifest[0].RepoTags) != 1) {
		err = errors.New("it does not name one image")
	}
	if err != nil {
		return "", fmt.Errorf("read image %s: %w", file, err)
	}
	return manifest[0].RepoTags[0], nil
}

func savedByDocker(file string) (list []Saved, err error) {
	open := func() (io.ReadCloser, error) { return os.Open(file) }
	manifest, err := tarball.LoadManifest(open)
	if err != nil {
		return nil, err
	}
	for _, m := range manifest {
		for _, reference := range m.RepoTags {
			tag, err := name.NewTag(reference)
			if err != nil {
				return nil, err
			}
			made, err := tarball.Image(open, &tag)
			if err != nil {
				return nil, err
			}
			list = append(list, Saved{made, reference})
		}
	}
	return list, nil
}
