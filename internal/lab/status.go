package lab

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
)

// State is the condition of a lab or of one component.
type State string

// The conditions there are.
const (
	Running  State = "running"  // it works
	Starting State = "starting" // a command is bringing it up
	Broken   State = "broken"   // of a lab: a component is missing or does not answer; of a component: it runs and does not answer
	Stopped  State = "stopped"  // of a component: it has no process
)

// Component is one of a lab's processes.
type Component struct {
	Name string `json:"name"`
	// PID is its process, 0 if there is none.
	PID   int   `json:"pid"`
	State State `json:"state"`
}

// Status is what a lab is found to be.
type Status struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Nodes and Pods are counted in the cluster; null if it does not answer.
	Nodes      *int64      `json:"nodes"`
	Pods       *int64      `json:"pods"`
	Components []Component `json:"components"`
}

// Components finds the processes of a lab. It asks only the system,
// not the components: State is Running or Stopped.
func (l *Lab) Components() ([]Component, error) {
	processes, err := processesOf(string(l.dir))
	if err != nil {
		return nil, fmt.Errorf("find the components of lab %q: %w", l.Name(), err)
	}
	names := l.componentNames()
	components := make([]Component, 0, len(names))
	for _, name := range names {
		c := Component{Name: name, State: Stopped}
		for _, p := range processes {
			if p.component == name {
				c.PID, c.State = p.pid, Running
			}
		}
		components = append(components, c)
	}
	return components, nil
}

// statusTimeout bounds how long Status waits for an answer of the cluster.
const statusTimeout = 2 * time.Second

// Status looks at a lab: its processes, whether they answer, and how
// many nodes and pods there are. That something is wrong is not an error.
func (l *Lab) Status(ctx context.Context) (Status, error) {
	status := Status{Name: l.Name(), State: Running}
	components, err := l.Components()
	if err != nil {
		return status, err
	}
	status.Components = components
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	// All at once, so that one that hangs does not use up the others' time.
	var asked sync.WaitGroup
	for i, c := range components {
		if c.State != Running {
			continue
		}
		asked.Go(func() {
			probe, err := l.probe(c.Name)
			if err != nil || probe(ctx) != nil {
				components[i].State = Broken
			}
		})
		if c.Name == protocol.APIServer {
			asked.Go(func() {
				if cluster, err := l.cluster(); err == nil {
					if nodes, pods, err := cluster.count(ctx); err == nil {
						status.Nodes, status.Pods = &nodes, &pods
					}
				}
			})
		}
	}
	asked.Wait()
	if slices.ContainsFunc(components, func(c Component) bool { return c.State != Running }) {
		status.State = Broken
	}
	if !l.record.Ready && l.lock == nil && l.beingMade() {
		status.State = Starting
	}
	return status, nil
}

// beingMade reports whether another command holds a lab that was not
// yet up when it was opened.
func (l *Lab) beingMade() bool {
	held, err := tryLock(string(l.dir))
	if held != nil {
		held.release()
	}
	return held == nil && err == nil
}

// Restart ends a component with SIGKILL and starts it again with the same
// arguments. It returns when the component works again, and with etcd the API
// server that needs it. The error is a
// *ComponentError for a component that there is not, a *BusyError if another
// command is at work on the lab.
func (l *Lab) Restart(ctx context.Context, component string) error {
	if !slices.Contains(l.componentNames(), component) {
		return &ComponentError{component, l.componentNames()}
	}
	if l.lock == nil {
		held, err := l.acquire(ctx)
		if err != nil {
			return err
		}
		defer held.release()
	}
	err := l.damage
	if err == nil {
		err = l.restart(ctx, component)
	}
	if err != nil {
		return fmt.Errorf("restart %s of lab %q: %w", component, l.Name(), err)
	}
	return nil
}
