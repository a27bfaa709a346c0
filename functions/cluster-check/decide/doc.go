// Package decide holds all of cluster-check's thinking, without a client, a
// clock or randomness. The function and the command `kubectl slipway check`
// share it.
//
//  1. config.go: which KubevirtConfigs count, where their kubeconfigs are, and
//     which cluster is the yardstick of the versions.
//  2. sight.go: what was seen of a cluster, and the checks of it.
//  3. schema.go: the check of the management cluster's own definitions.
//  4. words.go: how it is told. The same state gives the same words, or the
//     status would be written again and again.
//  5. survey.go: all checks of all clusters, for a person who asks.
//  6. conclude.go: the status of one KubevirtConfig.
//
// # The yardstick
//
// The stored versions of KubeVirt's definitions are compared with those of the
// first cluster by name whose versions could be read. Which one that is follows
// from the other KubevirtConfigs' own statuses, so a reconcile asks two clusters
// at most, however many there are; what its versions are is read live. Whether
// versions could be read is recorded in the condition VersionsMatch: Unknown
// with another reason than Waiting says that they could not.
package decide
