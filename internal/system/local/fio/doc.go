// Package fio runs fio and reads its results: jobs as files, one process for each volume, and the bins
// of its json+ output, merged without loss. The storage targets and virtual machines that do IO use it.
//
// Each fio prints its bins once a window, and the difference of two prints is a window. So a step that
// was cut, or a killed fio, has figures until then; histogram logs are written only at the end. A window
// holds the IOs completed in it.
//
// The job is written to standard input when all processes are loaded, so that fifty start within 0.2 s
// without a barrier. A signal ends them, since fio's own run time would count from before. At a fixed
// rate fio runs at real-time priority, as this program does: at its start it measures how late it wakes
// up, and then wakes up that much earlier before each IO. Fifty that start together without the priority
// measure too long a time.
package fio
