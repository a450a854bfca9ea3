// Package load sends streams of HTTP requests and sees what becomes of each: at
// a rate by a schedule, or from a number of clients as fast as they are
// answered. It is made to cost little of a processor, since what it costs is
// missing to what it measures.
//
// It is an event loop of coroutines. One thread for each of its processors
// waits for all its connections (epoll) and resumes the coroutine (iter.Pull)
// of one that can go on. With a goroutine for each connection, Go's poller, its
// scheduler and the thread that looks after system calls cost more than the
// requests. crypto/tls and the frames of HTTP/2 run in the coroutines
// unchanged, on a connection whose reads yield.
package load
