// Package observe turns news of objects into milestones: a pure state machine that reads no clock,
// knows no server and judges nothing. The receiver stamps the news; out come the events of the history.
//
// One [Tracker] serves pods and described objects: both become the same news. Several resources may
// bring news of one object. A milestone after a request counts only after the request, since the
// same value may have been there before.
//
// ImagesReady comes from the kubelet's Pulled events, since no message of a pod has it. Nothing waits
// for it, and it may come after ContainersStarted.
package observe
