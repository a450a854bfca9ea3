// Package workloads holds the built-in workloads as files: a directory for
// each, with workload.yaml (what it offers) and, where its target takes one, a
// configuration in kube-burner's format (what it creates). Files that several have
// in common are in shared.
package workloads

import (
	"embed"
	"io/fs"
)

//go:embed */*
var files embed.FS

// FS returns the built-in workloads, a directory for each. It cannot be changed.
func FS() fs.FS { return files }
