// Package virt adds virtual machines to the Kubernetes target: it calls them, logs in to read their IO, and
// drains the nodes that they are on. It calls them from this machine or through the API server, never from a
// pod of the run, which would need an image that the cluster can pull: only services are called from one. It
// bounds calls through the API server, since priority and fairness does not. The time since the previous
// failed call shows how late an answer may have been seen.
package virt

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/drain"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Name is the name of the target.
const Name = "kubevirt"

// Machines adds virtual machines to a session. It does nothing for a workload without any.
type Machines struct {
	system.Request
	here    bool               // the target is KubeVirt
	objects *described.Objects // nil without machines
	keys    keys               // for logins, or empty
	drains  []string           // nodes that the user agreed to drain, nil for any
}

// Of returns the machines of a session.
func Of(r system.Request) *Machines {
	return &Machines{Request: r, here: r.Workload != nil && r.Workload.Target.Name == Name, objects: described.MachinesOf(r.Workload)}
}

// keys identify a run and its machines to each other.
type keys struct {
	login ssh.Signer    // lets the run in
	host  ssh.PublicKey // identifies the machines
}

func newKeys() (keys, map[string]string, error) {
	login, _, err := newKey()
	if err != nil {
		return keys{}, nil, err
	}
	host, secret, err := newKey()
	if err != nil {
		return keys{}, nil, err
	}
	return keys{login, host.PublicKey()}, map[string]string{
		described.ParamSSHKey:     strings.TrimSpace(string(ssh.MarshalAuthorizedKey(login.PublicKey()))),
		described.ParamSSHHostKey: secret,
	}, nil
}

func newKey() (ssh.Signer, string, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, "", fmt.Errorf("make a key: %w", err)
	}
	file, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return nil, "", fmt.Errorf("make a key: %w", err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, "", fmt.Errorf("make a key: %w", err)
	}
	return signer, string(pem.EncodeToMemory(file)), nil
}

// Fill returns the parameters that the run sets itself and that are not recorded: the keys for logins.
func (m *Machines) Fill() (given map[string]string, err error) {
	if !m.objects.ReadsFIO() {
		return nil, nil
	}
	m.keys, given, err = newKeys()
	return given, err
}

// Rights returns the further rights of a load with these parameters.
func (m *Machines) Rights(params workload.Params) (list []ceiling.Right) {
	if spec := m.drain(); spec != nil {
		list = drainRights(spec)
	}
	if m.upgrades() != "" {
		list = append(list, ceiling.Right{Verb: "list", Resource: "nodes", For: "counts the nodes that are rebooted, for consent"})
	}
	if m.here && throughForward(params) {
		list = append(list, ceiling.Right{Verb: "get", Resource: "virtualmachineinstances/portforward." + subresources, For: "calls machines through the API server"})
	}
	return list
}

// Open returns the caller of machines, and the drain of their nodes or nil. ours tells the run's namespaces.
func (m *Machines) Open(run *prepared.Run, ours func(namespace string) bool, log func(format string, args ...any)) (follow.Caller, *drain.Drain) {
	caller := newCalls(run, m.keys)
	if spec := m.drain(); spec != nil {
		return caller, drain.New(run, spec, m.drains, ours, log)
	}
	return caller, nil
}

func (m *Machines) drain() *described.Drain {
	if m.objects == nil || m.objects.Begin == nil {
		return nil
	}
	return m.objects.Begin.Drain
}

// drainRights returns the further rights for a drain.
func drainRights(spec *described.Drain) (list []ceiling.Right) {
	need := func(what, resource string, verbs ...string) {
		for _, verb := range verbs {
			list = append(list, ceiling.Right{Verb: verb, Resource: resource, For: what})
		}
	}
	need("chooses, cordons and releases nodes", "nodes", "list", "watch", "get", "patch")
	if spec.Pools == "" {
		need("evicts the pods of machines", "pods/eviction", "create")
		return list
	}
	need("chooses pools of nodes, and waits for them", "machineconfigpools.machineconfiguration.openshift.io", "list", "get")
	need("rolls a configuration out to pools, and takes it away", "machineconfigs.machineconfiguration.openshift.io", "list", "create", "delete")
	return list
}

// Agree adds to the user's consent the nodes that the run may cordon and drain, at most.
func (m *Machines) Agree(ctx context.Context, c *api.Client, consent *system.Consent) error {
	spec := m.drain()
	if m.ToRead {
		return nil
	}
	if by := m.upgrades(); by != "" {
		nodes, err := c.Typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list the nodes that are rebooted: %w", err)
		}
		consent.Reboots, consent.Once = len(nodes.Items), true
		consent.Warnings = append(consent.Warnings, fmt.Sprintf("the upgrade (%s) drains and reboots all nodes of the cluster, and is not undone", by))
	}
	if spec == nil {
		return nil
	}
	nodes, text, err := drain.Agree(ctx, c, spec, int(slices.Max(append(m.Plan.Levels(), 1))))
	if err != nil {
		return err
	}
	if m.drains = nodes; spec.Pools != "" {
		consent.Reboots = len(nodes)
	}
	consent.Warnings = append(consent.Warnings, text)
	return nil
}

