package lab

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
)

// State says in what condition a lab or component is.
type State string

// The states of labs and components.
const (
	Running  State = "running"  // it works
	Starting State = "starting" // a command is bringing it up
	Broken   State = "broken"   // a component does not answer; of a lab, also: a component has no process
	Stopped  State = "stopped"  // a component has no process
)

// Component reports one of a lab's processes.
type Component struct {
	Name  string `json:"name"`
	PID   int    `json:"pid"` // 0 without a process
	State State  `json:"state"`
}

// Status reports the state of a lab.
type Status struct {
	Name       string      `json:"name"`
	State      State       `json:"state"`
	Nodes      *int64      `json:"nodes"` // Nodes and Pods are counted in the cluster; null if it does not answer
	Pods       *int64      `json:"pods"`
	Components []Component `json:"components"`
}

// Components finds the processes of a lab. It does not probe them: State is Running or Stopped.
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

// statusTimeout bounds how long Status waits for answers.
const statusTimeout = 2 * time.Second

// Status finds a lab's processes, probes them, and counts nodes and pods. A broken lab is not an error.
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

// beingMade reports whether another command holds a lab that was not up yet when it was opened.
func (l *Lab) beingMade() bool {
	held, err := tryLock(string(l.dir))
	if held != nil {
		held.release()
	}
	return held == nil && err == nil
}

// Restart kills a component, starts it again, and returns when it works, with etcd also the API server. It
// returns a *ComponentError for an unknown component, and a *BusyError for a busy lab.
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
