// Package fio runs fio and reads its results: jobs as files, one process for
// each volume, and the bins of its json+ output, merged without loss. It serves
// the storage targets and the virtual machines that do IO.
//
// Each fio prints the bins of its histograms once a window, and a window is the
// difference of two prints. So a step that was cut, or a fio that was killed,
// has figures up to then; histogram logs are written at the end only. A window
// holds the IOs that were completed in it.
//
// The job is written to standard input once all processes are loaded, so that
// fifty start within 0.2 s and need no barrier. The end is a signal, since
// fio's own run time would count from before. At a fixed rate fio runs at
// real-time priority, as this program does: it measures at its start how late
// it is woken, and is awake for as long before each IO. Fifty that start
// together without it find that to be long.
package fio
