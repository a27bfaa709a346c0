// Package docs holds what the documents say against the repository: links lead
// somewhere, every line of a shell block is a command that its program takes, the paths
// and overlays that it names are there, and what can be run without a cluster of its own
// is run. The README's commands are run whole by test/e2e.
package docs
