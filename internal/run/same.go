package run

import (
	"fmt"
	"slices"

	"plimsoll.dev/plimsoll/internal/record"
)

// sameTarget refuses another target than the one that a run has loaded.
func sameTarget(was, is record.Environment) error {
	if was.Target != is.Target && !(was.Target.Private && is.Target.Private) {
		return &ContradictionError{fmt.Sprintf("the run loaded %s, this is %s", targetName(was.Target), targetName(is.Target))}
	}
	parts := is.Fidelity.Parts()
	for i, part := range was.Fidelity.Parts() {
		if part.Is != "" && part.Is != parts[i].Is {
			return &ContradictionError{fmt.Sprintf("%s of what the run loaded: %s; of this: %s", part.Part, part.Is, parts[i].Is)}
		}
	}
	return nil
}

func targetName(t record.TargetNaming) string {
	if t.Private {
		return "a private " + t.Kind
	}
	return fmt.Sprintf("%s %q", t.Kind, t.Name)
}

func changes(was, is record.Environment) []string {
	known := func(e record.Environment) []record.Known {
		return (&record.Environment{Facts: e.Facts, Places: e.Places}).Known()
	}
	var list []string
	now := known(is)
	for _, before := range known(was) {
		i := slices.IndexFunc(now, func(k record.Known) bool { return k.Name == before.Name })
		if i >= 0 && !before.Same(now[i]) {
			list = append(list, fmt.Sprintf("%s: it was %s and is %s", before.What, before.Text(), now[i].Text()))
		}
	}
	return list
}
