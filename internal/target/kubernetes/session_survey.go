package kubernetes

import (
	"context"
	"slices"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/observe"
)

// Survey implements target.Session.
func (s *session) Survey(ctx context.Context, thorough bool) (target.Survey, error) {
	found := target.Survey{Target: s.cluster.Naming, Server: s.cluster.Server, Kind: observe.Pods()}
	survey, err := s.cluster.Survey(ctx)
	if err != nil {
		return found, err
	}
	found.Version = survey.Version
	looks, err := s.assessArms(ctx, survey)
	if err != nil {
		return found, err
	}
	for _, l := range looks {
		s.real = s.real || slices.ContainsFunc(l.Facts.Nodes, func(n ceiling.Node) bool { return !n.Simulated })
	}
	if !s.real {
		found.Kind = withoutImages(found.Kind)
		if err := haveKubelets(s.Plan); err != nil && s.Workload != nil && !s.ToRead {
			return found, err
		}
	}
	if thorough {
		if err := s.examine(ctx, survey, looks[0].Assessment, &found); err != nil {
			return found, err
		}
	} else {
		for _, f := range ceiling.Vital(survey.Health()) {
			if f.Severity != record.SeverityOK {
				found.Findings = append(found.Findings, f)
			}
		}
	}
	for _, l := range looks {
		table := ceiling.Compute(l.Facts)
		table.Arm = l.arm
		found.Tables = append(found.Tables, table)
	}
	return found, nil
}

// examine adds all that may be read to what was found.
func (s *session) examine(ctx context.Context, survey *Survey, look *Assessment, found *target.Survey) error {
	survey.Kubelets(ctx, look)
	health := survey.Health()
	health.Found, health.Clean = look.Findings, s.Clean
	if s.Workload == nil {
		look.Needs = nil // a workload needs them, and there is none
	}
	if err := survey.Examine(ctx, &health, look.Needs); err != nil {
		return err
	}
	found.Findings = ceiling.Judge(health)
	return nil
}

// armAssessment is what a survey tells of one arm, of the workload itself for "".
type armAssessment struct {
	*Assessment
	arm string
}

// assessArms are what a survey tells of each arm, in the order of the plan.
func (s *session) assessArms(ctx context.Context, survey *Survey) ([]armAssessment, error) {
	arms := s.toLoad()
	if s.ToRead {
		arms = []armVariant{{"", s.variant}}
	}
	var list []armAssessment
	for _, a := range arms {
		l, err := s.assess(ctx, survey, a.Variant)
		if err != nil {
			return nil, err
		}
		list = append(list, armAssessment{l, a.arm})
	}
	return list, nil
}

// assess is what a survey tells of a rendering of the workload.
func (s *session) assess(ctx context.Context, survey *Survey, v Variant) (*Assessment, error) {
	d := Demand{Variant: v, RunID: s.Run, UUID: s.UUID, Axis: ceiling.Axis{Name: observe.AxisPodsPerNode, Unit: "pods/node"}}
	if s.Workload != nil {
		d.Workload = s.Workload.Name
		axis, err := s.Workload.Axis(s.Plan.Axis.Name)
		if err != nil {
			return nil, err
		}
		d.Axis = ceiling.Axis{Name: axis.Name, Unit: axis.Unit, Foreign: axis.Name != observe.AxisPodsPerNode && axis.Loop != workload.Open}
		if axis.Loop == workload.Open {
			d.Axis.Life = time.Duration(s.Plan.Axis.PodLife)
			d.Axis.Span = d.Axis.Life + time.Duration(s.Plan.Hold)
		}
	}
	l, err := survey.Assess(ctx, d)
	return l, mistakes(err)
}

// withoutImages is a kind of objects that need no images.
func withoutImages(k record.ObjectKind) record.ObjectKind {
	k.Milestones = slices.DeleteFunc(slices.Clone(k.Milestones), func(m record.Milestone) bool { return m.Name == observe.ImagesReady })
	return k
}

// haveKubelets refuses to judge simulated nodes by what only a kubelet tells.
func haveKubelets(p *plan.Plan) error {
	const hint = "leave it out, or load nodes that have a kubelet, such as a lab's with --lab-real-node"
	for _, goal := range p.Goals {
		for _, text := range goal.Value {
			if o, err := slo.Parse(text); err == nil && o.Milestone == observe.ImagesReady {
				return target.Mistakef(hint, "objective %q: these nodes are simulated, and fetch no images", text)
			}
		}
	}
	if m := p.Primary; m != nil && strings.HasPrefix(m.Metric, observe.ImagesReady+" ") {
		return target.Mistakef(hint, "metric %q: these nodes are simulated, and fetch no images", m.Metric)
	}
	return nil
}
