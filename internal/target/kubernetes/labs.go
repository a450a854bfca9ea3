package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// LabStore is where this user's labs are. What dead commands left there is
// removed first.
func LabStore(ctx context.Context, host target.Host) (lab.Store, error) {
	dir, err := host.StateDir()
	if err != nil {
		return lab.Store{}, err
	}
	store := lab.Store{Root: dir, Executable: host.Executable}
	swept, err := store.Sweep(ctx)
	if err != nil {
		return store, err
	}
	for _, name := range swept {
		host.Log("removed lab %q, whose command is gone", name)
	}
	return store, nil
}

// OpenLab finds a lab by its name.
func OpenLab(ctx context.Context, host target.Host, name string) (*lab.Lab, error) {
	store, err := LabStore(ctx, host)
	if err != nil {
		return nil, err
	}
	l, err := store.Open(name)
	return l, LabError(err)
}

// LabError turns the mistakes that a user can make about labs into
// *target.MistakeError with a hint; other errors pass through.
func LabError(err error) error {
	var missing *lab.NotFoundError
	var exists *lab.ExistsError
	var component *lab.ComponentError
	var spec *lab.SpecError
	var lacking *realnode.MissingError
	switch {
	case errors.As(err, &missing):
		other := "'plimsoll lab up " + missing.Name + "' makes it"
		if len(missing.Have) > 0 {
			other = "there are: " + strings.Join(missing.Have, ", ")
		}
		return target.Mistakef(nearest.Hint(missing.Name, missing.Have, other), "%w", err)
	case errors.As(err, &exists):
		return target.Mistakef(fmt.Sprintf("'plimsoll lab status %s' shows it, 'plimsoll lab down %[1]s' removes it", exists.Name), "%w", err)
	case errors.As(err, &component):
		return target.Mistakef(nearest.Hint(component.Name, component.Have, ""), "%w", err)
	case errors.As(err, &spec):
		return target.Mistakef("", "%w", err)
	case errors.As(err, &lacking):
		return &target.UnableError{Err: err, Hint: cmp.Or(lacking.Remedy(), "'plimsoll lab doctor' shows what this machine has")}
	}
	return err
}

// LabOf finds the lab that a cluster is. It is one if the kubeconfig and the
// cluster itself say so with one voice. One that is a lab of another machine or
// user is named so, and is a cluster like any other beside that: then the lab
// is nil.
func (c *Cluster) LabOf(ctx context.Context, host target.Host) (*lab.Lab, error) {
	marker, ok := lab.MarkerOf(c.Config, c.Context)
	if !ok {
		return nil, nil
	}
	id, err := c.Marker(ctx, lab.MarkerNamespace, lab.MarkerConfigMap, lab.MarkerKey)
	if err != nil || id != marker.ID {
		return nil, err
	}
	c.Named(record.TargetNaming{Kind: "lab", Name: marker.Name})
	dir, err := host.StateDir()
	if err != nil {
		return nil, nil
	}
	l, err := lab.Store{Root: dir, Executable: host.Executable}.Open(marker.Name)
	if err != nil || l.ID() != marker.ID {
		return nil, nil
	}
	return l, nil
}
