package writeall

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// tree lists what lies below a directory.
func tree(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		list = append(list, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A name may come from somebody else. Whatever it says, nothing outside of the directory
// is written, replaced or made, and none of the other files either.
func TestNamesThatLeadOut(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	in, out := filepath.Join(base, "in"), filepath.Join(base, "out")
	for _, dir := range []string{in, out} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(out, "kept")
	if err := os.WriteFile(kept, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"absolute": out, "relative": "../out", "file": kept, "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(in, name)); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, base)
	for _, name := range []string{"../x", "../out/kept", kept, "a/../../x", "absolute/x", "relative/x", "relative/kept", "relative/new/x", "loop/x", "..", ""} {
		for _, replace := range []bool{true, false} {
			if err := Files([]File{{In: in, Name: "new/good", Data: []byte("1")}, {In: in, Name: name, Data: []byte("2")}}, replace); err == nil {
				t.Errorf("%q was written", name)
			}
		}
	}
	if after := tree(t, base); !slices.Equal(after, before) {
		t.Errorf("there is now %q", after)
	}
	if text, err := os.ReadFile(kept); string(text) != "mine" {
		t.Error(string(text), err)
	}
}

// The directory itself is its user's: it may be a link, and need not exist. A file that
// a killed process left beside another does no harm.
func TestDirectoryOfTheUser(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	in := filepath.Join(base, "link", "new")
	if err := os.Mkdir(in, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(in, ".b.0"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	files := []File{{In: in, Name: "a/b", Data: []byte("1"), Mode: 0o600}, {In: in, Name: "b", Data: []byte("2"), Mode: 0o600}, {In: filepath.Join(base, "other"), Name: "c", Data: []byte("3"), Mode: 0o600}}
	if err := Files(files, false); err != nil {
		t.Fatal(err)
	}
	if err := Files(files, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over files that exist: %v", err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f.Path()); string(text) != string(f.Data) {
			t.Errorf("%s: %q, %v", f.Path(), text, err)
		}
	}
}
