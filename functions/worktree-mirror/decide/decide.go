package decide

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
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

// interval is how often Flux looks at a repository.
const interval = 5 * time.Minute

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
	v.reason, v.message = reason, render.Clip(fmt.Sprintf(format, args...), 256)
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
		v.stop(ReasonInvalid, "status.commitHash is %q, which is no hash of 40 or 64 hexadecimal digits", render.Clip(commit, 80))
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
	obj, err := plan.Object(render.GitRepositories, v.wanted())
	if err != nil {
		v.stop(ReasonInvalid, "%v", err)
		return
	}
	v.plan.Add("source", plan.Entry{
		Verb: plan.Apply, Resource: render.GitRepositories, Object: obj, Base: v.in.Repository,
		Reason: "Flux reads the Worktree's files there",
	})
}

func (v *view) wanted() *sourcev1.GitRepository {
	yes := true
	owner := dockyards.Reference(render.Worktrees, v.in.Worktree)
	owner.BlockOwnerDeletion = &yes
	repository := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{
			Name: v.worktree.Name, Namespace: v.worktree.Namespace, Labels: v.labels(),
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: sourcev1.GitRepositorySpec{
			URL: text(v.worktree.Status.URL), Interval: metav1.Duration{Duration: interval},
			Reference: &sourcev1.GitRepositoryRef{Name: text(v.worktree.Status.ReferenceName)},
		},
	}
	if commit := text(v.worktree.Status.CommitHash); commit != "" {
		repository.Spec.Reference = &sourcev1.GitRepositoryRef{Commit: commit}
	}
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
