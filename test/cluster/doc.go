// Package cluster is a whole cluster on one machine: a real node (test/node), Knative
// Serving and Eventing (test/node/bundle), what plays the hardware as in the local stack
// (kwok, test/virt, test/providers), and Slipway, installed by deploy/deploy as a user
// would, as images in containerd.
//
// [Up] brings it up; its tests, which `make e2e` runs, are the end-to-end test:
// functions are pods that start from zero on an event and go back to zero, with the
// rights of their own accounts. They need root on Linux and Debian's packages; where
// that is missing they say which step failed and skip, unless SLIPWAY_E2E=required.
// Without SLIPWAY_E2E they do not even try. `make e2e-shell` keeps the cluster and
// opens a shell to look around.
package cluster
