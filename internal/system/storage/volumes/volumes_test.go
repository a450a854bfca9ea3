package volumes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
)

func TestCeilings(t *testing.T) {
	plenty := facts{memory: 1 << 50, files: 1 << 40, allOpen: 1 << 50, threads: 1 << 50, ports: 11848}
	for _, c := range []struct {
		why   string
		set   func(*settings, *facts)
		binds string
		level float64
	}{
		{"each brick has a port of its own", func(s *settings, _ *facts) {}, "ports", 11848},
		{"250 bricks have one port", func(s *settings, _ *facts) { s.gluster.Multiplex = true }, "", 0},
		{"bricks share the files of a process", func(s *settings, f *facts) { s.gluster.Multiplex, f.files = true, 20_000 }, "openFiles", 77},
		{"fewer bricks a process are within its files", func(s *settings, f *facts) { s.gluster.Multiplex, s.gluster.MaxBricks, f.files = true, 70, 20_000 }, "ports", 829_360},
		{"of volumes with different options no bricks share", func(s *settings, f *facts) { s.gluster.Multiplex, s.distinct, f.ports = true, 1000, 100 }, "ports", 100},
		{"two servers take twice the memory", func(s *settings, f *facts) { s.gluster.Replica, f.memory = 2, 1<<30 }, "memory", 56},
		{"so does a client", func(s *settings, f *facts) { s.mount, f.memory = true, 1<<30 }, "memory", 56},
		{"threads", func(_ *settings, f *facts) { f.threads = 1500 }, "threads", 100},
	} {
		s, f := settings{gluster: gluster.Settings{Replica: 1}, distinct: 1}, plenty
		c.set(&s, &f)
		table := ceilingsOf(s, f, record.CeilingTable{})
		b := table.Binding()
		switch {
		case c.binds == "" && b != nil:
			t.Errorf("%s: %s binds at %g", c.why, b.Name, *b.Level)
		case c.binds != "" && (b == nil || b.Name != c.binds || *b.Level != c.level):
			t.Errorf("%s: %+v, want %s at %g", c.why, b, c.binds, c.level)
		}
	}
}

func TestWhatIsNotKnownIsNoCeiling(t *testing.T) {
	table := ceilingsOf(settings{gluster: gluster.Settings{Replica: 1}}, facts{}, record.CeilingTable{})
	if b := table.Binding(); b != nil {
		t.Errorf("%+v", b)
	}
}

func TestDataIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	const size = 100_000
	if err := write(path, "volume-1", size); err != nil {
		t.Fatal(err)
	}
	if err := verify(path, "volume-1", size); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || len(data) != size {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	for what, wrong := range map[string][]byte{"another byte": append([]byte{data[0] ^ 1}, data[1:]...), "a byte less": data[1:], "nothing": nil} {
		if err := os.WriteFile(path, wrong, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := verify(path, "volume-1", size); err == nil || !strings.Contains(err.Error(), errWrong.Error()) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := write(path, "volume-2", size); err != nil {
		t.Fatal(err)
	}
	if verify(path, "volume-1", size) == nil {
		t.Error("the file of another volume passes")
	}
}
