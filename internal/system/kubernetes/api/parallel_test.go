package api

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Deletions are spread out at the rate that is allowed, and the first error
// ends them.
func TestPaceOfDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := InParallel(t.Context(), 11, 4, 100, func(context.Context, int) error { return nil })
		if took := time.Since(began); err != nil || took != 100*time.Millisecond {
			t.Errorf("11 at 100 a second took %v, %v", took, err)
		}
		refused := errors.New("refused")
		err = InParallel(t.Context(), 11, 4, 100, func(_ context.Context, i int) error {
			if i == 5 {
				return refused
			}
			return nil
		})
		if took := time.Since(began); err != refused || took != 150*time.Millisecond {
			t.Errorf("11 at 100 a second, of which the sixth failed, took %v, %v", took, err)
		}
	})
}
