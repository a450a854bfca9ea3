package realnode

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/proc"
)

// Run acts as the node's first process: it sets up its namespaces, starts the programs and restarts them, and
// runs this program for the kubelet and kube-proxy. It returns only on failure.
func Run(file string, log *slog.Logger) error {
	if os.Getpid() != 1 {
		return errors.New("the node's first process must be the first of its process namespace: start it by 'plimsoll lab up --real-node'")
	}
	s, err := Read(file)
	if err != nil {
		return err
	}
	k := &keeper{spec: s, log: log, children: make(map[int]*child), ended: make(chan *child)}
	go machine.Reap(k.reap)
	for _, step := range []func() error{
		s.makeGroups, func() error { return enter(s, partNode, os.Getpid()) }, s.mounts, s.configureNetwork,
		k.startContainerd, k.importImages,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	self := "/proc/self/exe"
	for _, c := range []*child{
		{part: partKubelet, command: append([]string{self, "component", partKubelet}, s.KubeletArguments()...)},
		{part: partProxy, command: append([]string{self, "component", partProxy}, s.ProxyArguments()...)},
	} {
		if err := k.start(c); err != nil {
			return err
		}
	}
	if err := os.WriteFile(s.Sign, nil, 0o600); err != nil {
		return fmt.Errorf("say that the node runs: %w", err)
	}
	for c := range k.ended {
		if err := k.restart(c); err != nil {
			return err
		}
	}
	return nil
}

// mounts gives the node its own view of the directories that its programs write to.
func (s Spec) mounts() error {
	if err := machine.Detach(); err != nil {
		return err
	}
	if err := machine.Hide(s.Dir, "/run", "/var/lib", "/var/log"); err != nil {
		return err
	}
	node := NodeDir(s.Dir)
	for _, b := range []struct{ from, to string }{
		{"kubelet", "/var/lib/kubelet"}, {"containerd", "/var/lib/containerd"}, {"cni", "/var/lib/cni"}, {"log", "/var/log"},
	} {
		if err := machine.BindDir(filepath.Join(node, b.from), b.to); err != nil {
			return err
		}
	}
	if err := s.coverSettings(filepath.Join(node, "settings")); err != nil {
		return err
	}
	// On a hybrid system crun wants version 1 of every controller of version 2: hide version 2.
	var fs unix.Statfs_t
	unified := cgroupRoot + "/unified"
	if unix.Statfs(unified, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
		if err := unix.Unmount(unified, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("hide %s from the node: %w", unified, err)
		}
	}
	return nil
}

// coverSettings covers the kernel's settings, which the kubelet would change for the whole machine, with its
// values. It also covers the list of processors.
func (s Spec) coverSettings(dir string) error {
	settings := map[string]string{
		"/proc/sys/vm/overcommit_memory": "1", "/proc/sys/vm/panic_on_oom": "0",
		"/proc/sys/kernel/panic": "10", "/proc/sys/kernel/panic_on_oops": "1",
		"/proc/sys/kernel/keys/root_maxkeys": "1000000", "/proc/sys/kernel/keys/root_maxbytes": "25000000",
	}
	if len(s.Processors) > 0 {
		settings["/sys/devices/system/cpu/online"] = formatList(s.Processors)
	}
	for setting, value := range settings {
		if _, err := os.Stat(setting); err != nil {
			continue
		}
		file := filepath.Join(dir, strings.ReplaceAll(strings.Trim(setting, "/"), "/", "."))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("cover the machine's settings: %w", err)
		}
		if err := machine.BindFile(file, setting); err != nil {
			return err
		}
	}
	return nil
}

type child struct {
	part    string
	command []string
	pid     int
	started time.Time
	quick   int // ends in a row that came right after the start
	status  syscall.WaitStatus
}

type keeper struct {
	spec     Spec
	log      *slog.Logger
	mu       sync.Mutex
	children map[int]*child
	ended    chan *child
}

// reap notes the end of a process of the node: an own child, or an orphan.
func (k *keeper) reap(pid int, status syscall.WaitStatus) {
	// A program that ends at once may arrive before start has recorded it; start holds the lock.
	k.mu.Lock()
	c := k.children[pid]
	delete(k.children, pid)
	k.mu.Unlock()
	if c != nil {
		c.status = status
		k.ended <- c
	}
}

func (k *keeper) start(c *child) error {
	logFile := filepath.Join(k.spec.Dir, "logs", c.part+".log")
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", c.part, err)
	}
	defer out.Close()
	cmd := exec.Command(c.command[0], c.command[1:]...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	cmd.Stdout, cmd.Stderr = out, out
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", c.part, err)
	}
	c.pid, c.started = cmd.Process.Pid, time.Now()
	k.children[c.pid] = c
	return enter(k.spec, c.part, c.pid)
}

// A program that ends within quickEnd of its start, quickEnds times in a row, cannot run.
const (
	quickEnd  = 2 * time.Second
	quickEnds = 3
)

// restart starts a program again that has ended, unless it ends too quickly too often.
func (k *keeper) restart(c *child) error {
	if c.quick++; time.Since(c.started) >= quickEnd {
		c.quick = 0
	}
	state := fmt.Sprintf("exit code %d", c.status.ExitStatus())
	if c.status.Signaled() {
		state = c.status.Signal().String()
	}
	if c.quick >= quickEnds {
		return fmt.Errorf("%s ends as soon as it is started (%s); its log ends with\n%s", c.part, state,
			proc.LogTail(filepath.Join(k.spec.Dir, "logs", c.part+".log"), 15))
	}
	k.log.Warn("starting again", "program", c.part, "ended", state)
	return k.start(c)
}

const containerdPatience = 30 * time.Second // until its first answer

func (k *keeper) startContainerd() error {
	err := k.start(&child{part: partContainerd, command: []string{k.spec.Programs.Containerd, "--config=" + filepath.Join(NodeDir(k.spec.Dir), containerdFile)}})
	if err != nil {
		return err
	}
	deadline := time.After(containerdPatience)
	for {
		connection, err := net.Dial("unix", Socket)
		if err == nil {
			return connection.Close()
		}
		select {
		case c := <-k.ended:
			if err := k.restart(c); err != nil {
				return err
			}
		case <-deadline:
			return fmt.Errorf("containerd does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// importImages imports the images of NodeDir: there is no registry.
func (k *keeper) importImages() error {
	dir := filepath.Join(NodeDir(k.spec.Dir), imagesDir)
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := k.importImage(filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) importImage(file string) error {
	logFile, err := os.OpenFile(filepath.Join(k.spec.Dir, "logs", "images.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("import %s: %w", file, err)
	}
	defer logFile.Close()
	c := &child{part: partContainerd}
	cmd := exec.Command(k.spec.Programs.Ctr, "--address="+Socket, "--namespace=k8s.io", "images", "import", file)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	k.mu.Lock()
	if err := cmd.Start(); err != nil {
		k.mu.Unlock()
		return fmt.Errorf("import %s: %w", file, err)
	}
	k.children[cmd.Process.Pid] = c
	k.mu.Unlock()
	for ended := range k.ended {
		if ended == c {
			break
		}
		if err := k.restart(ended); err != nil {
			return err
		}
	}
	if c.status.ExitStatus() != 0 {
		return fmt.Errorf("import %s: %s", file, proc.LogTail(logFile.Name(), 5))
	}
	return nil
}
