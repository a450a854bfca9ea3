// Package http loads a server that is not ours with a user's own list of requests.
// Nothing is seen of the server but its answers.
package http
