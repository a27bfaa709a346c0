//go:build !race

package worker

// raced tells that the race detector is linked; factor is by how much wider the limits
// of memory are for that.
const (
	raced  = false
	factor = 1
)
