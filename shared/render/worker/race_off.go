//go:build !race

package worker

// raced tells that the race detector is linked, which maps a multiple of all memory.
const raced = false
