// Package api holds what tests of the group dockyards.io have in common, and shows
// on a real API server what its definitions take, what they refuse, and what they
// store.
//
// The manifests are in testdata: accepted.txtar and rejected.txtar. They are a
// promise to those who have objects stored: one may be added to the accepted, none
// may move to the rejected.
package api
