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
//
// A request is late by whatever else runs on its processor at that moment. At a rate the
// program's threads are real-time ones, and none of them makes way for another: what takes
// milliseconds in each second, such as encoding windows and reading the kernel's figures
// ([Generator.Beside]), is done on threads that are none, and garbage is collected before
// and after a stream. Go takes the processor from the loop's goroutine each 10 ms and gives
// it back by another thread, so that it does not help to prefer the loop's alone.
package load
