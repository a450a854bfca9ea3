// Package workload answers one question: what can be loaded, along which axis,
// with which parameters? A workload is data: a directory with a description
// (workload.yaml) and a configuration in kube-burner's format, into which the
// parameters go as template variables.
//
// Objects of any kind are data, too ([Objects]): a life of many stages needs no
// program of its own, since what is asked of an object further hangs on its
// milestones. IO in a guest is a milestone as well, not a target: machines are
// made, followed and removed as any objects, and the one thing more is a
// command by SSH whose output is fio's. The figures of such a step are reported
// once every machine has reported its own: those of some would be those of the
// fast ones.
//
// Times are told apart by labels that the workload names. An object's values go
// on record with its first milestone, and those of nodes are in the kind of the
// objects, so that a record is judged without its cluster.
package workload
