package kubernetes

import (
	"context"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Extension is what a target on top of this one adds to one session, whose
// workload may be nil.
type Extension interface {
	// Outline is what a run does to the cluster besides.
	Outline() []system.Change
	// Lab completes what a private lab is brought up as.
	Lab(spec *lab.Spec)
	// Agree adds to what the user of a cluster must agree to.
	Agree(ctx context.Context, c *api.Client, consent *system.Consent) error
	// Bounds changes the bounds of a load on a cluster that is no lab.
	Bounds(b *system.Bounds)
	// Fill are parameters that the run gives, whatever the plan says, and which are
	// not put on record.
	Fill() (map[string]string, error)
	// Rights are those that a load with these parameters takes besides.
	Rights(params workload.Params) []ceiling.Right
	// Open makes what works on the objects of a run; ours tells which namespaces
	// are the run's.
	Open(run *prepared.Run, ours func(namespace string) bool, log func(format string, args ...any)) Beside
	// Refuse is why a lab cannot take a level of so many objects with these
	// parameters, nil if it can.
	Refuse(l lab.Spec, level system.Level, objects int, params workload.Params) error
	// Describe completes what is said of a run on a lab.
	Describe(l lab.Spec, of *record.Fidelity)
	// Readings are those of a lab besides.
	Readings(l lab.Spec, c *api.Client) []record.Reading
}

// Beside is what works on the objects of a run besides this target.
type Beside struct {
	Caller follow.Caller
	Around Around
	// Evict asks for what is measured, nil where that is a request to the object.
	Evict func(ctx context.Context, object string, slot record.Slot) record.Slot
}

// Around is what is done to the cluster before and after a load.
type Around interface {
	// Mark is called before anything is set up, for so many iterations, and Cordon
	// once all is.
	Mark(ctx context.Context, iterations int) error
	Cordon(ctx context.Context) error
	// On are the places of objects then, by their names: what these places tell is
	// told of the objects.
	On() map[string]string
	// Release undoes it. Leaving says that the run lets go of the cluster.
	Release(ctx context.Context, leaving bool) error
}

// plain is an Extension that adds nothing.
type plain struct{}

func (plain) Outline() []system.Change                                  { return nil }
func (plain) Lab(*lab.Spec)                                             {}
func (plain) Agree(context.Context, *api.Client, *system.Consent) error { return nil }
func (plain) Bounds(*system.Bounds)                                     {}
func (plain) Fill() (map[string]string, error)                          { return nil, nil }
func (plain) Rights(workload.Params) []ceiling.Right                    { return nil }
func (plain) Refuse(lab.Spec, system.Level, int, workload.Params) error { return nil }
func (plain) Describe(lab.Spec, *record.Fidelity)                       {}
func (plain) Readings(lab.Spec, *api.Client) []record.Reading           { return nil }
func (plain) Mark(context.Context, int) error                           { return nil }
func (plain) Cordon(context.Context) error                              { return nil }
func (plain) On() map[string]string                                     { return nil }
func (plain) Release(context.Context, bool) error                       { return nil }
func (plain) Open(*prepared.Run, func(string) bool, func(string, ...any)) Beside {
	return Beside{Caller: follow.Silent{}, Around: plain{}}
}
