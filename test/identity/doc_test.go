// Package identity shows that a function takes events of its own Trigger only, where
// deploy/components/authentication is in force: the shipped program runs under its own
// account with the settings and rights of the rendered manifests, and the tokens come
// from a real API server, as Knative asks for them.
//
// It also shows who may read recordings: the console as it is deployed beside the
// functions, under its own account, and nobody without the right.
//
// NOTE: that the broker sends the Trigger's token along is Knative's part; it was
// tried on the local stack's real broker (the specification of the eventing platform),
// and is seen whole on a real cluster only.
package identity
