// Package subjects holds, for every function, what it is tried with outside of its own
// suite: the objects of one subject, an event about it, and a change. Benchmarks measure
// with them, chaos makes hundreds of them.
//
// A subject is a file named after its function. NAME stands for the subject's name, SPACE
// for a namespace of the function's own, KUBECONFIG for a kubeconfig that leads to the API
// server, and OWNER as a UID for that of the owner, which stands before in the list.
package subjects
