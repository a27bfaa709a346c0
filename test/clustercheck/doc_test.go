// Package clustercheck tests cluster-check, and the command `kubectl slipway
// check`, across clusters: a management cluster with the KubevirtConfigs, and a
// remote API server that both reach by nothing but the kubeconfig in a Secret,
// under an account with the generated rights for targets. The way to the remote
// server can be cut, stalled and opened again. The management cluster is a target
// too, under the name alpha, which makes it the yardstick of the versions.
package clustercheck
