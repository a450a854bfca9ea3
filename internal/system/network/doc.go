// Package network is the target of network paths: two machines within this one,
// joined in one of several ways, a generator in the first and a server in the second.
// What crosses the path, and what that costs the processors, is counted by the kernel.
package network
