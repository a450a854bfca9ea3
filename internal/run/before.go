package run

import (
	"cmp"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

// KindBefore is the kind of the objects of a record that was made before records
// said it: pods.
func KindBefore() record.ObjectKind { return observe.Pods() }

// kindOf is the kind of the objects of a record. Where it was made before records
// said it, they counted as there at the milestone that its plan names.
func kindOf(e *record.Environment, by record.ObjectKind) record.ObjectKind {
	if e != nil && e.Kind != nil {
		return *e.Kind
	}
	kind := KindBefore()
	kind.There = cmp.Or(by.There, kind.There)
	return kind
}
