// Package router loads a real HAProxy, which it runs for itself in the shape of
// OpenShift's router, with requests of its own generator.
//
// A link of limited rate is a network namespace without a name. The servers are
// inside, too, so that the link carries what clients send and get, as the
// published arithmetic counts it.
package router
