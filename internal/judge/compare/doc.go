// Package compare answers whether runs of one arm are better or worse than those of another, by how much,
// and what else differs. It is pure: runs come in as figures and samples, and a comparison comes out.
//
// The run is the replicate. One metric decides, which was declared before the runs; everything else is
// descriptive, with its rate of false discoveries.
//
// A run of an arm is a step from empty. A block holds one run of each arm in a random order, and the
// interval is Student's, of the block differences of the logarithms. Objects that were never ready cannot
// make an arm look faster: an arm that loses more objects than the baseline is not called better,
// equivalent or not worse.
package compare
