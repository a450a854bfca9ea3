// Package observe turns news of objects into milestones: a pure state machine
// that reads no clock, knows no server and judges nothing. Whoever receives
// news stamps it and hands it over; out come the events of the history.
//
// One [Tracker] serves pods and the objects that a workload describes: both
// become the same news. Several resources may bring news of one object. A
// milestone after a request is looked for from the request on, since the same
// value may have been there before.
//
// ImagesReady comes from the kubelet's Pulled events, since no message of a pod
// says when its images are on the node. Nothing waits for it, and it may come
// after ContainersStarted.
package observe
