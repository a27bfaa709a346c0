// Package worktreemirror is the function worktree-mirror: it makes the commit that
// holds a Worktree's files a source for Flux.
//
// Another component commits the files of a Worktree and notes in its status where:
// url, referenceName, commitHash. From these the function keeps a GitRepository of
// the Worktree's name. While they are missing, or cannot be used, an existing
// GitRepository stays as it is.
//
// # What wakes it
//
// Changes of Worktrees, and of GitRepositories: drift is undone, and one that was
// deleted is made again. An event is only a key (keys.go).
//
// # What holds
//
//   - A GitRepository that has a controller, or another owner, is left alone.
//   - Of a GitRepository the function owns url, interval and ref, the labels of the
//     domain dockyards.io, and its owner reference. Everything else is left to others.
//   - A Worktree that is being deleted is left alone: the owner reference does the rest.
//   - At the fixpoint nothing is written.
package worktreemirror
