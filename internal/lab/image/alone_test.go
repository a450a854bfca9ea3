package image

import (
	"bytes"
	"debug/elf"
	"os"
	"strings"
	"testing"
)

func TestAnImageHoldsWhatItsProgramNeeds(t *testing.T) {
	for _, c := range []struct {
		text, why string
	}{
		{"", "nothing"},
		{"#!/bin/sh\nexec pause\n", "a script: the image has no shell"},
	} {
		if err := alone([]byte(c.text)); err == nil {
			t.Errorf("%s is taken for a program", c.why)
		}
	}
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Skip(err)
	}
	file, err := elf.NewFile(bytes.NewReader(shell))
	if err != nil {
		t.Skip(err)
	}
	if libraries, _ := file.ImportedLibraries(); len(libraries) == 0 {
		t.Skip("the shell here needs no library")
	}
	if err := alone(shell); err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("a program that needs libraries: %v", err)
	}
}
