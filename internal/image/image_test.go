package image

import (
	"archive/tar"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// program is a stand-in for this program, for builds without the agent.
func program(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plimsoll")
	if err := os.WriteFile(file, []byte("the program"), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAgentImageHoldsTheProgramAndItsRole(t *testing.T) {
	image, err := Agent(program(t))
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Config.Entrypoint) == 0 || config.Config.Entrypoint[0] != "/agent" || strings.Join(config.Config.Cmd, " ") != "pause" || config.OS != "linux" {
		t.Errorf("the image is run as %v %v on %s", config.Config.Entrypoint, config.Config.Cmd, config.OS)
	}
	content := mutate.Extract(image)
	defer content.Close()
	found := false
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "agent" {
			found = true
			data, err := io.ReadAll(r)
			if err != nil || h.Mode&0o111 == 0 || !HasAgent() && string(data) != "the program" {
				t.Errorf("the program has mode %o and %d bytes, %v", h.Mode, len(data), err)
			}
		}
	}
	if !found {
		t.Error("there is no program in it")
	}
}

func TestTheSameProgramMakesTheSameImage(t *testing.T) {
	file := program(t)
	first, err1 := Agent(file)
	second, err2 := Agent(file)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	a, err1 := first.Digest()
	b, err2 := second.Digest()
	if err := errors.Join(err1, err2); err != nil || a != b {
		t.Errorf("digests %s and %s, %v", a, b, err)
	}
}

func TestSavedAndPushedImagesAreTheSame(t *testing.T) {
	image, err := Agent(program(t))
	if err != nil {
		t.Fatal(err)
	}
	want, err := image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "agent.tar")
	if err := Save(image, AgentReference, file); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(AgentReference)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := tarball.ImageFromPath(file, &tag)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := saved.ConfigName(); err != nil || got != want {
		t.Errorf("saved as %s, %v; want %s", got, err, want)
	}

	server := httptest.NewServer(registry.New())
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "http://") + "/plimsoll-agent:test"
	if err := Push(t.Context(), image, reference, true); err != nil {
		t.Fatal(err)
	}
	pushed, err := name.ParseReference(reference, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Image(pushed)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pulled.ConfigName(); err != nil || got != want {
		t.Errorf("pushed as %s, %v; want %s", got, err, want)
	}
}

func TestBadReferences(t *testing.T) {
	image, err := Agent(program(t))
	if err != nil {
		t.Fatal(err)
	}
	var bad *ReferenceError
	if err := Save(image, "Not A Name", filepath.Join(t.TempDir(), "x")); !errors.As(err, &bad) {
		t.Errorf("save: %v", err)
	}
	if err := Push(t.Context(), image, "Not A Name", false); !errors.As(err, &bad) {
		t.Errorf("push: %v", err)
	}
	if _, err := Agent(filepath.Join(t.TempDir(), "nothing")); err == nil && !HasAgent() {
		t.Error("an image was made of a program that is not there")
	}
}
