// Package adapter runs the program of sources/adapter, as it is shipped and with the
// rights that are generated for it, against two real API servers: one plays the
// management cluster, the other a target cluster that comes, changes and goes.
package adapter
