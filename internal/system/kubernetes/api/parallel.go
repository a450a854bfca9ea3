package api

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// InParallel calls work for 0 <= i < n from up to workers goroutines, at most rate times a second (0 is
// unbounded), and returns the first error.
func InParallel(ctx context.Context, n, workers int, rate float64, work func(context.Context, int) error) error {
	group, going := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	var pace <-chan time.Time
	if rate > 0 {
		ticker := time.NewTicker(max(1, time.Duration(float64(time.Second)/rate)))
		defer ticker.Stop()
		pace = ticker.C
	}
	for i := range n {
		if pace != nil && i > 0 {
			select {
			case <-pace:
			case <-going.Done():
			}
		}
		if going.Err() != nil {
			break
		}
		group.Go(func() error { return work(going, i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}
