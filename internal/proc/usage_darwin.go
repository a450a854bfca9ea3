package proc

import "golang.org/x/sys/unix"

func cpuSeconds() (float64, error) {
	var r unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &r)
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9, err
}
