// Package virt simulates KubeVirt, its importer of images and OpenShift's nodes' operator in a lab: it
// serves their APIs and takes virtual machines, volumes, migrations and pools through the states that
// they report, with planted times and limits. A simulated guest is the greeting of an SSH server at an
// address of its own on the loopback.
//
// The APIs are real. controller-gen makes the definitions from the published modules, and pods, claims
// and nodes are real objects of a real control plane. Only the insides of storage, hypervisors and guests
// are a model: queues that get the time as an argument. All planted times are divided by one scale, and
// the rate of virt-controller's client is multiplied by it. The lab's own work takes as long as ever,
// which is the error. The writes of virt-controller pass one token bucket, as in KubeVirt.
//
// A real guest stands behind the same objects: QEMU by emulation, reached by QEMU's own user network at
// the address that a simulated guest would have. So it needs no rights, no bridge and no removal, and the
// APIs show no difference but an annotation. Its system is one archive in memory, made of three packages:
// a distribution's image would take minutes to boot by emulation.
package virt
