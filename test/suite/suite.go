package suite

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/deploy/local/crds"
	"github.com/slipway-dev/slipway/deploy/local/stages"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

// Home is the namespace of the functions' accounts.
const Home = "slipway-system"

// Patience is how long something may take that takes a fraction of a second on an
// idle machine.
const Patience = 60 * time.Second

// Options say what a package's suite needs.
type Options struct {
	// Specs are the functions that the suite runs. Their accounts and rights are
	// made from them.
	Specs []reconcile.Spec
	// CRDs are names of deploy/local/crds.
	CRDs []string
	// Files are further manifests, or folders of them, relative to the root of the
	// repository.
	Files []string
	// Objects are further objects, there from the start.
	Objects []*unstructured.Unstructured
	// StorageClasses brings those of the local stack.
	StorageClasses bool
	// Kinds are the resources of which a world's state consists. One that is not
	// namespaced counts with the objects that are made after the world.
	Kinds []kind.Resource
	// Others are resources that tests use besides, and that no Spec names.
	Others []kind.Resource
	// Servers is how many API servers run at once, remote clusters included; 0 is
	// one.
	Servers int
	// Partial tells that another suite shows all that the functions do: rights that
	// nothing uses here are no finding.
	Partial bool
	// ControllerManager starts the garbage collector and its two neighbours.
	ControllerManager bool
	// Stored sees each object that a function's write left on the server.
	Stored func(tb testing.TB, req kubetest.Request, obj *unstructured.Unstructured)
	// Plain changes an object before its state is compared: it takes out what
	// differs from run to run. It may be nil.
	Plain func(obj *unstructured.Unstructured)
	// Sort puts lists of an object in order whose order only tells which came first,
	// before its state is compared; goldens keep it. It may be nil.
	Sort func(obj *unstructured.Unstructured)
	// Derived are pairs of what is derived from UIDs and what stands for it in a
	// state. It may be nil.
	Derived func(w *World, objs map[string]*unstructured.Unstructured) []string
}

// Suite is a package's API server, with the functions' accounts on it, and what
// the functions' requests have shown so far.
type Suite struct {
	opts     Options
	evidence map[string]*evidence
	// proved counts the copies of a function whose reconciles are played again.
	proved map[string]int

	mu       sync.Mutex
	admin    dynamic.Interface
	accounts map[string]*rest.Config
}

// New declares a suite. The server starts with the first [Suite.World].
func New(opts Options) *Suite {
	s := &Suite{opts: opts, evidence: map[string]*evidence{}, proved: map[string]int{}, accounts: map[string]*rest.Config{}}
	for _, spec := range opts.Specs {
		s.evidence[spec.Name] = newEvidence(spec)
	}
	return s
}

// Main runs a package's tests, stops what they started, and looks at the evidence.
// It returns the exit code.
func (s *Suite) Main(m kubetest.Runner) int {
	flag.Parse()
	code := kubetest.Main(m)
	for _, spec := range s.opts.Specs {
		for _, finding := range s.evidence[spec.Name].refused() {
			fmt.Fprintln(os.Stderr, "--- FAIL:", finding)
			code = max(code, 1)
		}
	}
	// Some of the tests cannot have used all rights.
	if code != 0 || s.opts.Partial || selected("test.run") || selected("test.skip") || selected("test.list") {
		return code
	}
	for _, right := range s.Unused() {
		fmt.Fprintf(os.Stderr, "--- FAIL: the right to %s is granted and no test used it: take it out of the declaration, or test what needs it\n", right)
		code = 1
	}
	return code
}

func selected(name string) bool {
	f := flag.Lookup(name)
	return f != nil && f.Value.String() != ""
}

// Unused are the rights that no request has used so far, but for those that are
// declared as implied, each with its function.
func (s *Suite) Unused() []string {
	var all []string
	for _, spec := range s.opts.Specs {
		for _, right := range s.evidence[spec.Name].unused() {
			all = append(all, right.String()+" of "+spec.Name)
		}
	}
	return all
}

