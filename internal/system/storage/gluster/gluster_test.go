package gluster

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

var suite = harness.New(os.Getenv)

// open starts a GlusterFS that is closed with the test.
func open(t *testing.T, s Settings) *System {
	t.Helper()
	harness.Able(t, Check(s.XFS))
	s.Executable = suite.Binary(t)
	s.Dir, s.Tied = t.TempDir(), proc.NewTie()
	t.Cleanup(s.Tied.Close)
	sys, err := Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sys.Close)
	return sys
}

// make makes volumes that are mounted.
func (s *System) make(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		name := fmt.Sprintf("v%d", i+1)
		if err := s.Create(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context(), name, false); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Client().Mount(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVolumesOfOneServer(t *testing.T) {
	t.Parallel()
	began := time.Now()
	s := open(t, Settings{Replica: 1, Multiplex: true})
	t.Logf("open after %v", time.Since(began))
	s.make(t, 3)
	t.Logf("three mounted after %v", time.Since(began))
	if err := os.WriteFile(s.client.Path(s.Client().Mounted("v1")+"/file"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(s.Dir, "server-1/bricks/v1/file")); err != nil || string(text) != "text" {
		t.Errorf("the brick holds %q, %v", text, err)
	}
	if link, err := s.Link(100 * time.Millisecond); err != nil || link < 1e6 || link > 1e12 {
		t.Errorf("the link carries %g bytes a second, %v", link, err)
	}
	began = time.Now()
	bricks, err := s.Bricks(t.Context())
	t.Logf("state within %v: %+v", time.Since(began), bricks)
	if err != nil || len(bricks) != 3 || bricks[0].PID == 0 || bricks[0].PID != bricks[2].PID {
		t.Errorf("bricks %+v, %v", bricks, err)
	}
	began = time.Now()
	list, err := s.Processes(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("processes within %v", time.Since(began))
	parts := make(map[Part]int)
	for _, p := range list {
		parts[p.Part]++
		t.Logf("%+v", p)
	}
	if parts[Management] != 1 || parts[Bricks] != 1 || parts[Mounts] != 3 {
		t.Errorf("processes %v", parts)
	}
	if ports, err := s.Server(0).Ports(); err != nil || ports != 1 {
		t.Errorf("%d ports, %v", ports, err)
	}
	began = time.Now()
	if err := s.Client().Unmount(t.Context(), "v1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(t.Context(), "v1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "v1"); err != nil {
		t.Fatal(err)
	}
	t.Logf("deleted within %v", time.Since(began))
	if _, err := os.Stat(filepath.Join(s.Dir, "server-1/bricks/v1")); err == nil {
		t.Error("the brick is still there")
	}
	mounts, err := s.Client().Mounts()
	if err != nil || len(mounts) != 2 {
		t.Errorf("mounts %v, %v", mounts, err)
	}
}

func TestReplicasOnXFS(t *testing.T) {
	t.Parallel()
	began := time.Now()
	s := open(t, Settings{Replica: 3, XFS: true, Size: 1 << 30})
	t.Logf("open after %v", time.Since(began))
	s.make(t, 2)
	t.Logf("two mounted after %v", time.Since(began))
	text := strings.Repeat("x", 1<<20)
	file := s.client.Path(s.Client().Mounted("v1") + "/file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	bricks, err := s.Bricks(t.Context())
	if err != nil || len(bricks) != 6 {
		t.Fatalf("bricks %+v, %v", bricks, err)
	}
	for _, b := range bricks {
		got, err := os.ReadFile(s.Server(b.Server).Path(s.Server(b.Server).brick(b.Volume) + "/file"))
		if b.Volume == "v1" && (err != nil || string(got) != text) {
			t.Errorf("brick %+v: %d bytes, %v", b, len(got), err)
		}
	}
	// One server less: the volume serves on.
	s.Server(2).Close()
	if err := os.WriteFile(file+"2", []byte(text), 0o600); err != nil {
		t.Errorf("with two of three servers: %v", err)
	}
}

func TestAMountThatHangsIsAborted(t *testing.T) {
	t.Parallel()
	s := open(t, Settings{Replica: 1})
	s.make(t, 1)
	file := s.client.Path(s.Client().Mounted("v1") + "/file")
	// One that begins just now may have another name, or not tell of itself.
	harness.Await(t, "the process of the mount to be stopped", func() (stopped bool) {
		list, err := s.Processes(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			if p.Part == Mounts {
				if _, err := s.run(t.Context(), s.client.Machine, "kill", "-STOP", fmt.Sprint(p.PID)); err != nil {
					t.Fatal(err)
				}
				stopped = true
			}
		}
		return stopped
	})
	done := make(chan error)
	go func() { done <- os.WriteFile(file, []byte("text"), 0o600) }()
	select {
	case err := <-done:
		t.Fatalf("it did not hang: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := s.Client().Abort("v1"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err == nil {
			t.Error("the write was answered")
		}
	case <-time.After(5 * time.Second):
		t.Error("it still hangs")
	}
}

func TestReadState(t *testing.T) {
	list, err := readState(bufio.NewScanner(strings.NewReader(`[Volumes]
Volume1.name: a
Volume1.Brick1.path: 192.0.2.1:/bricks/a
Volume1.Brick1.port: 49152
Volume1.Brick1.status: Started
Volume1.Brick1.spacefree: 1Bytes
Volume1.rebalance.status: not_started
Volume1.Brick2.path: 192.0.2.2:/bricks/a
Volume1.Brick2.port: 49153
Volume2.name: b
Volume2.Brick1.path: 192.0.2.1:/bricks/b
Volume2.Brick1.port: 49154
Volume2.Brick1.status: Stopped
`)), "192.0.2.1")
	if err != nil || fmt.Sprint(list) != "[{0 a 0 49152} {0 b 0 0}]" {
		t.Errorf("%v, %v", list, err)
	}
}
