// Package burner has the commands of kube-burner that load nothing: import, index, check-alerts, measure and
// destroy. The others are in package experiment.
package burner

import (
	"errors"
	"io/fs"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/size"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// The exit codes of kube-burner.
const (
	Failed          = 1
	TimedOut        = 2
	AlertFired      = 3
	ThresholdBroken = 4
)

// ReadMetadata reads what documents have besides, from a file; "" is nothing.
func ReadMetadata(file string) (metadata map[string]any, err error) {
	if file != "" {
		err = ReadYAML("user-metadata", file, &metadata)
	}
	return metadata, err
}

// given returns what documents have besides, from a file or "", and fills in a missing UUID.
func given(p *process.Process, file string, uuid *string) (map[string]any, error) {
	metadata, err := ReadMetadata(file)
	if err == nil && *uuid == "" {
		_, *uuid, err = p.Names()
	}
	return metadata, err
}

// ReadYAML reads the file of a flag.
func ReadYAML(flag, file string, into any) error {
	text, err := size.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return process.Usagef(nearest.File(file), "--%s: file %s does not exist", flag, file)
	}
	if err == nil {
		_, err = strictyaml.Decode(file, text, into)
	}
	if err != nil {
		return process.Usagef("", "--%s: %w", flag, err)
	}
	return nil
}
