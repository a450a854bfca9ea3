// Package volumes loads its own GlusterFS with volumes: it makes, mounts, writes and deletes them, and
// reads the usage of their servers.
//
// The memory of many processes is the sum of their proportional shares (PSS): a thousand processes of one
// program share its pages, which resident memory would count a thousand times.
package volumes
