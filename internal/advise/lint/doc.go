// Package lint answers one question: what in these configuration files will not
// do what its author meant? It reads what people keep for a cluster and for the
// machines below it (manifests, machine configurations, virtual machines,
// sysctl files, commands in scripts and runbooks), and says of each fault where
// it stands, what it costs and how it is fixed. It talks to no cluster.
//
// Rules are small checks over parsed files; see Rules. A text is looked at by
// the reader of its format (see readers), which may find texts inside of it;
// each look adds to a report what is wrong, and facts. The facts of all files
// are then held against each other: a selector against the pools, a clone
// against its source.
//
// Documents are held against the published types by reflection. The strict
// decoder of Kubernetes says that a field is unknown, but not where it stands
// or where it belongs, and it stops at types that read themselves, such as a
// virtual machine. A test holds the two against each other. Kubernetes' own
// kinds are left to its API server and to kubeconform. OpenShift's few kinds
// are tables here, since the published types bring too many dependencies. What
// a file is not checked for is a note, never "nothing found".
//
// A fix is an edit of the text, never a document written again, so that comments
// and form stay. What stands inside of another text (a block in a runbook, user
// data, base64 in a MachineConfig) is a text of its own that knows how it is
// written there, and is fixed like a file. Whatever is not plainly safe is left
// to a person.
package lint
