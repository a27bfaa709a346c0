// Package read is the one way in which functions look at clusters.
//
// A Reader serves one reconcile: every read is live, every secret in an answer
// is sealed before anybody sees it, and every question and its answer is
// remembered, in order, for the recording.
package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/vault"
)

// pageSize is how many objects one request of a list asks for.
const pageSize = 500

// visitSize is the same where objects are only looked at, or not all of them or of their
// fields is kept: many events at once must not hold many large pages.
const visitSize = 100

// Record is one question and its answer.
type Record struct {
	Need   plan.Need
	Answer plan.Answer
	// Connection is set when the question was how to reach a cluster.
	Connection *plan.Connection
	// Discovered is set when the question was in which version a resource is served.
	Discovered *string
	// Scanned tells a Scan or a look Within from a list, Complete that it saw everything.
	Scanned, Complete bool
}

// Reader reads live. It is safe for concurrent use.
type Reader struct {
	clusters *cluster.Set
	vault    *vault.Vault

	// tape answers instead of the clusters; nil where they are asked.
	tape Tape
	// overlay are objects that are read instead of what is there.
	overlay Overlay

	mu      sync.Mutex
	records []Record
	ahead   map[string]*prefetch
}

// prefetch is a read that was started before it is asked for.
type prefetch struct {
	done   chan struct{}
	answer plan.Answer
}

// New makes a reader whose secrets go to a vault.
func New(clusters *cluster.Set, v *vault.Vault) *Reader {
	return &Reader{clusters: clusters, vault: v}
}

// Plays tells that a recording answers: what the process knows besides is of another
// time.
func (r *Reader) Plays() bool { return r.tape != nil }

// Records returns what was read so far, in order.
func (r *Reader) Records() []Record {
	return slices.DeleteFunc(r.Everything(), func(record Record) bool { return record.Discovered != nil })
}

// Everything is Records with what was asked about versions: all that a replay needs.
func (r *Reader) Everything() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.records)
}

// Get reads one object. An object that is absent, or whose resource the server
// does not serve, is nil. An error is a *fault.Fault.
func (r *Reader) Get(ctx context.Context, clusterName string, res kind.Resource, namespace, name string) (*unstructured.Unstructured, error) {
	need := plan.Need{Cluster: clusterName, Resource: res, Namespace: namespace, Name: name}
	answer := r.Answer(ctx, need)
	if answer.Fault != nil {
		return nil, answer.Fault
	}
	return answer.Object, nil
}

// List reads all objects of a resource that a label selector matches, sorted
// by namespace and name; namespace "" reads all namespaces. A resource that is
// not served has none. An error is a *fault.Fault.
func (r *Reader) List(ctx context.Context, clusterName string, res kind.Resource, namespace, selector string) ([]unstructured.Unstructured, error) {
	return r.Find(ctx, plan.Need{Cluster: clusterName, Resource: res, Namespace: namespace, Selector: selector})
}

// Find is List for a need, of which it keeps what Only wants.
func (r *Reader) Find(ctx context.Context, need plan.Need) ([]unstructured.Unstructured, error) {
	answer := r.Answer(ctx, need)
	if answer.Fault != nil {
		return nil, answer.Fault
	}
	return answer.Items, nil
}

// Serves reports whether a cluster serves a resource.
func (r *Reader) Serves(ctx context.Context, clusterName string, res kind.Resource) (bool, error) {
	version, err := r.Version(ctx, clusterName, res)
	return version != "", err
}

// Version is the version in which a cluster's objects of a resource are read: the
// first of the resource's that the cluster serves; empty for none. What a decision
// makes anew it writes in that version.
func (r *Reader) Version(ctx context.Context, clusterName string, res kind.Resource) (string, error) {
	need := plan.Need{Cluster: clusterName, Resource: res}
	if r.tape != nil {
		return r.playVersion(need)
	}
	version, err := r.version(ctx, clusterName, res)
	record := Record{Need: need, Discovered: &version}
	var f *fault.Fault
	switch {
	case errors.As(err, &f):
		record.Answer.Fault = f
	case err != nil:
		record.Answer.Fault = &fault.Fault{Class: fault.Unavailable, Cluster: clusterName, Call: "discover " + res.String(), Message: err.Error()}
	}
	r.note(record)
	return version, err
}

