package worktreemirror

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/worktree-mirror/decide"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/render"
)

// Name is the function's name.
const Name = "worktree-mirror"

// Upstream is the field manager of dockyards-flux2.
const Upstream = "dockyards-flux2"

// concurrency is how many events one process takes at once: each spends its
// time waiting for the API server.
const concurrency = 20

// Spec declares the function.
func Spec() reconcile.Spec {
	return reconcile.Spec{
		Name:       Name,
		Summary:    "makes the commit that holds a Worktree's files a source for Flux",
		TakesOver:  "dockyards-flux2",
		Reconciles: render.Worktrees,
		Watches: []reconcile.Watch{
			{Resource: render.Worktrees},
			{Resource: render.GitRepositories, Adapter: true, Keys: ofRepository},
		},
		Grants: []reconcile.Grant{
			{Resource: render.Worktrees, Verbs: []string{"get", "list"}},
			{Resource: render.Worktrees, Subresource: "status", Verbs: []string{"patch"}},
			{
				Resource: render.Worktrees, Subresource: "finalizers", Verbs: []string{"update"},
				Implied: "the GitRepository's owner reference blocks the Worktree's deletion, which admission may ask this right for",
			},
			{Resource: render.GitRepositories, Verbs: []string{"get", "create", "patch"}},
		},
		Predecessors: []string{Upstream},
		Concurrency:  concurrency,
	}
}

// ofRepository: the Worktree that owns it, and the one of its name, which waits for
// the name to become free.
func ofRepository(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	keys := []reconcile.Key{{Namespace: e.Namespace, Name: e.Name}}
	obj, err := r.Get(ctx, cluster.Management, render.GitRepositories, e.Namespace, e.Name)
	if err != nil || obj == nil {
		return keys, err
	}
	if owner := dockyards.OwnerName(obj, render.Worktrees); owner != "" && owner != e.Name {
		keys = append(keys, reconcile.Key{Namespace: e.Namespace, Name: owner})
	}
	return keys, nil
}

// gather reads the GitRepository of the Worktree's name.
func gather(ctx context.Context, r *read.Reader, root *unstructured.Unstructured) (decide.Input, error) {
	in := decide.Input{Worktree: root}
	if dockyards.Going(root) {
		return in, nil
	}
	var err error
	in.Repository, err = r.Get(ctx, cluster.Management, render.GitRepositories, root.GetNamespace(), root.GetName())
	return in, err
}
