// Package virt simulates KubeVirt, its importer of images and the nodes'
// operator of OpenShift in a lab: it serves their APIs and takes virtual
// machines, volumes, migrations and pools through the states that they report,
// with planted times and limits. No guest runs; of each only the greeting of an
// SSH server is there, at an address of its own on the loopback.
//
// The APIs are real. The definitions come from the published modules by
// controller-gen, and pods, claims and nodes are real objects of a real control
// plane. Only what would happen inside of storage, hypervisors and guests is a
// model: queues that are told the time. All planted times are divided by one
// scale, and the rate of virt-controller's client is multiplied by it. What the
// lab does itself takes as long as ever, which is the error. The writes of
// virt-controller pass one token bucket, as in KubeVirt.
//
// A real guest stands behind the same objects: QEMU by emulation, reached by
// QEMU's own user network at the address that a simulated guest would have. So
// it needs no rights, no bridge and no removal, and whoever asks the APIs sees
// no difference but an annotation. Its system is one archive in memory, made of
// three packages: a distribution's image would take minutes to boot by
// emulation.
package virt
