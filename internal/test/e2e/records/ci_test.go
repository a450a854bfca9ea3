package records_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

const examplesOfCI = "../../../../examples/ci/"

// decoded reads a file of examples/ci into v, which has a field for each of its keys.
func decoded(t *testing.T, name string, v any) {
	t.Helper()
	data, err := os.ReadFile(examplesOfCI + name)
	if err == nil {
		err = yaml.UnmarshalWithOptions(data, v, yaml.Strict())
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// jobOfCI is a job of examples/ci as its system runs it.
type jobOfCI struct {
	name   string
	shell  []string
	script string   // of the run
	after  string   // that always runs, too
	env    []string // as the system sets it
}

// jobsOfCI reads the jobs with the keys that their formats have. The formats of GitHub and Tekton are also
// checked by their own modules, in tools/ci.
func jobsOfCI(t *testing.T) []jobOfCI {
	t.Helper()
	type step struct {
		Name, Uses, If, Run string
		With                map[string]string
		Env                 map[string]string
	}
	var github struct {
		Name        string
		On          map[string]any
		Permissions map[string]string
		Concurrency string
		Jobs        map[string]struct {
			RunsOn         string `yaml:"runs-on"`
			TimeoutMinutes int    `yaml:"timeout-minutes"`
			Env            map[string]string
			Steps          []step
		}
	}
	decoded(t, "github.yaml", &github)
	steps := github.Jobs["limit"].Steps
	named := func(name string) string {
		i := slices.IndexFunc(steps, func(s step) bool { return s.Name == name })
		return steps[i].Run
	}
	// The keys of https://docs.gitlab.com/ci/yaml/.
	var gitlab map[string]struct {
		Image string
		Rules []struct{ If string }
		Cache struct {
			Key   string
			Paths []string
			When  string
		}
		Variables    map[string]string
		Script       []string
		AfterScript  []string `yaml:"after_script"`
		AllowFailure struct {
			ExitCodes []int `yaml:"exit_codes"`
		} `yaml:"allow_failure"`
		Artifacts struct {
			When    string
			Paths   []string
			Reports struct{ JUnit string }
		}
	}
	decoded(t, "gitlab.yaml", &gitlab)
	if codes := gitlab["night"].AllowFailure.ExitCodes; !slices.Equal(codes, []int{3, 4}) {
		t.Errorf("gitlab.yaml lets the codes %v be a warning", codes)
	}
	var tekton struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name string }
		Spec       struct {
			Params              []struct{ Name, Type, Description string }
			Workspaces, Results []struct{ Name, Description string }
			Steps               []struct {
				Name, Image, Script string
				WorkingDir          string `yaml:"workingDir"`
				Env                 []struct{ Name, Value string }
			}
		}
	}
	decoded(t, "tekton.yaml", &tekton)
	// A reference of the step registry: RegistryReferenceConfig and LiteralTestStep of
	// https://github.com/openshift/ci-tools/blob/main/pkg/api/types.go.
	var openshift struct {
		Ref struct {
			As, From, Commands, Timeout, Documentation string
			GracePeriod                                string `yaml:"grace_period"`
			Resources                                  struct{ Requests, Limits map[string]string }
			Env                                        []struct {
				Name, Documentation string
				Default             *string
			}
		}
	}
	decoded(t, "plimsoll-night-ref.yaml", &openshift)
	commands, err := os.ReadFile(examplesOfCI + openshift.Ref.Commands)
	if err != nil {
		t.Fatal(err)
	}
	lines := func(list []string) string { return strings.Join(list, "\n") + "\n" }
	return []jobOfCI{
		{"github.yaml", []string{"bash", "-e"}, named("Run"), named("JUnit"), []string{"ARTIFACT_DIR=night", "RUNS=runs"}},
		{"gitlab.yaml", []string{"bash", "-eo", "pipefail"}, lines(gitlab["night"].Script), lines(gitlab["night"].AfterScript), []string{"ARTIFACT_DIR=night", "RUNS=runs"}},
		{"tekton.yaml", []string{"sh"}, tekton.Spec.Steps[0].Script, "", []string{"ARTIFACT_DIR=night", "CODE=code", "SUMMARY=summary"}},
		{openshift.Ref.Commands, []string{"bash"}, string(commands), "", []string{"ARTIFACT_DIR=night", "PLIMSOLL_BASELINE=runs"}},
	}
}

