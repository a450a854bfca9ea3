// Package tune says which settings a host, cluster or workload needs, why, and which file or command applies
// them. Each calculator returns an Answer with its inputs, its formula with numbers, its sources, their
// errors, and the files to apply. It measures and changes nothing. A plan uses the calculators of its
// subjects, host, cluster, ceph and virt, in order.
//
// Reading a cluster or a host fills in parameters and decides nothing. A parameter is declared once: name,
// unit, range, default, help, and where it can be read. Where a source is wrong, the answer uses the right
// reading and shows both figures. It never lowers a value below what the host, or OpenShift's own profile for
// its nodes, already has. A host is read through a file system, so that a saved directory is as good as the
// host itself.
package tune
