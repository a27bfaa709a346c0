// Package renderer holds the behaviour suite of workload-renderer, worktree-mirror,
// kustomization-mirror and helmrelease-mirror: what the functions do to a real API
// server with the real definitions of Flux, each under its own account.
package renderer
