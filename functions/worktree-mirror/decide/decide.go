package decide

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/render"
)

// Condition is the one that the function keeps on a Worktree, with its reasons.
const (
	Condition        = "GitRepositoryReconciled"
	ReasonReconciled = "Reconciled"
	ReasonWaiting    = "WaitingForRepository"
	ReasonInvalid    = "InvalidRepository"
	ReasonNotOwned   = "ObjectNotOwned"
)

// interval is how often Flux looks at a repository, as Flux writes five minutes.
const interval = "5m0s"

// Input is all that one decision is made from.
type Input struct {
	// Worktree is the reconciled object.
	Worktree *unstructured.Unstructured
	// Repository is the GitRepository of its name; nil if there is none.
	Repository *unstructured.Unstructured
}

// view is one decision while it is made.
type view struct {
	in       Input
	worktree *v1alpha3.Worktree
	// reason and message say why nothing is written.
	reason, message string
	plan            plan.Plan
}

// Decide is what shall be written for a Worktree.
func Decide(_ time.Time, in Input, _ plan.Answers) plan.Decision {
	v := look(in)
	d := plan.Decision{Plan: v.plan}
	if v.reason != "" {
		d.Reasons = []string{v.reason + ": " + v.message}
	}
	return d
}

func look(in Input) *view {
	v := &view{in: in}
	if dockyards.Going(in.Worktree) {
		return v
	}
	worktree, err := plan.Typed[v1alpha3.Worktree](in.Worktree)
	if err != nil {
		v.stop(ReasonInvalid, "the Worktree cannot be read: %v", err)
		return v
	}
	v.worktree = worktree
	for _, step := range []func(){v.checkStatus, v.checkOwner, v.apply} {
		if step(); v.reason != "" {
			return v
		}
	}
	return v
}

func (v *view) stop(reason, format string, args ...any) {
	v.reason, v.message = reason, clip.Line(fmt.Sprintf(format, args...), 256)
}

var hash = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// checkStatus looks at where the files are said to be.
func (v *view) checkStatus() {
	address, commit := text(v.worktree.Status.URL), text(v.worktree.Status.CommitHash)
	if address == "" || (commit == "" && text(v.worktree.Status.ReferenceName) == "") {
		v.stop(ReasonWaiting, "the files are not committed yet: status has no url, or neither commitHash nor referenceName")
		return
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "ssh"}, u.Scheme):
		v.stop(ReasonInvalid, "status.url is no URL of scheme http, https or ssh")
	case u.User != nil:
		v.stop(ReasonInvalid, "status.url holds a user: credentials belong into a Secret")
	case commit != "" && !hash.MatchString(commit):
		v.stop(ReasonInvalid, "status.commitHash is %q, which is no hash of 40 or 64 hexadecimal digits", clip.Line(commit, 80))
	}
}

// checkOwner: a template may give a GitRepository of the same name.
func (v *view) checkOwner() {
	if v.in.Repository == nil {
		return
	}
	for _, ref := range v.in.Repository.GetOwnerReferences() {
		if ref.UID != v.in.Worktree.GetUID() || (ref.Controller != nil && *ref.Controller) {
			v.stop(ReasonNotOwned, "GitRepository %q belongs to %s %q", v.in.Repository.GetName(), ref.Kind, ref.Name)
			return
		}
	}
}

func (v *view) apply() {
	if dockyards.Going(v.in.Repository) {
		v.stop(ReasonWaiting, "GitRepository %q is being deleted, and is made again then", v.in.Repository.GetName())
		return
	}
	v.plan.Add("source", plan.Entry{
		Verb: plan.Apply, Resource: render.GitRepositories, Object: v.wanted(), Base: v.in.Repository,
		Reason: "Flux reads the Worktree's files there",
	})
	v.plan.Continue = v.in.Repository == nil // what is owned since the creation becomes owned by apply
}

func (v *view) wanted() *unstructured.Unstructured {
	yes := true
	owner := dockyards.Reference(render.Worktrees, v.in.Worktree)
	owner.BlockOwnerDeletion = &yes
	ref := map[string]any{"name": text(v.worktree.Status.ReferenceName)}
	if commit := text(v.worktree.Status.CommitHash); commit != "" {
		ref = map[string]any{"commit": commit}
	}
	repository := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"url": text(v.worktree.Status.URL), "interval": interval, "ref": ref},
	}}
	repository.SetAPIVersion(render.GitRepositories.APIVersion())
	repository.SetKind(render.GitRepositories.Kind)
	repository.SetNamespace(v.worktree.Namespace)
	repository.SetName(v.worktree.Name)
	repository.SetLabels(v.labels())
	repository.SetOwnerReferences([]metav1.OwnerReference{owner})
	return repository
}

// labels are those by which Dockyards finds things.
func (v *view) labels() map[string]string {
	labels := map[string]string{}
	for key, value := range v.worktree.Labels {
		if render.InDomain(key, v1alpha3.GroupName) {
			labels[key] = value
		}
	}
	if len(labels) == 0 {
		return nil
	}
	return labels
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return strings.TrimSpace(*s)
}
