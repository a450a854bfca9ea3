// Package lint finds what in configuration files will not do what its author meant. It reads what people keep
// for a cluster and its machines (manifests, machine configurations, virtual machines, sysctl files, commands
// in scripts and runbooks), and says of each fault where it is, what it costs and how to fix it. It contacts
// no cluster.
//
// Rules are small checks over parsed files; see Rules. The reader of a text's format (see readers) may find
// texts inside of it; each adds findings and facts to a report. Then the facts of all files are compared: a
// selector with the pools, a clone with its source.
//
// Documents are compared with the published types by reflection. The strict decoder of Kubernetes finds an
// unknown field, but not its place or where it belongs, and it skips types that decode themselves, such as a
// virtual machine. A test compares the two. Kubernetes' own kinds are left to its API server and to
// kubeconform. OpenShift's few kinds are tables here, because the published types bring too many
// dependencies. A file that is not checked for something gets a note, never "nothing found".
//
// A fix edits the text and never writes a document again, so that comments and form stay. A text inside of
// another (a block in a runbook, user data, base64 in a MachineConfig) knows how it is encoded there, and is
// fixed like a file. A person must do what is not plainly safe.
package lint