// World is a namespace of the package's API server; the server is started if need
// be.
func (s *Suite) World(tb testing.TB) *World {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	opts := kubetest.Options{}
	if s.admin == nil {
		var rights []*unstructured.Unstructured
		for _, spec := range s.opts.Specs {
			spec.TargetGrants = spec.GrantsFor("")
			rights = append(rights, Rights(spec)...)
		}
		opts = s.platform(tb, rights)
	}
	env := kubetest.Start(tb, opts)
	if s.admin == nil {
		s.admin = client(tb, env.Config)
		awaitRights(tb, env, s.opts.Specs, true)
		for _, spec := range s.opts.Specs {
			s.accounts[spec.Name] = env.As(tb, Home, spec.Name)
		}
	}
	return s.world(tb, env, s.admin, env.Namespace(tb))
}

// Remote is a second API server, which plays a remote cluster until the test ends.
// The functions' accounts are there too, with their rights on targets. Its world has
// the namespace of a world of the first, which nobody has made yet. Options.Servers
// has to be 2.
func (s *Suite) Remote(tb testing.TB, of *World) *World {
	tb.Helper()
	var rights []*unstructured.Unstructured
	for _, spec := range s.opts.Specs {
		spec.Grants = nil
		rights = append(rights, Rights(spec)...)
	}
	opts := s.platform(tb, rights)
	opts.Servers = 0
	env := of.Env.Remote(tb, opts)
	awaitRights(tb, env, s.opts.Specs, false)
	return s.world(tb, env, client(tb, env.Config), of.NS)
}

func (s *Suite) world(tb testing.TB, env *kubetest.Env, admin dynamic.Interface, ns string) *World {
	w := &World{TB: tb, Env: env, NS: ns, Client: admin, suite: s, earlier: map[string]bool{}}
	for _, res := range s.opts.Kinds {
		if res.Namespaced {
			continue
		}
		for _, obj := range w.list(res) {
			w.earlier[string(obj.GetUID())] = true
		}
	}
	return w
}

// platform is what stands on a cluster before a function comes.
func (s *Suite) platform(tb testing.TB, rights []*unstructured.Unstructured) kubetest.Options {
	tb.Helper()
	definitions, err := crds.Load(tb.Context(), s.opts.CRDs...)
	if err != nil {
		tb.Fatal(err)
	}
	var classes []*unstructured.Unstructured
	if s.opts.StorageClasses {
		if classes, err = stages.Objects(); err != nil {
			tb.Fatal(err)
		}
	}
	home := Parse(tb, `{apiVersion: v1, kind: Namespace, metadata: {name: `+Home+`}}`)
	return kubetest.Options{
		Objects: slices.Concat(definitions, []*unstructured.Unstructured{home}, classes, rights, s.opts.Objects),
		Files:   s.opts.Files, Servers: s.opts.Servers, ControllerManager: s.opts.ControllerManager,
	}
}

func client(tb testing.TB, config *rest.Config) dynamic.Interface {
	tb.Helper()
	unlimited := rest.CopyConfig(config)
	unlimited.QPS = -1
	admin, err := dynamic.NewForConfig(unlimited)
	if err != nil {
		tb.Fatal(err)
	}
	return admin
}

// awaitRights waits until the API server's authorizer has heard of the bindings,
// of which nothing tells: until the last grant of each role holds.
func awaitRights(tb testing.TB, env *kubetest.Env, specs []reconcile.Spec, management bool) {
	tb.Helper()
	for _, spec := range specs {
		lists := [][]reconcile.Grant{spec.TargetGrants}
		if management {
			lists = [][]reconcile.Grant{spec.GrantsFor(""), spec.Grants}
		}
		for _, grants := range lists {
			if len(grants) > 0 {
				AwaitRight(tb, env, Home, spec.Name, RightsOf(grants[len(grants)-1])[0])
			}
		}
	}
}

// AwaitRight waits until an account of a server has a right.
func AwaitRight(tb testing.TB, env *kubetest.Env, namespace, account string, right Right) {
	tb.Helper()
	client, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		tb.Fatal(err)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + namespace + ":" + account, ResourceAttributes: right.attributes(),
	}}
	ctx, cancel := context.WithTimeout(tb.Context(), Patience)
	defer cancel()
	for {
		answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && answer.Status.Allowed {
			return
		}
		if ctx.Err() != nil {
			tb.Fatalf("account %s never got the right to %s: %v", account, right, err)
		}
	}
}
