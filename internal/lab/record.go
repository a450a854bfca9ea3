package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

// recordSchema is the version of lab.json.
const recordSchema = "plimsoll/lab/v1"

// record is what is written down about a lab, as lab.json. It holds no
// process numbers: those are read from the system, which cannot be out of date.
type record struct {
	Schema       string    `json:"schema"`
	Name         string    `json:"name"`
	ID           string    `json:"id"`
	Created      time.Time `json:"created"`
	Private      bool      `json:"private"`
	Owner        int       `json:"owner"` // process that made it, and that a private one belongs to
	Ready        bool      `json:"ready"` // it was up once
	Nodes        int       `json:"nodes"`
	MaxPods      int       `json:"maxPods"`
	StartLatency string    `json:"startLatency"`
	Ports        ports     `json:"ports"`
	// RealNode is the real node, nil if there is none.
	RealNode *realnode.Spec `json:"realNode,omitempty"`
}

func (r record) spec() Spec {
	// What was written from a Dist parses; anything else was edited by hand,
	// and the simulated nodes refuse it when they start.
	latency, _ := dist.Parse(r.StartLatency)
	var real *RealNodeSpec
	if n := r.RealNode; n != nil {
		real = &RealNodeSpec{CPUs: n.CPUs, MemoryBytes: n.MemoryBytes, PodCIDRPrefix: n.PodCIDR.Bits()}
	}
	return Spec{
		RealNode:     real,
		Name:         r.Name,
		Nodes:        r.Nodes,
		MaxPods:      r.MaxPods,
		StartLatency: latency,
		Private:      r.Private,
	}
}

// directory is where all files of one lab are.
type directory string

func (d directory) path(parts ...string) string {
	return filepath.Join(append([]string{string(d)}, parts...)...)
}

func (d directory) kubeconfig() string                 { return d.path("kubeconfig") }
func (d directory) componentConfig(user string) string { return d.path("pki", user+".kubeconfig") }
func (d directory) log(component string) string        { return d.path("logs", component+".log") }
func (d directory) cert(name string) string            { return d.path("pki", name+".crt") }
func (d directory) key(name string) string             { return d.path("pki", name+".key") }

// readyFile is the file by which a component that serves nothing says that it works.
func (d directory) readyFile(component string) string { return d.path(component + ".works") }

func (d directory) name() string { return filepath.Base(string(d)) }

func (d directory) readRecord() (record, error) {
	var r record
	data, err := os.ReadFile(d.path("lab.json"))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("read %s: %w", d.path("lab.json"), err)
	}
	if r.Schema != recordSchema {
		return r, fmt.Errorf("read %s: schema %q, this program knows %q", d.path("lab.json"), r.Schema, recordSchema)
	}
	return r, nil
}

// writeRecord replaces lab.json in one move, so that a reader never sees half.
func (d directory) writeRecord(r record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	temporary := d.path(".lab.json")
	if err := os.WriteFile(temporary, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, d.path("lab.json"))
}
