// Package adapter turns changes of Kubernetes objects into CloudEvents where an
// ApiServerSource cannot: on remote clusters, for kinds whose plural it guesses
// wrong, and for kinds whose group is optional or whose version differs between
// installations.
//
// It writes no watch of its own. For every cluster and API group it runs the
// receive adapter of Knative, the very code behind an ApiServerSource, inside
// this process, so the events are the same to the byte. What it adds is when to
// run it:
//
//  1. It asks each cluster's discovery which of the configured resources are
//     served, and in which of their versions; the first one that is served wins.
//  2. It starts one receive adapter per API group (and mode). A group that is
//     missing cannot keep another one from being watched.
//  3. It watches CustomResourceDefinitions. When one of a configured resource
//     comes or goes, the discovery of that group is read again until it has
//     settled, and its adapter is started, replaced or stopped. A replaced
//     adapter overlaps its successor, since a doubled event does no harm and a
//     lost one waits for the next resync.
//  4. Groups that no CustomResourceDefinition tells of (aggregated API servers)
//     are found by a discovery once a minute.
//  5. A cluster that has a name is remote: each of its events carries the
//     extension "cluster" with that name, and dev.slipway.cluster.connected and
//     dev.slipway.cluster.disconnected tell when it can be reached.
//
// What it cannot promise is what an ApiServerSource cannot promise either:
// objects that exist at the start give no event, and what changes while nobody
// watches gives none. The resync makes up for both.
package adapter
