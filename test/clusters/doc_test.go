// Package clusters tests machine-vm across clusters: a management cluster with
// the Machines, and a remote API server with their virtual machines, which the
// function reaches by nothing but the kubeconfig in a Secret, under an account
// with the generated rights. The way to the remote server can be cut, stalled
// and opened again, and each call to it can be held, refused, or shown a certificate
// that has expired.
package clusters
