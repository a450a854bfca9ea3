//go:build !linux

package proc

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
)

func (How) start(*exec.Cmd) error { return errors.New("this needs Linux") }

// Processors returns the processors that a process may use.
func Processors(int) ([]int, error) { return nil, errors.New("the processors of a process need Linux") }

func onFirstThread() bool { return false }

func signal(int, syscall.Signal) {}

func self() (Usage, error) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	seconds, err := cpuSeconds()
	return Usage{CPUSeconds: seconds, RSSBytes: int64(m.Sys - m.HeapReleased), IOBytes: -1}, err
}