// Outline returns the run's further changes to the cluster.
func (m *Machines) Outline() []system.Change {
	if d := m.drain(); d != nil && d.Pools != "" {
		return []system.Change{{Action: system.Reboot, What: fmt.Sprintf("all nodes of MachineConfigPools with the label %s, as many pools as the level: drained and rebooted, and once more when the configuration is taken away", d.Pools)}}
	} else if d != nil {
		return []system.Change{{Action: system.ChangeIt, What: fmt.Sprintf("nodes with the label %s, as many as the level: cordoned, and this run's %s there evicted", d.Nodes, m.objects.Noun.Many)}}
	}
	if by := m.upgrades(); by != "" {
		return []system.Change{{Action: system.Reboot, What: fmt.Sprintf("all nodes of the cluster, once: the upgrade (%s) drains and reboots them, and is not undone", by)}}
	}
	return nil
}

// upgrades returns the parameter by which the run makes an operator reboot all nodes, "" for none.
func (m *Machines) upgrades() string {
	if m.objects == nil || m.objects.Begin == nil || !m.objects.Begin.Reboots {
		return ""
	}
	all := []map[string]string{m.Plan.Params}
	for _, a := range m.Plan.Arms {
		all = append(all, a.Params)
	}
	for _, s := range m.Workload.Settings {
		for _, params := range all {
			if to := params[s.Param]; s.Clear && to != "" {
				return s.Param + "=" + to
			}
		}
	}
	return ""
}

// Bounds adapts the bounds of a load.
func (m *Machines) Bounds(b *system.Bounds) {
	if d := m.drain(); d != nil && d.Pools != "" {
		delete(b.Guards, observe.NodesNotReady) // the roll-out reboots nodes
	}
}

// Lab completes the specification of a private lab.
func (m *Machines) Lab(spec *lab.Spec) {
	spec.Machines = m.asked()
	if m.here && m.Workload.Lab == workload.LabVirt {
		spec.TimeScale = cmp.Or(spec.TimeScale, 1)
	}
}

// asked returns how many machines the plan will certainly have at once; 0 if it does not say.
func (m *Machines) asked() int {
	if m.objects == nil {
		return 0
	}
	axis, err := m.Workload.Axis(m.Plan.Axis.Name)
	if err != nil || !slices.Contains([]string{observe.AxisObjects, observe.AxisAllAtOnce, observe.AxisAtOnce}, cmp.Or(axis.Means, axis.Name)) {
		return 0
	}
	return int(m.Plan.Certain())
}

// Refuse refuses a level with more machines that do IO than the lab has real guests.
func (m *Machines) Refuse(l lab.Spec, level system.Level, objects int, params workload.Params) error {
	if m.objects == nil || !l.HasVirt() || !described.DoesIO(m.Workload, params) || objects <= l.RealGuests {
		return nil
	}
	hint := fmt.Sprintf("give the private lab real ones, --lab-real-guests %d, or ask for fewer machines", objects)
	if !l.Private {
		hint = fmt.Sprintf("make a lab with real ones: plimsoll lab up NAME --virt --real-guests %d", objects)
	}
	return system.Mistakef(hint, "the level %g has %d machines, each of which does IO, and %d of the lab's have a real guest: what is played does no IO", level.Value, objects, l.RealGuests)
}

// Describe completes the fidelity of a run on a lab.
func (m *Machines) Describe(v lab.Spec, of *record.Fidelity) {
	if !m.here || !v.HasVirt() {
		return
	}
	of.Guests = record.Simulated
	note := "virtual machines, their disks and migrations are simulated with planted times; no guest ran"
	if v.RealGuests > 0 {
		note = fmt.Sprintf("virtual machines, their disks and migrations are simulated with planted times; the first %d to start have a real guest, which QEMU runs by emulation (TCG) as %s: its boot, its SSH server and its IO are real, to a file of this machine; a migration of it is played, and a stop of it is a loss of power", v.RealGuests, proc.Least())
	}
	of.Notes = append(of.Notes, note)
	switch {
	case v.TimeScale <= 0 || v.TimeScale == 1:
	case v.RealGuests > 0:
		of.Notes = append(of.Notes, fmt.Sprintf("what is simulated of them passes %g times as fast and what is real does not: times are shown as measured; do not scale them", v.TimeScale))
	default:
		of.TimeScale = v.TimeScale
		of.Notes = append(of.Notes, fmt.Sprintf("what is simulated of them passes %g times as fast: a measured second stands for %[1]g, and what the control plane and this program took themselves counts %[1]g times too much", v.TimeScale))
	}
}

// Readings returns the usage of the limits on machines, as a lab shows it.
func (m *Machines) Readings(l lab.Spec, c *api.Client) (list []record.Reading) {
	if !m.here || !l.HasVirt() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), limitsPatience)
	defer cancel()
	raw, err := c.Typed.CoreV1().RESTClient().Get().AbsPath(protocol.VirtLimitsPath).DoRaw(ctx)
	told := make(map[string]map[string]float64)
	if err != nil || json.Unmarshal(raw, &told) != nil {
		return nil
	}
	for source, values := range told {
		list = append(list, record.Reading{Source: source, Values: values})
	}
	return list
}

const limitsPatience = time.Second // bounds the wait for a lab's limits
