// Package kubetest gives a test package a real API server of its own.
//
// A package's TestMain hands over to [Main]:
//
//	func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }
//
// and each test that needs a server asks for it with [Start]. The first to ask
// starts it, [Main] stops it after the last test. Tests share the server, and each
// makes a namespace of its own ([Env.Namespace]).
//
// One etcd serves all packages of a `make test` (the command withetcd starts it and
// names it in SLIPWAY_TEST_ETCD); each package's server keeps its objects below a
// prefix of its own. A package that is tested alone gets an etcd of its own. At
// most two API servers run at once over all test processes of this checkout: the
// others wait for their turn.
//
// [Requests] counts what a client asks the server, [Faults] lets requests fail,
// lose their answer or wait; both hook into a client's configuration.
//
// Nothing of this needs root, a container engine or a port that is known before.
// The server is the kube binary of deploy/local/build, and is built if need be.
package kubetest
