package cli_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/cli"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
	"plimsoll.dev/plimsoll/internal/test/terminal"
)

// onTerminal is a command that runs on a terminal of 80 columns and 24 lines.
type onTerminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	read   sync.WaitGroup
	mu     sync.Mutex
	raw    strings.Builder
}

// startOnTerminal starts a command of the program on a terminal of its own.
func startOnTerminal(t *testing.T, p *harness.Program, args ...string) *onTerminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there is no pseudo-terminal here: %v", err)
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	o := &onTerminal{t: t, cmd: p.Command(args...), master: master}
	o.cmd.Env = append(o.cmd.Env, "TERM=xterm", "NO_COLOR=")
	o.cmd.Stdin, o.cmd.Stdout, o.cmd.Stderr = slave, slave, slave
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	t.Cleanup(func() { syscall.Kill(-o.cmd.Process.Pid, syscall.SIGKILL); o.cmd.Wait(); master.Close() })
	o.read.Go(func() {
		buffer := make([]byte, 1<<16)
		for {
			n, err := master.Read(buffer) // fails once the last one has closed the terminal
			o.mu.Lock()
			o.raw.Write(buffer[:n])
			o.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	return o
}

// written returns all that was written to the terminal until now.
func (o *onTerminal) written() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.raw.String()
}

// end waits until the command has ended, and is its exit code and what is then
// on the terminal.
func (o *onTerminal) end() (int, *terminal.Emulator) {
	o.t.Helper()
	o.cmd.Wait()
	o.read.Wait()
	shown := &terminal.Emulator{}
	if _, err := io.WriteString(shown, o.written()); err != nil {
		o.t.Fatalf("%v in\n%q", err, o.written())
	}
	return o.cmd.ProcessState.ExitCode(), shown
}

// A run on a terminal is drawn in place; at the end its table is there, and
// nothing of the picture.
func TestARunOnATerminal(t *testing.T) {
	for _, tt := range []struct {
		why             string
		env             map[string]string
		picture, colors bool
	}{
		{"a terminal", map[string]string{"TERM": "xterm"}, true, true},
		{"without colours", map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, true, false},
		{"one that cannot be drawn on", map[string]string{"TERM": "dumb"}, false, false},
	} {
		t.Run(tt.why, func(t *testing.T) {
			e2e.OnVirtualClock(t, func(t *testing.T) {
				written := &e2e.Trigger{}
				p := e2e.InMemory(t, tt.env, "limit", "simulated", "--set", "limit=37", "--hold", "700ms", "--seed", "1", "--out", filepath.Join(t.TempDir(), "run"))
				p.Stdout, p.Stderr, p.StdoutTerminal, p.StderrTerminal = written, written, true, true
				p.Width, p.Height = func() int { return 80 }, func() int { return 24 }
				if code := cli.Main(p); code != process.ExitPass {
					t.Errorf("exit code %d", code)
				}
				shown, raw := &terminal.Emulator{}, written.String()
				if _, err := io.WriteString(shown, raw); err != nil {
					t.Fatalf("%v in\n%q", err, raw)
				}
				if drawn := strings.Contains(raw, "█"); drawn != tt.picture || (shown.Escapes > 0) != tt.picture || shown.HasColor != tt.colors {
					t.Errorf("a picture: %t, %d escapes, colours: %t in\n%q", drawn, shown.Escapes, shown.HasColor, raw)
				}
				text := shown.String()
				if strings.Contains(text, "█") || strings.Contains(text, "steps left") || !strings.Contains(text, "verdict") || !strings.Contains(text, "Load line of simulated: ") || !strings.HasSuffix(text, "\n") {
					t.Errorf("on the terminal is left\n%s", text)
				}
				if rows := regexp.MustCompile(`(?m)^ *\d+ +bracket +38 `).FindAllString(text, -1); len(rows) != 1 {
					t.Errorf("the step at 38 is on the terminal as %q:\n%s", rows, text)
				}
			})
		})
	}
}

// Ctrl-C, and an error, leave the terminal as a shell wants it, with what was
// found.
func TestATerminalIsLeftInOrder(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	o := startOnTerminal(t, p, "limit", "simulated", "--set", "limit=57", "--hold", "5s", "--seed", "1", "--out", filepath.Join(t.TempDir(), "run"))
	harness.Await(t, "the first level to pass", func() bool { return strings.Contains(o.written(), "pass") })
	if _, err := o.master.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	code, shown := o.end()
	text := shown.String()
	if code != process.ExitInterrupted || strings.Contains(text, "█") || !strings.Contains(text, "verdict") || !strings.Contains(text, "it was interrupted") || !strings.Contains(text, "run --resume") || !strings.HasSuffix(text, "\n") {
		t.Errorf("exit code %d; on the terminal is left\n%s", code, text)
	}

	o = startOnTerminal(t, p, "limit", "simulated", "--set", "limit=0x")
	code, shown = o.end()
	if text := shown.String(); code != process.ExitUsage || shown.Escapes > 0 || !strings.HasPrefix(text, "plimsoll: ") || !strings.HasSuffix(text, "\n") {
		t.Errorf("exit code %d; on the terminal is left\n%s", code, text)
	}
}
