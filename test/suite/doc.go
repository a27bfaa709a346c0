// Package suite is what the behaviour suites of functions stand on: a real API
// server, functions in this process under their own ServiceAccounts, and the
// questions that every suite asks. A suite reads
//
//	var suit = suite.New(suite.Options{
//		Specs: []reconcile.Spec{anchor.DefaultSpec()},
//		CRDs:  []string{crds.ClusterAPI, crds.GatewayAPI},
//		Files: []string{"api/dockyards/crds"},
//		Kinds: []kind.Resource{kinds.Clusters, kinds.Workloads},
//	})
//
//	func TestMain(m *testing.M) { os.Exit(suit.Main(m)) }
//
//	func TestAClusterGetsItsWorkload(t *testing.T) {
//		w := suit.World(t) // a namespace of its own
//		w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Cluster, metadata: {name: a}, spec: {}}`)
//		f := suite.Run(w, anchor.Declare(anchor.DefaultSettings()))
//		f.Insist(w.Event(kinds.Clusters, "a")) // again and again until it is done, as a broker does
//		if got := suite.Text(w.Must(kinds.Workloads, "a-dns"), "spec", "provenience"); got != "Dockyards" {
//			t.Errorf("the provenience is %q", got)
//		}
//		w.Remove(kinds.Workloads, "a-dns")
//		f.Resync()                            // page by page, until the chain ends
//		f.Rests(w.Event(kinds.Clusters, "a")) // three passes and a resync write nothing
//	}
//
// Every request of a function is held against its rights, which are generated from
// its Spec: a refusal that no test provoked fails the package, and so does a granted
// right that no test made use of (unless it is declared as Implied, or only some of
// the tests ran). Writes are sent with strict field validation. Tests share one API
// server, each has a namespace, and a copy of a function that looks at all namespaces
// sees only its own, unless it was run with [Everywhere].
//
// The suite of a package:
//
//	New(Options) *Suite
//	(*Suite) Main(kubetest.Runner) int         runs the tests, then looks at the evidence
//	(*Suite) World(testing.TB) *World          the API server, and a namespace on it
//	(*Suite) Remote(testing.TB, *World) *World a second API server that plays a remote cluster
//	(*Suite) CheckManifest(testing.TB)         deploy/base grants what the Specs declare
//	(*Suite) Unused() []string                 granted rights that nothing has used so far
//	Rights(reconcile.Spec) []*unstructured.Unstructured; Right, RightsOf(...Grant) []Right
//	Implied(spec), Without(spec, verb, resource) []Right; (*World) Account(...Right) *rest.Config
//
// A world and its objects:
//
//	(*World) Create(manifests ...string) *Unstructured      as a person, strictly validated
//	(*World) Apply(manifests ...string)                     in place, whether it is there or not
//	(*World) CreateAs(manager string, manifests ...string)  by POST and PUT, as another operator does
//	(*World) Patch(res, name, body string, subresource ...string) *Unstructured
//	(*World) Update(res, name, manager string, change func(*Unstructured)) *Unstructured
//	(*World) Remove(res, name); Get(res, name); Must(res, name) *Unstructured
//	(*World) In(res) dynamic.ResourceInterface; At(namespace) *World
//	(*World) Await(res, name, what string, is func(*Unstructured) bool) *Unstructured
//	(*World) Event(res, name) cloudevents.Event; Changed(what, apiVersion, kind, ns, name); Cluster(eventType, cluster)
//	(*World) Scoped(*rest.Config) *rest.Config              for controllers that play a part in one test
//	(*World) Objects() map[string]*Unstructured; Names() []string   all of Options.Kinds, by "Kind/name"
//	(*World) State() map[string]string                      the same, without what differs from run to run
//	(*World) Documents(except ...string) string; Golden(t, name, got)   testdata, written with -update
//	(*World) Snapshot() map[string]Life                     UID, generation, version and bytes of each
//	(*World) Lives(), Versions() map[string]string          UIDs, resource versions
//	(*World) Condition(res, name, type) string              "status reason"; Condition(obj, type) (is, reason, message)
//	Parse, Text, Bytes, Bare, File, EachString, Gone                          small readers
//
// A copy of a function, as a process of its own would be:
//
//	Run(w, reconcile.Function, ...Option) *Copy; (*World) Host(name, func(reconcile.Options) *reconcile.Host, ...Option) *Copy
//	WithTap(Tap), WithAfter(func(Call) error), WithConfig(*rest.Config), WithOptions(func(*reconcile.Options)), Everywhere
//	(*Copy) Send(event) int; Insist(event); Resync() (pages int); Rests(events ...)
//	(*Copy) Asked() (reads, writes []string); Calls() []kubetest.Request; Log *Buffer; Metrics() string
//	NewGate(n) holds a copy at its n-th call: (*Gate) Begin(copy, event) (finish func() int, held bool)
//	Answer(req, code), Status(code), ErrBroken              what a broken API server says
//	Each(t, items, name, do)                                a subtest for each item, a few at once
//	(*World) Source(copy) *Source                           turns every change into an event, as Knative's sources do
//
// The way to a remote cluster:
//
//	NewWay(t, address) *Way                                 a TCP connection that can Cut, Stall and Open
//	NewProxy(t, *rest.Config) *Proxy                        HTTPS call by call: Before(func), Late(by), Certificate(until)
//	Redirect(t, kubeconfig, server, ca) []byte              a kubeconfig that leads there
package suite
