package screen

import (
	"fmt"
	"sync"
	"time"
)

// Waiting says what is waited for: on a terminal at once and below any
// picture, elsewhere in a line once it has lasted for waitingSilence. What
// changes all the time, such as a count, is said then too, and every
// plainInterval from there on.
type Waiting struct {
	console *Console

	mu    sync.Mutex
	what  string
	since time.Time // of what
	said  string    // the last what that was said where there is no terminal
	next  time.Time // when something is said there, however new it is
	stop  chan struct{}
}

// waitingSilence is the longest wait without a message about its cause.
const waitingSilence = 2 * time.Second

// Show says what is waited for from now on.
func (l *Waiting) Show(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.what, l.since = what, l.console.Now()
	if l.stop == nil {
		l.next = l.since.Add(waitingSilence)
		l.stop = make(chan struct{})
		go l.keep(l.stop)
	}
	if l.console.screen != nil {
		l.console.screen.wait(what + " ...")
	}
}

// keep says what lasts.
func (l *Waiting) keep(stop chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.last(stop)
		case <-stop:
			return
		}
	}
}

func (l *Waiting) last(stop chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.console.Now()
	took := now.Sub(l.since)
	switch {
	case l.stop != stop:
	case l.console.screen != nil:
		if took >= waitingSilence {
			l.console.screen.wait(fmt.Sprintf("%s ... %s", l.what, took.Round(time.Second)))
		}
	case l.said != l.what && (took >= waitingSilence || !now.Before(l.next)):
		l.said, l.next = l.what, now.Add(plainInterval)
		l.console.Logf("%s ...\n", l.what)
	}
}

// End takes the line away: nothing is waited for.
func (l *Waiting) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop == nil {
		return
	}
	close(l.stop)
	l.stop = nil
	if l.console.screen != nil {
		l.console.screen.wait("")
	}
}
