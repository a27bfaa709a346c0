// Package worker renders in child processes, so that a template can use up
// neither the processor nor the memory of the process that serves requests.
//
// A child is this very binary, started again with a private argument; Hook, the
// first line of New(), of every main and of TestMain, turns that start into a
// child's life. A child has an empty environment, no descriptors but its pipes, a
// process group of its own, and dies with its parent. Before it evaluates anything
// it lowers its own limits: memory, descriptors (none can be opened any more), size
// of files, core dumps. It watches its own processor time, and its parent watches
// the clock.
//
// Requests and answers are messages of a length and JSON, over pipes. Children stay
// warm: each takes one job at a time, and is replaced after a kill, a crash, a broken
// message, many jobs, or growth.
package worker