func (r *Reader) version(ctx context.Context, clusterName string, res kind.Resource) (string, error) {
	client, err := r.clusters.Client(clusterName)
	if err != nil {
		return "", err
	}
	gvr, served, err := client.Discover(ctx, res)
	if err != nil {
		return "", Fault(err, clusterName, "discover "+res.String(), r.vault)
	}
	if !served {
		return "", nil
	}
	return gvr.Version, nil
}

// ClusterUID identifies a cluster: the UID of its namespace kube-system, or ""
// where that cannot be read. It is read once per connection: a cluster behind
// the same credentials never changes it.
func (r *Reader) ClusterUID(ctx context.Context, clusterName string) (string, error) {
	if r.tape != nil {
		return r.clusterUID(ctx, clusterName, func(string) {})
	}
	client, err := r.clusters.Client(clusterName)
	if err != nil {
		return "", err
	}
	if uid := client.UID(); uid != "" {
		// Remembered as if it was read: a replay needs the answer.
		ns := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": metav1.NamespaceSystem, "uid": uid}}}
		r.remember(plan.Need{Cluster: clusterName, Resource: kind.Namespaces, Name: metav1.NamespaceSystem}, plan.Answer{Object: ns})
		return uid, nil
	}
	return r.clusterUID(ctx, clusterName, client.SetUID)
}

func (r *Reader) clusterUID(ctx context.Context, clusterName string, keep func(uid string)) (string, error) {
	ns, err := r.Get(ctx, clusterName, kind.Namespaces, "", metav1.NamespaceSystem)
	var f *fault.Fault
	if errors.As(err, &f) && f.Class == fault.Refused {
		return "", nil
	}
	if err != nil || ns == nil {
		return "", err
	}
	keep(string(ns.GetUID()))
	return string(ns.GetUID()), nil
}

// Ahead starts reads, side by side, that will certainly be asked for: the next
// Get, List or Answer of the same need waits for it and takes what it brought,
// once. What is remembered, and in which order, stays as if it was read then.
// A need that is known already is not started again.
func (r *Reader) Ahead(ctx context.Context, needs ...plan.Need) {
	if r.tape != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ahead == nil {
		r.ahead = map[string]*prefetch{}
	}
	for _, need := range needs {
		if r.ahead[need.Key()] != nil {
			continue
		}
		p := &prefetch{done: make(chan struct{})}
		r.ahead[need.Key()] = p
		go func() {
			defer close(p.done)
			defer func() {
				if cause := recover(); cause != nil {
					p.answer = plan.Answer{Fault: r.fault(fmt.Errorf("cannot read what the server sent: %v", cause), "read", need)}
				}
			}()
			p.answer = r.read(ctx, need)
		}()
	}
}

// Forget drops what was read ahead and not asked for: it is too old to be used
// in another round.
func (r *Reader) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ahead = nil
}

// Answer fulfils a need: with a name it is a get, else a list.
func (r *Reader) Answer(ctx context.Context, need plan.Need) plan.Answer {
	r.mu.Lock()
	p := r.ahead[need.Key()]
	delete(r.ahead, need.Key())
	r.mu.Unlock()
	var answer plan.Answer
	switch {
	case r.tape != nil:
		answer = r.play(need)
	case p != nil:
		<-p.done
		answer = p.answer
	default:
		answer = r.read(ctx, need)
	}
	r.remember(need, answer)
	return answer
}

func (r *Reader) remember(need plan.Need, answer plan.Answer) {
	r.note(Record{Need: need, Answer: answer})
}

func (r *Reader) note(record Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, record)
}

// Note remembers what fulfilled a need that no cluster was asked for.
func (r *Reader) Note(need plan.Need, answer plan.Answer) { r.remember(need, answer) }

