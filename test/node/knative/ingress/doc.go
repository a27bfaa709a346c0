// Command ingress is the part of Knative's network that stands before every function,
// as small as one node needs it. Kourier's, which most people run, is Envoy.
//
// It follows the Ingresses (networking.internal.knative.dev) of its own class, keeps a
// table of where each host goes, and forwards requests: to the function's pods, or to
// the activator while there are none, which is told by two headers whom to wake. An
// Ingress is marked Ready when the table has it, not before.
//
// Not in it: TLS, visibility, probing of what is behind, HTTP/2 to what is behind.
package main
