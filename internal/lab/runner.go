package lab

import (
	"context"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/proc"
)

type runner struct {
	store  Store
	dir    directory
	record record
	tie    *proc.Tie // what a private lab's processes are tied to
}

func (r *runner) componentNames() []string {
	names := ComponentNames()
	if r.record.HasVirt() {
		names = append(names, protocol.Virt)
	}
	if r.record.RealNode == nil {
		return names
	}
	if r.record.Nodes == 0 {
		names = slices.DeleteFunc(names, func(name string) bool { return name == protocol.SimulatedNodes })
	}
	return append(names, RealNodeComponentNames()...)
}

func (r *runner) processOf(component string) (*process, error) {
	processes, err := processesOf(string(r.dir))
	if err != nil {
		return nil, err
	}
	for _, p := range processes {
		if p.component == component {
			return &p, nil
		}
	}
	return nil, nil
}

func (r *runner) start(component string) (*proc.Process, error) {
	var apart []int
	if node := r.record.RealNode; node != nil && component != protocol.RealNode {
		apart = realnode.ProcessorsBeside(node.CPUs)
	}
	c, err := start(r.store.Executable, r.dir, component, arguments(component, r.dir, r.record), r.tie, apart)
	if err != nil {
		return c, err
	}
	if r.record.ControlPlaneCPUs > 0 && slices.Contains([]string{protocol.Etcd, protocol.APIServer, protocol.ControllerManager, protocol.Scheduler}, component) {
		return c, realnode.EnterControlPlane(string(r.dir), c.PID())
	}
	if component != protocol.RealNode {
		return c, nil
	}
	return c, r.record.RealNode.Attach(c.PID())
}

// startAll starts each component as soon as its needs work: clients that retry would pause for seconds.
func (r *runner) startAll(ctx context.Context) error {
	cluster, err := r.cluster()
	if err != nil {
		return err
	}
	if err := r.startOne(ctx, protocol.Etcd); err != nil {
		return err
	}
	if err := r.startOne(ctx, protocol.APIServer, hookRoles, hookPriorities); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := cluster.setUp(ctx); err != nil {
			return err
		}
		for _, component := range []string{protocol.SimulatedNodes, protocol.Virt, protocol.RealNode} {
			if slices.Contains(r.componentNames(), component) {
				group.Go(func() error {
					if component == protocol.Virt { // its rights come from a role
						if err := cluster.waitRoles(ctx); err != nil {
							return err
						}
					}
					return r.startOne(ctx, component)
				})
			}
		}
		return nil
	})
	group.Go(func() error {
		if err := cluster.waitRoles(ctx); err != nil {
			return err
		}
		for _, component := range []string{protocol.ControllerManager, protocol.Scheduler} {
			group.Go(func() error { return r.startOne(ctx, component) })
		}
		if err := cluster.waitServiceAccount(ctx); err != nil {
			return err
		}
		return cluster.waitReady(ctx)
	})
	return group.Wait()
}

// startOne starts a component and waits until it works, but for the given hooks of the API server.
func (r *runner) startOne(ctx context.Context, component string, except ...string) error {
	r.store.progress("starting %s", component)
	if err := ignoreNotExist(os.Remove(r.dir.readyFile(component))); err != nil {
		return err
	}
	c, err := r.start(component)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watcher := make(chan struct{})
	go func() {
		defer close(watcher)
		select {
		case <-c.Done():
			cancel(&endedError{component, c.State().String(), proc.LogTail(r.dir.log(component), 15)})
		case <-ctx.Done():
		}
	}()
	err = r.waitHealthy(ctx, component, except...)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cancel(nil)
	<-watcher
	if err != nil {
		return fmt.Errorf("start %s: %w", component, err)
	}
	return nil
}

type endedError struct{ component, state, log string }

func (e *endedError) Error() string {
	return fmt.Sprintf("it ended by itself (%s); its log ends with\n%s", e.state, e.log)
}

func (r *runner) restart(ctx context.Context, component string) error {
	if slices.Contains([]string{protocol.Containerd, protocol.Kubelet, protocol.KubeProxy}, component) {
		return r.restartOnRealNode(ctx, component)
	}
	err := killAll(ctx, string(r.dir), func(p process) bool { return p.component == component })
	if err != nil {
		return err
	}
	if component == protocol.RealNode {
		// The link went with the node.
		if err := r.record.RealNode.MakeLink(); err != nil {
			return err
		}
	}
	if component == protocol.ControllerManager || component == protocol.Scheduler {
		cluster, err := r.cluster()
		if err == nil {
			err = cluster.dropLease(ctx, component)
		}
		if err != nil {
			return err
		}
	}
	if err := r.startOne(ctx, component); err != nil {
		return err
	}
	if component != protocol.Etcd {
		return nil
	}
	api, err := r.processOf(protocol.APIServer)
	if err != nil || api == nil {
		return err
	}
	return r.waitHealthy(ctx, protocol.APIServer)
}

// restartOnRealNode kills one of the real node's programs; the node's first process starts it again.
func (r *runner) restartOnRealNode(ctx context.Context, component string) error {
	before, err := r.processOf(component)
	if err != nil {
		return err
	}
	if before == nil {
		return fmt.Errorf("it has no process: %q brings the whole node up again", "plimsoll lab restart "+protocol.RealNode)
	}
	if err := before.kill(r.store.labs()); err != nil {
		return err
	}
	err = poll(ctx, func() error {
		now, err := r.processOf(component)
		if err == nil && (now == nil || *now == *before) {
			err = fmt.Errorf("it was not started again")
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.waitHealthy(ctx, component)
}
