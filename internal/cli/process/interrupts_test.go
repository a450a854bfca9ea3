package process

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// SIGTERM ends a run within two seconds. On a machine that is too busy for that, it has
// first to say what it found, and how it goes on is always said.
func TestSIGTERMWaitsForWhatWasFound(t *testing.T) {
	for _, tt := range []struct {
		why   string
		said  time.Duration // after the signal; -1 is never, -2 that there is nothing to say
		ends  time.Duration // the command by itself; 0 is never
		exits time.Duration // the process was ended; 0 is that it ended by itself
	}{
		{"it ends by itself", -2, time.Second, 0},
		{"nothing was found yet", -2, 0, 1800 * time.Millisecond},
		{"the result is there, and the removal is not done", 500 * time.Millisecond, 0, 1800 * time.Millisecond},
		{"judging takes longer", 4 * time.Second, 0, 4700 * time.Millisecond},
		{"judging takes longer, and then it ends", 4 * time.Second, 4500 * time.Millisecond, 0},
		{"judging does not end", -1, 0, 8 * time.Second},
	} {
		t.Run(tt.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals := make(chan os.Signal, 4)
				var mu sync.Mutex
				log := ""
				i := NewInterrupts(signals, func(format string, args ...any) {
					mu.Lock()
					defer mu.Unlock()
					log += fmt.Sprintf(format, args...)
				})
				begin := time.Now()
				var exited time.Duration
				var code int
				i.end = func(c int) {
					mu.Lock()
					defer mu.Unlock()
					exited, code = time.Since(begin), c
				}
				left, command := "what the run has made is left", "plimsoll run --resume DIR"
				i.Left.Store(&left)
				i.Continues.Store(&command)
				if tt.said != -2 {
					said := i.Tells()
					if tt.said > 0 {
						time.AfterFunc(tt.said, said)
					}
				}
				signals <- syscall.SIGTERM
				closed := false
				if tt.ends > 0 {
					time.Sleep(tt.ends)
					i.Close()
					closed = true
				}
				time.Sleep(20 * time.Second)
				mu.Lock()
				defer mu.Unlock()
				if exited != tt.exits || tt.exits > 0 && (code != 143 || !strings.Contains(log, left) || !strings.Contains(log, "hint: 'plimsoll run --resume DIR' continues it")) {
					t.Errorf("exited after %v with %d, want %v: %s", exited, code, tt.exits, log)
				}
				if !closed {
					i.Close()
				}
				synctest.Wait()
			})
		})
	}
}
