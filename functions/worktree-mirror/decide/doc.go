// Package decide holds all of worktree-mirror's thinking, without a client, a clock
// or randomness.
package decide
