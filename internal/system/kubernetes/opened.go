package kubernetes

import (
	"context"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

// Opened is a session on a cluster, for loads that are not objects of the cluster.
type Opened struct {
	system.Session
	of *session
}

// Open opens the lab or cluster that a request's plan names, for another target than this package's. A private
// lab's real node has the images, named as in package lab.
func Open(ctx context.Context, r system.Request, images ...string) (*Opened, error) {
	r.Workload = nil
	s, err := openSession(ctx, r, images...)
	if err != nil {
		return nil, err
	}
	return &Opened{s, s}, nil
}

// Image returns the reference of an image of the lab's real node. Its error hints at what to do instead.
func (o *Opened) Image(name, otherwise string) (string, error) {
	return imageOf(o.of.lab, name, otherwise)
}

// Client returns the client of the cluster.
func (o *Opened) Client() *api.Client { return o.of.cluster.client }

// Lab returns the lab that the cluster is, nil for others.
func (o *Opened) Lab() *lab.Lab { return o.of.lab }

// Components has the readings of a lab's real node count pods by the component of their UID, "" for none.
func (o *Opened) Components(of func(uid string) string) {
	o.of.usage.Lock()
	defer o.of.usage.Unlock()
	o.of.component = of
}

// Summary describes the cluster to the user before it is loaded.
func (o *Opened) Summary(ctx context.Context) (string, error) {
	text, _, err := o.of.cluster.summary(ctx)
	return text, err
}

// Version returns the version of the API server.
func (o *Opened) Version(ctx context.Context) (string, error) {
	version, _, err := o.of.cluster.version(ctx)
	return version, err
}

// Naming returns the cluster's name in records.
func (o *Opened) Naming() record.TargetNaming { return o.of.cluster.Naming }
