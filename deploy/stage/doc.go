// Command stage makes a folder that kn func can build and deploy of one function,
// or of several:
//
//	go run ./deploy/stage machine-vm           build/func/machine-vm
//	go run ./deploy/stage -all                 one folder for each function, and build/func/slipway for the whole set
//
// kn func wants func.yaml, go.mod and a package with New in one folder, and never
// looks above it, so a function of a repository with one go.mod has to be laid out
// anew:
//
//  1. collect: every package of this module that the function is made of, on each
//     platform that kn func compiles for, at its path below the root; go.mod and
//     go.sum as they are.
//  2. generate: function.go, whose New is the function's, and a .gitignore.
//  3. place: only files whose bytes differ are written, and what is no longer
//     wanted is removed: kn func finds a folder up to date by modification times,
//     and then deploys without a build.
//
// Two things in the folder are kn func's: .func is never touched, and func.yaml, in
// which kn func notes where it deployed to, is written anew only when its source has
// changed (a copy of the source lies in .func). So the sources in functions/ stay
// pristine. What is noted binds a folder to one namespace: stage into another one
// (-out) for another.
//
// The folder is built with GOFLAGS=-mod=mod and GOWORK=off.
package main
