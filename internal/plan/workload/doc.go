// Package workload describes what users can load, along which axes and with which parameters. A workload is
// data: a directory with a description (workload.yaml) and a configuration in kube-burner's format, whose
// template variables are the parameters.
//
// Objects of any kind are data, too ([Objects]): milestones trigger further requests, and so a life of many
// stages needs no program. IO in a guest is also a milestone: the load makes, follows and removes machines as
// any objects, and one more command runs fio by SSH. A step reports its figures once every machine has: those
// of some would be those of the fast ones.
//
// Labels that the workload names tell times apart. An object's values go on record with its first milestone,
// and those of nodes stand in the kind of the objects: the judge needs no cluster.
package workload
