package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"mvdan.cc/sh/v3/shell"

	"plimsoll.dev/plimsoll/internal/cli"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// tuneCommandTree returns the command tune with its own.
func tuneCommandTree(t *testing.T) *cobra.Command {
	t.Helper()
	stop := process.NewInterrupts(nil, nil)
	t.Cleanup(stop.Close)
	tune, _, err := cli.NewRootCommand(&process.Process{}, stop).Find([]string{"tune"})
	if err != nil {
		t.Fatal(err)
	}
	return tune
}

// What the help shows works when it is pasted.
func TestExamplesOfTuneWork(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// What the examples read.
	write("node7/proc/sys/net/core/netdev_budget", "300\n")
	write("node7/proc/sys/net/ipv4/tcp_window_scaling", "1\n")
	e2e.Sealed(t, "plimsoll-runs/20261121-101500-node-density", `{"schema": "plimsoll/result/v1", "steps": [
		{"id": 1, "seconds": 10, "perNode": {"nodes": 1, "min": 100, "max": 100}, "resources": {"kubelet": {"cpuSeconds": 4, "peakRSSBytes": 100000000}}}]}`)
	write("plimsoll-runs/20261121-101500-router/history.jsonl.zst", "")
	write("plimsoll-runs/20261121-101500-router/experiment.yaml", "schema: plimsoll/experiment/v1\nname: r\nworkload: router\nparams: {termination: edge, pageSize: 4KiB}\naxis: {name: rate}\n")
	e2e.Sealed(t, "plimsoll-runs/20261121-101500-router", `{"schema": "plimsoll/result/v1", "verdict": "pass", "objectKind": {"object": {}, "there": "Response", "milestones": []}, "loadLine": {"axis": "rate", "level": 21000, "lowestFailing": 21500}}`)
	write("plimsoll-runs/20261121-101500-network-path/history.jsonl.zst", "")
	write("plimsoll-runs/20261121-101500-network-path/experiment.yaml", "schema: plimsoll/experiment/v1\nname: n\nworkload: network-path\naxis: {name: rate}\n")
	e2e.Sealed(t, "plimsoll-runs/20261121-101500-network-path", `{"schema": "plimsoll/result/v1", "comparison": {"baseline": "plain", "arms": {"over": {"path": "vxlan"}}, "levels": [{"level": 2000, "arm": "over", "verdict": "worse", "primary": {"metric": "cpuPer1000", "change": 0.2}}]}}`)
	tune := tuneCommandTree(t)
	ran := 0
	for _, c := range append(tune.Commands(), tune) {
		if c.Example == "" {
			t.Errorf("%s has no example", c.Name())
		}
		for line := range strings.Lines(c.Example) {
			args, err := shell.Fields(strings.TrimSpace(line), nil)
			if err != nil || len(args) < 3 || args[0] != "plimsoll" || args[1] != "tune" {
				t.Errorf("%q: %v", line, err)
				continue
			}
			if strings.Contains(line, "--node worker-7") || strings.Contains(line, "--lab ") {
				continue // a cluster's
			}
			if strings.Contains(line, "--live") && strings.Contains(line, "tune host") {
				args = append(args, "--interval", "10ms")
			}
			got := e2e.Command(t, nil, args[1:]...)
			ran++
			// One of them is about what cannot be had.
			cannot := strings.Contains(line, "--dataset 300x8x20Mi --disk 40Gi")
			if got.Code != process.ExitPass && !(cannot && got.Code == process.ExitFail) {
				t.Errorf("%s: %d\n%s", strings.TrimSpace(line), got.Code, got.Stderr)
			}
		}
	}
	if ran < 20 {
		t.Errorf("only %d examples were found", ran)
	}
}

// Every flag that takes a number refuses one that makes no sense, and none ends in a
// panic.
func TestNonsenseIsRefusedByEveryFlagOfTune(t *testing.T) {
	t.Parallel()
	// What the flag's command needs besides, so that the flag is what is wrong.
	needs := map[string]string{
		"subnet": "--nodes 10", "kubelet": "--max-pods 250", "host": "--neighbours 5", "ceph": "--osds 12", "virt": "--vms 10 --nodes 2",
		"router": "", "network": "", "plan": "--pods-per-node 100 --nodes 3",
	}
	tried, every := 0, suite.Size(3, 1) // each flag a third of the values, where time is short
	for _, c := range tuneCommandTree(t).Commands() {
		flags := 0
		c.Flags().VisitAll(func(f *pflag.Flag) {
			switch f.Value.Type() {
			case "number", "time", "speed", "bytes", "share", "CPU":
			default:
				return
			}
			flags++
			for i, value := range []string{"", "-1", "NaN", "Inf", "-Inf", "1e400", "abc", "0x", "99999999999999999999999999", "1e-400", "\x00", "9223372036854775807"} {
				if (flags+i)%every != 0 {
					continue
				}
				tried++
				args := append([]string{"tune", c.Name()}, strings.Fields(needs[c.Name()])...)
				got := e2e.Command(t, nil, append(args, "--"+f.Name+"="+value)...)
				if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "--"+f.Name) || strings.Contains(got.Stderr, "panic") || strings.Contains(got.Stderr, "%!") {
					t.Errorf("tune %s --%s=%q: %d %s", c.Name(), f.Name, value, got.Code, got.Stderr)
				}
			}
			// The largest and the smallest that can be read do not end in a panic.
			for i, value := range []string{"0", "1", "1000000000", "100%", "0%", "1ns", "2540400h", "1bit", "999Pbit", "1023Pi"} {
				if (flags+i)%every != 0 {
					continue
				}
				tried++
				args := append([]string{"tune", c.Name()}, strings.Fields(needs[c.Name()])...)
				got := e2e.Command(t, nil, append(args, "--"+f.Name+"="+value, "-o", "json")...)
				if got.Code != process.ExitUsage && got.Code != process.ExitPass && got.Code != process.ExitFail {
					t.Errorf("tune %s --%s=%q: %d %s", c.Name(), f.Name, value, got.Code, got.Stderr)
				}
				if got.Code != process.ExitUsage && !json.Valid([]byte(got.Stdout)) {
					t.Errorf("tune %s --%s=%q: no JSON:\n%.300s", c.Name(), f.Name, value, got.Stdout)
				}
			}
		})
	}
	if tried < 500 {
		t.Errorf("only %d were tried", tried)
	}
}