// Each job ends with the code of the run, says what 3 and 4 are, and keeps green nights alone.
func TestExamplesOfCIMapExitCodes(t *testing.T) {
	t.Parallel()
	for _, job := range jobsOfCI(t) {
		for code, says := range []string{"", "egression", "", "nconclusive", "nvalid", ""} {
			dir := t.TempDir()
			// A stand-in, whose runs end with the code.
			program := fmt.Sprintf("#!/bin/sh\necho '{\"exitCode\": %d}'\ncase $1 in limit) exit %d ;; esac\n", code, code)
			if err := os.WriteFile(filepath.Join(dir, "plimsoll"), []byte(program), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(dir, "night"), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(job.shell[0], append(job.shell[1:len(job.shell):len(job.shell)], "-c", job.script)...)
			cmd.Dir, cmd.Env = dir, append(job.env, "PATH="+dir+":/usr/bin:/bin")
			out, _ := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != code {
				t.Errorf("%s: exit code %d for a run with %d\n%s", job.name, got, code, out)
			}
			if !strings.Contains(string(out), says) && job.name != "gitlab.yaml" { // which says it by its colour
				t.Errorf("%s does not say %q of code %d:\n%s", job.name, says, code, out)
			}
			kept, _ := filepath.Glob(filepath.Join(dir, "runs", "*"))
			if strings.Contains(job.script, "$RUNS/") && len(kept) == 1 != (code == 0) {
				t.Errorf("%s keeps %v of a run with code %d", job.name, kept, code)
			}
		}
	}
}

var ofPlimsoll = regexp.MustCompile(`(?m)^\s*plimsoll ((?:[^>|;\n]|\\\n)+)`)

// The commands of each job find a regression of 10 %, and none where nothing changed.
func TestExamplesOfCIFindRegressions(t *testing.T) {
	for _, job := range jobsOfCI(t) {
		var commands [][]string
		root := filepath.Join(t.TempDir(), "a b")
		for _, m := range ofPlimsoll.FindAllStringSubmatch(job.script+job.after, -1) {
			cmd := exec.Command("sh", "-c", `printf '%s\0' `+m[1])
			cmd.Env = job.env
			args, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v", m[1], err)
			}
			commands = append(commands, strings.Split(strings.TrimSuffix(string(args), "\x00"), "\x00"))
		}
		if len(commands) < 2 {
			t.Fatalf("%s has the commands %v", job.name, commands)
		}
		e2e.OnVirtualClock(t, func(t *testing.T) {
			night := func(n int, limit string, code int) {
				dir := filepath.Join(root, fmt.Sprint("night-", n))
				for _, args := range commands {
					args = slices.Clone(args)
					for i, a := range args[1:] {
						switch a {
						case "night":
							args[1+i] = dir
						case "runs", ".":
							args[1+i] = root
						case "limit=37":
							args[1+i] = "limit=" + limit
						}
					}
					want := code
					if args[0] == "runs" {
						want = process.ExitPass
					}
					got := ran(t, want, args...)
					if args[0] == "analyze" && strings.Contains(got.Stdout, "<failure") != (code == process.ExitFail) {
						t.Errorf("%s, night %d: the tests say\n%s", job.name, n, got.Stdout)
					}
					if args[0] == "limit" {
						lines := strings.Split(strings.TrimSpace(got.Stdout), "\n")
						var line struct{ ExitCode int }
						if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil || line.ExitCode != code {
							t.Errorf("%s, night %d: the last line is %s", job.name, n, lines[len(lines)-1])
						}
					}
				}
				time.Sleep(24 * time.Hour)
			}
			if err := os.MkdirAll(root, 0o700); err != nil {
				t.Fatal(err)
			}
			night(1, "37", process.ExitPass)
			night(2, "37", process.ExitPass)
			night(3, "33", process.ExitFail)
		})
	}
}

// The scripts run as they stand, with the program.
func TestExamplesOfCIRun(t *testing.T) {
	p := suite.Program(t)
	program, err := filepath.Abs(p.Command().Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range jobsOfCI(t) {
		dir := t.TempDir()
		if err := os.Symlink(program, filepath.Join(dir, "plimsoll")); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "runs"), 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(job.shell[0], append(job.shell[1:len(job.shell):len(job.shell)], "-c", job.script)...)
		cmd.Dir, cmd.Env = dir, append(slices.Concat(p.Command().Env, job.env), "PATH="+dir+":/usr/bin:/bin")
		out, _ := cmd.CombinedOutput()
		// Beside other tests a search may be short of CPU, and says that it is invalid.
		if code := cmd.ProcessState.ExitCode(); code != process.ExitPass && code != process.ExitInvalid {
			t.Errorf("%s: exit code %d\n%s", job.name, code, out)
		}
	}
}
