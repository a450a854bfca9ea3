// Package watch says how late the news of a step may have been: the lag of canaries, and gaps of watches.
package watch
