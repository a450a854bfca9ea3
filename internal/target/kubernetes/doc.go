// Package kubernetes is the Kubernetes target: it applies a workload's objects
// at a bounded rate, watches them, and removes everything that it made.
//
// # Requests
//
// Requests bypass client-go's request type, which retries 429 silently and
// decodes answers that nobody reads. Its configuration, authentication and
// transports are used. A pod costs half a millisecond of this program's CPU
// time, from request to record.
//
// # Watches
//
// Pods are decoded in part, by hand: the observer needs a twentieth of the
// message. Other objects are watched as JSON, of which only the paths are read
// that the workload names, and a milestone that was reached is not looked for
// again: decoding a whole virtual machine instance (14 kB) takes ten times as
// long. Each watch has a connection of its own by HTTP/1.1, for with HTTP/2
// half of the cost was handing frames from goroutine to goroutine.
//
// The canary is the barrier. It is a pod that no scheduler places, changed at
// known times on the watch that brings the news of the load's pods: when a
// change made now has been seen, so has everything before it. It also measures
// the API's latency and shows a dead connection. The lag is counted from the
// request that made the change, so it is an upper bound. For other resources
// the barrier is a list: once a watch has seen the newest version in it, it has
// seen all.
//
// # Emptying
//
// The namespaces of a load stay between steps if it makes nothing but pods.
// Removing them would take along thousands of the cluster's events, which is a
// load of its own. A load that makes other objects is emptied by its
// namespaces, since these take along what controllers made.
//
// # What a run changes
//
// A setting that a run changes is noted on the changed object: the former value
// is an annotation that comes with the same patch, bound to the object's
// version. So a killed run leaves no change that cannot be put back. The run's
// namespace lists these objects before the first change, so that the next run
// finds them with a request that it makes anyway; 'plimsoll clean' finds them
// by their label.
//
// A drain labels the nodes that it has chosen before it makes machines, which
// prefer them by that label. It cordons them with a label of the run, in one
// patch bound to what was looked at. So the nodes of a dead run are found by
// one list, and a node that somebody else cordoned is never uncordoned. A
// refused eviction is an answer, no throttled request. A roll-out is a drain
// that somebody else carries out: it has the same labels, set-up and
// milestones, and begins with a MachineConfig. That its end is over is read
// from the pool's list of sources, since the name of what is in force may be
// another one afterwards.
//
// # Calls
//
// Machines are called from this machine or through the API server, never from a
// pod of the run: that needs an image that the cluster can pull, and a clock
// that agrees with ours. Calls through the API server are bounded here, since
// priority and fairness lets long-running requests pass. How late an answer may
// have been seen is measured: the time since the failed call before.
package kubernetes
