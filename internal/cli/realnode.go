package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/cpu"
	"plimsoll.dev/plimsoll/internal/image"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/workload"
)

// What a workload's parameters are called that a real node needs other values
// of.
const (
	paramImage        = "image"
	paramGracePeriod  = "gracePeriod"
	paramNodeSelector = "nodeSelector"
	paramServices     = "serviceAddresses"
	paramDatabase     = "databaseImage"
)

// suitRealNode sets those parameters that were left open to what suits the
// laboratory's real node, and reports whether there were any: an image that it
// has, since it can get none; addresses of services, since nobody there knows
// their names; and time for pods to stop in, since a level that
// begins from empty begins when the node has stopped them, not only the API
// has forgotten them.
func (r *runner) suitRealNode() bool {
	if !r.onRealNode() {
		return false
	}
	changed := false
	for name, value := range map[string]string{paramImage: image.AgentReference, paramGracePeriod: "1", paramServices: lab.ServiceAddresses} {
		if _, given := r.plan.Params[name]; given || !hasParam(r.workload, name) {
			continue
		}
		if r.plan.Params == nil {
			r.plan.Params = make(map[string]string)
		}
		r.plan.Params[name] = value
		changed = true
	}
	return changed
}

// onRealNode reports whether the load goes to a laboratory's real node.
func (r *runner) onRealNode() bool {
	if r.lab == nil || r.lab.Spec().RealNode == nil {
		return false
	}
	return r.lab.Spec().Nodes == 0 || strings.Contains(r.plan.Params[paramNodeSelector], lab.RealSelector)
}

// haveImages refuses a real node that was made without an image that the
// workload runs: it has no registry to get it from.
func (r *runner) haveImages() error {
	if _, given := r.plan.Params[paramDatabase]; given || !hasParam(r.workload, paramDatabase) || !r.onRealNode() || r.lab.HasImage(imagePostgres) {
		return nil
	}
	name := r.lab.Name()
	return usagef(fmt.Sprintf("make it and the laboratory anew: plimsoll image build %s; plimsoll lab down %s; plimsoll lab up %s --real-node. Or name an image that nodes can pull, with --set %s=", imagePostgres, name, name, paramDatabase),
		"the real node of laboratory %q has no image of PostgreSQL, which %s runs", name, r.workload.Name)
}

// needImages makes the images that a private laboratory's real node needs for
// the workload and that have not been made before.
func (r *runner) needImages(ctx context.Context) error {
	if _, given := r.plan.Params[paramDatabase]; given || !hasParam(r.workload, paramDatabase) {
		return nil
	}
	dir, err := r.p.stateDir()
	if err != nil {
		return err
	}
	if _, err := os.Stat(imageFile(dir, imagePostgres)); err == nil {
		return nil
	}
	r.p.logf("making the image of PostgreSQL of the distribution's packages\n")
	_, _, _, err = buildImage(ctx, r.p, imagePostgres)
	return err
}

func hasParam(w *workload.Workload, name string) bool {
	_, err := w.Param(name)
	return err == nil
}

// describeRealNode adds to the environment what a real node of this machine
// ran with.
func (r *runner) describeRealNode(env *record.Environment) {
	if r.lab == nil || r.lab.Spec().RealNode == nil {
		return
	}
	env.Host.Runtimes = r.lab.RealNodeVersions()
	node, beside := r.lab.RealNodeProcessors()
	note := "the real node may use all processors of this machine"
	switch {
	case len(node) > 0 && len(beside) > 0:
		note = fmt.Sprintf("the real node is kept to processors %v, the control plane, the load generator and the observer to %v", node, beside)
		if !r.apart {
			note = fmt.Sprintf("the real node is kept to processors %v, the control plane to %v; the load generator and observer may use all", node, beside)
		}
	case len(node) > 0:
		note = fmt.Sprintf("the real node is kept to processors %v, which are all that there are: the control plane shares them", node)
	}
	if cpus := r.lab.Spec().RealNode.CPUs; cpus > 0 && cpus < float64(len(node)) {
		note += fmt.Sprintf("; it gets the time of %g", cpus)
	}
	env.Isolation.Notes = append(env.Isolation.Notes, note)
}

// keepApart keeps this program off the processors of a real node that has some
// of its own, as far as others are left.
func (r *runner) keepApart() (undo func()) {
	if r.lab == nil {
		return func() {}
	}
	_, beside := r.lab.RealNodeProcessors()
	if len(beside) == 0 {
		return func() {}
	}
	undo, err := cpu.Keep(beside)
	if err != nil {
		return func() {} // the record says that it is not kept apart
	}
	r.apart = true
	return undo
}

// realNodeReadings reads what the parts of the real node use. It is called
// with reading held.
func (r *runner) realNodeReadings() []record.Sample {
	if r.meter == nil {
		meter, err := r.lab.RealNodeMeter()
		if err != nil || meter == nil {
			return nil // not known, and the result says null
		}
		r.meter = meter
	}
	var component func(string) string
	if t := r.target.Load(); t != nil && len(r.workload.Components) > 0 {
		component = t.ComponentOfPod
	}
	uses, err := r.meter.Read(component)
	if err != nil {
		return nil
	}
	// What begins from nothing is told from there on.
	for _, c := range r.workload.Components {
		part := realnode.ComponentPart(c.Name)
		if component != nil && !slices.ContainsFunc(uses, func(u realnode.Use) bool { return u.Part == part }) {
			uses = append(uses, realnode.Use{Part: part})
		}
	}
	samples := make([]record.Sample, 0, len(uses))
	for _, u := range uses {
		s := record.Sample{Source: u.Part, Values: map[string]float64{
			"cpuSeconds": u.CPUSeconds, "rssBytes": float64(u.RSSBytes),
		}}
		if u.Processes > 0 {
			s.Values["processes"] = float64(u.Processes)
		}
		samples = append(samples, s)
	}
	return samples
}
