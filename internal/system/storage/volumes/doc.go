// Package volumes loads a GlusterFS, which it runs for itself, with volumes:
// they are made, mounted, written to and deleted, and what their servers use is
// read.
//
// The memory of many processes is the sum of their proportional shares (PSS): a
// thousand processes of one program share its pages, and resident memory counts
// those a thousand times.
package volumes
