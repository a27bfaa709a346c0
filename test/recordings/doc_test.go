// Package recordings plays every saved recording to the function that it is of. Whatever
// lies under functions/*/testdata/recordings is a test case: its decisions, requests and
// conclusion have to come out again, byte for byte.
//
// A new one is saved by `kubectl slipway replay RECORDING --save NAME`. When a function is
// meant to decide otherwise, `go test ./test/recordings -update` writes down what it comes
// to now; the difference is for the review.
package recordings
