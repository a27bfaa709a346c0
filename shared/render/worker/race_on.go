//go:build race

package worker

// raced tells that the race detector is linked. It maps and keeps a multiple of all
// memory: factor is by how much the limits are wider then. Tests only.
const (
	raced  = true
	factor = 8
)
