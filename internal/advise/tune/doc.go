// Package tune answers: which settings does this host, cluster or workload
// need, why, and which file or command applies them? Each calculator takes
// parameters and returns an Answer that carries its inputs, its formula with
// the numbers put in, its sources, what those sources print wrongly, and the
// files to apply. It measures nothing and changes nothing. A plan asks the
// calculators of its subjects, host, cluster, ceph and virt, in order.
//
// Reading a cluster or a host fills in parameters and decides nothing. A
// parameter is declared once: name, unit, range, default, help, and where it
// can be read from. Where a source is wrong, the right reading is written and
// both figures are shown. A value is never written below what the host, or
// OpenShift's own profile for its nodes, already has. A host is read through a
// file system, so that a saved directory is as good as the host itself.
package tune
