package run

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"plimsoll.dev/plimsoll/internal/system"
)

// slowRemoval is a system whose removal takes a while.
type slowRemoval struct {
	system.Instance
	takes time.Duration
}

func (slowRemoval) Progress() system.Progress { return system.Progress{Left: 1} }

func (s slowRemoval) Close(context.Context) error {
	<-time.After(s.takes)
	return nil
}

// A removal may end at the very moment at which its progress is due: nothing is shown
// after the end, where nobody would take it away again.
func TestNothingIsShownOfARemovalThatIsOver(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			shown, over, late := 0, false, false
			progress := func() (func(string), func()) {
				return func(string) { shown++; late = late || over }, func() { over = true }
			}
			target := &target{Instance: slowRemoval{takes: 3 * removalShown}, job: &Job{Request: system.Request{Host: system.Host{Progress: progress}}}}
			if err := target.Close(t.Context()); err != nil || shown < 3 || !over {
				t.Fatalf("shown %d times, over %v, %v", shown, over, err)
			}
			synctest.Wait()
			if late {
				t.Fatal("something was shown after the end")
			}
		})
	}
}
