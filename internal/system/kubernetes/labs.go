package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/room"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// LabStore returns the store of this user's labs, without those of commands that have ended. Without Linux
// it returns a *system.UnableError.
func LabStore(ctx context.Context, host system.Host) (lab.Store, error) {
	if runtime.GOOS != "linux" {
		return lab.Store{}, &system.UnableError{Err: errors.New("a lab needs Linux"), Hint: "name a cluster: --kubeconfig FILE"}
	}
	dir, err := host.StateDir()
	if err != nil {
		return lab.Store{}, err
	}
	store := lab.Store{Root: dir, Executable: host.Executable}
	swept, err := store.Sweep(ctx, false)
	if err != nil {
		return store, err
	}
	for _, l := range swept {
		if !l.Alive {
			host.Log("removed %s, whose command is gone", l.Things[0])
		}
	}
	return store, nil
}

// OpenLab returns the lab with this name. Its error has passed LabError.
func OpenLab(ctx context.Context, host system.Host, name string) (*lab.Lab, error) {
	store, err := LabStore(ctx, host)
	if err != nil {
		return nil, err
	}
	l, err := store.Open(name)
	return l, LabError(err)
}

// LabError turns a user's mistakes about labs into *system.MistakeError; other errors pass through.
func LabError(err error) error {
	if missing, ok := errors.AsType[*lab.NotFoundError](err); ok {
		other := "'plimsoll lab up " + missing.Name + "' makes it"
		if len(missing.Have) > 0 {
			other = "there are: " + strings.Join(missing.Have, ", ")
		}
		return system.Mistakef(nearest.Hint(missing.Name, missing.Have, other), "%w", err)
	}
	if exists, ok := errors.AsType[*lab.ExistsError](err); ok {
		return system.Mistakef(fmt.Sprintf("'plimsoll lab status %s' shows it, 'plimsoll lab down %[1]s' removes it", exists.Name), "%w", err)
	}
	if component, ok := errors.AsType[*lab.ComponentError](err); ok {
		return system.Mistakef(nearest.Hint(component.Name, component.Have, ""), "%w", err)
	}
	if _, ok := errors.AsType[*lab.SpecError](err); ok {
		return system.Mistakef("", "%w", err)
	}
	if lacking, ok := errors.AsType[*proc.MissingError](err); ok {
		return &system.UnableError{Err: err, Hint: cmp.Or(lacking.Remedy(), "'plimsoll lab doctor' shows what this machine has")}
	}
	return err
}

// LabOf returns the lab of this cluster, if both kubeconfig and cluster say that it is one. A lab of
// another machine or user gets its name in Naming, but is loaded as any cluster.
func (c *Cluster) LabOf(ctx context.Context, host system.Host) (*lab.Lab, error) {
	marker, ok := lab.MarkerOf(c.Config, c.Context)
	if !ok {
		return nil, nil
	}
	written, err := c.client.Typed.CoreV1().ConfigMaps(lab.MarkerNamespace).Get(ctx, lab.MarkerConfigMap, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return nil, c.client.Unreachable(err)
	}
	if err != nil || written.Data[lab.MarkerKey] != marker.ID {
		return nil, nil
	}
	c.Naming = record.TargetNaming{Kind: "lab", Name: marker.Name}
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

// Needs implements system.Provider: only labs run programs of this machine.
func (Provider) Needs() []proc.Program { return lab.Needs() }

// SweepHost implements system.Sweeper: it removes labs and control groups of commands that have ended. Labs
// for virtual machines count as labs for clusters.
func (p Provider) SweepHost(ctx context.Context, h system.Host, removes func(run string) bool) ([]system.Leftover, error) {
	if p.Machines {
		return nil, nil
	}
	dir, err := h.StateDir()
	if err != nil {
		return nil, err
	}
	store := lab.Store{Root: dir, Executable: h.Executable}
	labs, err := store.Sweep(ctx, !removes(""))
	name := p.Declare().Name
	var list []system.Leftover
	for _, l := range labs {
		list = append(list, system.Leftover{Target: name, Left: l})
	}
	groups, groupsErr := store.SweepGroups(ctx, !removes(""))
	if len(groups) > 0 {
		list = append(list, system.Leftover{Target: name, Left: room.Left{Things: groups}})
	}
	return list, errors.Join(err, groupsErr)
}
