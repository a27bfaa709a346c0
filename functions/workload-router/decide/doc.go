// Package decide holds all of workload-router's thinking, without a client, a clock
// or randomness.
//
// A decision goes through these steps, each in a file of its own:
//
//  1. checks.go: what has to be there before a workload cluster is asked. The first
//     check that fails ends the pass.
//  2. remote.go: which of the workload cluster's Services count, and how many.
//  3. zones.go: which hostnames the Cluster may have.
//  4. names.go, ports.go: what the mirror of each Service is called, and which
//     ports it has.
//  5. mirror.go, route.go: Services and routes, made anew or changed entry by entry;
//     own.go tells whose an object is.
//  6. prune.go: what has to go.
//  7. conclude.go turns the answers of the API servers into one condition.
//
// # Names
//
// The mirror of a Service is called <workload>-<service>. A Service has another name,
// a beginning of that one with a hash of its namespace and name behind it, when
//
//   - that name would be no Service's name;
//   - another Service of the Workload has it: the one in the Workload's target
//     namespace keeps it, else the first by namespace;
//   - it belongs to somebody else by its form: to another Workload of the namespace
//     with a longer name that it begins with, or to a Cluster of the namespace for its
//     API endpoint. What tenants call their Services must not keep these from theirs.
//     A mirror that exists under such a name stays.
//
// # Hostnames
//
// A zone is given to the oldest of the Clusters that have it. So no hostname is ever
// wanted for two Clusters, whatever their order or the state of their workload
// clusters. A route that exists gives up the hostnames of other Clusters even while
// its own workload cluster cannot be asked; everything else waits until it can.
package decide
