package proc

import "golang.org/x/sys/windows"

func cpuSeconds() (float64, error) {
	var created, ended, kernel, user windows.Filetime
	err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &ended, &kernel, &user)
	ticks := func(f windows.Filetime) float64 { return float64(f.HighDateTime)*(1<<32) + float64(f.LowDateTime) }
	return (ticks(kernel) + ticks(user)) / 1e7, err // of 100 ns
}
