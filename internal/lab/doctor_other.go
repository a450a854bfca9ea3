//go:build !linux

package lab

import "runtime"

// Doctor says that labs need Linux.
func (s Store) Doctor() []Requirement {
	return []Requirement{Requirement{For: forLab, What: "system", Need: "Linux"}.failed(runtime.GOOS, "use a Linux machine, or name a cluster: --kubeconfig FILE")}
}
