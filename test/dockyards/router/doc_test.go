// Package router plays the function workload-router on two real API servers: one is
// the management cluster, the other the workload cluster of every tenant.
//
// The function runs under its own ServiceAccount with the rights that are generated
// from its declaration, on both: a call that it may not make fails the test. Between
// it and the workload cluster stands a proxy that counts its calls and can cut it off.
package router
