package kubernetes

import (
	"fmt"
	"maps"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// renderings are a workload's: by the plan's parameters, and with those of each
// arm. Without a workload all are empty.
type renderings struct {
	variant Variant
	arms    []armVariant // in the order of the plan
}

// armVariant is the rendering of an arm, of the workload itself for "".
type armVariant struct {
	arm string
	Variant
}

// renderingsOf renders the workload of a request, and each arm of it.
func renderingsOf(r target.Request) (all renderings, err error) {
	if all.variant, err = variantOf(r, r.Plan.Params); err != nil {
		return all, err
	}
	for _, arm := range r.Plan.Arms {
		given := make(map[string]string)
		maps.Copy(given, r.Plan.Params)
		maps.Copy(given, arm.Params)
		v, err := variantOf(r, given)
		if err != nil {
			return all, fmt.Errorf("arm %s: %w", arm.Name, err)
		}
		all.arms = append(all.arms, armVariant{arm.Name, v})
	}
	return all, nil
}

// toLoad are the renderings that are to be loaded: those of the arms, or else
// that of the workload itself.
func (all renderings) toLoad() []armVariant {
	if len(all.arms) > 0 {
		return all.arms
	}
	return []armVariant{{"", all.variant}}
}

// variantOf renders the workload of a request with these parameters.
func variantOf(r target.Request, given map[string]string) (v Variant, err error) {
	if r.Workload == nil {
		return v, nil
	}
	params, err := r.Workload.Resolve(given)
	if err != nil {
		return v, target.Mistakef("", "%w", err)
	}
	if v.Config, err = r.Workload.Config(params, r.UUID); err != nil {
		return v, target.Mistakef("", "%w", err)
	}
	if problems := kubeburner.Unsupported(v.Config); len(problems) > 0 {
		return v, target.Mistakef("take it out of the workload's configuration", "%w", strictyaml.Join(problems))
	}
	if v.Templates, err = v.Config.Templates(r.Workload.Files()); err != nil {
		return v, target.Mistakef("", "%w", err)
	}
	return v, nil
}