func (r *Reader) read(ctx context.Context, need plan.Need) plan.Answer {
	if need.Name == "" {
		return r.overlay.onto(need, r.list(ctx, need), r.vault)
	}
	return r.overlay.over(need, r.vault, func() plan.Answer { return r.get(ctx, need) })
}

// elsewhere is the interface to a resource in another version than the one that
// was remembered, if the cause is that the server does not serve that one any more;
// else it returns the cause.
func (r *Reader) elsewhere(ctx context.Context, cause error, need plan.Need) (dynamic.ResourceInterface, error) {
	if len(need.Resource.Versions) == 1 || meta.IsNoMatchError(cause) || r.fault(cause, "", need).Class != fault.NotServed {
		return nil, cause
	}
	client, err := r.clusters.Client(need.Cluster)
	if err != nil {
		return nil, err
	}
	client.Forget(need.Resource)
	return r.resource(ctx, need)
}

func (r *Reader) get(ctx context.Context, need plan.Need) plan.Answer {
	client, err := r.resource(ctx, need)
	for tries := 0; err == nil && tries < 2; tries++ {
		var obj *unstructured.Unstructured
		if obj, err = client.Get(ctx, need.Name, metav1.GetOptions{}); err == nil {
			drop(need.Resource, obj)
			r.vault.SealObject(need.Resource, obj)
			return plan.Answer{Object: obj}
		}
		client, err = r.elsewhere(ctx, err, need)
	}
	// No error is left where neither version is served.
	if err == nil || apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return plan.Answer{}
	}
	return plan.Answer{Fault: r.fault(err, "get", need)}
}

func (r *Reader) list(ctx context.Context, need plan.Need) plan.Answer {
	var items []unstructured.Unstructured
	size := int64(pageSize)
	if (need.Only != nil || len(need.Resource.Dropped) > 0) && !need.Resource.Bare {
		size = visitSize
	}
	_, err := r.pages(ctx, need, size, func(page []unstructured.Unstructured, first bool) {
		if first {
			items = nil // the list began anew
		}
		for i := range page {
			drop(need.Resource, &page[i])
			r.vault.SealObject(need.Resource, &page[i])
			if need.Only == nil || need.Only(&page[i]) {
				items = append(items, page[i])
			}
		}
	})
	if err != nil {
		return plan.Answer{Fault: r.fault(err, "list", need)}
	}
	slices.SortFunc(items, func(a, b unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return plan.Answer{Items: items}
}

// pages lists a resource page by page; first tells that a list begins, which
// happens again when the server forgot the page's token, or serves another version.
func (r *Reader) pages(ctx context.Context, need plan.Need, size int64, visit func(page []unstructured.Unstructured, first bool)) (served bool, err error) {
	client, err := r.resource(ctx, need)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	opts := metav1.ListOptions{LabelSelector: need.Selector, Limit: size}
	if need.Limit > 0 {
		opts.Limit = need.Limit
	}
	moved := false
	for {
		page, err := client.List(ctx, opts)
		if apierrors.IsNotFound(err) && !moved {
			moved = true
			if other, cause := r.elsewhere(ctx, err, need); cause == nil {
				client, opts.Continue = other, ""
				continue
			}
		}
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) && opts.Continue != "" {
			opts.Continue = ""
			continue
		}
		if err != nil {
			return false, err
		}
		visit(page.Items, opts.Continue == "")
		if opts.Continue = page.GetContinue(); opts.Continue == "" || need.Limit > 0 {
			return true, nil
		}
	}
}

func (r *Reader) resource(ctx context.Context, need plan.Need) (dynamic.ResourceInterface, error) {
	client, err := r.clusters.Client(need.Cluster)
	if err != nil {
		return nil, err
	}
	return client.Interface(ctx, need.Resource, need.Resource.Within(need.Namespace))
}

func (r *Reader) fault(err error, verb string, need plan.Need) *fault.Fault {
	name := need.Name
	if need.Namespace != "" {
		name = need.Namespace + "/" + name
	}
	return Fault(err, need.Cluster, strings.TrimRight(verb+" "+need.Resource.String()+" "+name, " /"), r.vault)
}
