// Package build makes the programs that a local stack runs and that no package
// of the root module can link: those of the nested Go modules, and one per
// function.
//
// [Binaries] works through the targets it is given, one after the other:
//
//  1. For a target that is heavy to link it compares a hash of everything that
//     the program is made of in this repository (its module's files, the flags,
//     the version of Go) with the one stored beside the program, and is done with
//     the target when they agree. All others go's own cache decides upon.
//  2. It takes the lock of the bin folder, so that two processes that want the
//     same program build it once, and on two cores not against each other.
//  3. It runs "go build" in the target's module and puts the result in place by
//     a rename: a program that is running stays what it was, and nobody ever
//     starts half a file.
//
// Everything is built without cgo and stripped, so that programs run wherever
// they are copied.
package build
