package engine

import (
	"fmt"
	"sync"

	"gonum.org/v1/gonum/mathext"
)

// outcomes counts ended requests by their last outcome: one that a retry healed did not fail.
type outcomes struct{ ended, failed int }

func (o outcomes) plus(x outcomes) outcomes { return outcomes{o.ended + x.ended, o.failed + x.failed} }

func (o outcomes) minus(x outcomes) outcomes { return outcomes{o.ended - x.ended, o.failed - x.failed} }

func (o outcomes) percent() float64 { return 100 * float64(o.failed) / float64(max(o.ended, 1)) }

// exceed reports whether the share of failed requests is above a bound in percent with a confidence of
// 1-errorRisk, by the exact binomial test (Clopper and Pearson, 1934). A bound of 5% takes 3 of 3
// requests, 6 of 20 or 22 of 200, one of 50% 11 of 11, 18 of 20 or 124 of 200.
func (o outcomes) exceed(bound float64) bool {
	if o.failed == 0 {
		return false
	}
	return mathext.RegIncBeta(float64(o.failed), float64(o.ended-o.failed+1), min(bound/100, 1)) <= errorRisk
}

const (
	errorRisk     = 0.0005 // probability that a look stops a load at the allowed share; see docs/objectives.md
	leastRequests = 200    // number of requests for the share, where the latest look saw fewer
)

// recentErrors keeps the outcomes of the latest requests: those since the last look, for a target that
// fails altogether, and up to leastRequests with earlier ones. It is safe for concurrent use.
type recentErrors struct {
	mu     sync.Mutex
	total  outcomes   // of requests that are counted one by one
	seen   outcomes   // at the latest look
	looks  []outcomes // of each look, oldest first
	recent outcomes   // their sum
}

func (e *recentErrors) add(failed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.total.ended++
	if failed {
		e.total.failed++
	}
}

// look returns the outcomes since the last look, and the latest ones; stream has a stream's sums so far.
func (e *recentErrors) look(stream *outcomes) (latest, recent outcomes) {
	e.mu.Lock()
	defer e.mu.Unlock()
	total := e.total
	if stream != nil {
		total = *stream
	}
	latest = total.minus(e.seen)
	e.seen = total
	if latest.ended <= 0 {
		return outcomes{}, e.recent // nothing has ended
	}
	e.looks, e.recent = append(e.looks, latest), e.recent.plus(latest)
	for e.recent.ended-e.looks[0].ended >= leastRequests {
		e.recent, e.looks = e.recent.minus(e.looks[0]), e.looks[1:]
	}
	return latest, e.recent
}

func (o outcomes) String() string {
	return fmt.Sprintf("%d of the latest %d requests failed", o.failed, o.ended)
}
