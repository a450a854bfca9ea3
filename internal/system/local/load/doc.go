// Package load sends streams of HTTP requests and records the outcome of each: at a rate by a
// schedule, or from a number of clients as fast as they are answered. It is made to use little CPU,
// since the target lacks what it uses.
//
// It is an event loop of coroutines. One thread for each of its processors waits for all its
// connections (epoll) and resumes the coroutine (iter.Pull) of one that can go on. With a goroutine for
// each connection, Go's poller, scheduler and monitor thread cost more than the requests. crypto/tls
// and the frames of HTTP/2 run in the coroutines unchanged, on a connection whose reads yield.
//
// Whatever else runs on its processor makes a request late. At a rate the program's threads are real-time
// ones, and none yields to another: work of milliseconds per second, such as encoding windows and reading
// the kernel's figures ([Generator.Beside]), is done on other threads, and garbage is collected before
// and after a stream. To prefer only the loop's thread does not help: every 10 ms Go takes the processor
// from the loop's goroutine and gives it back by another thread.
package load
