package renderer

import (
	"strings"
	"testing"

	workloadrenderer "github.com/slipway-dev/slipway/functions/workload-renderer"
	worktreemirror "github.com/slipway-dev/slipway/functions/worktree-mirror"
	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/test/suite"
)

func TestTheGeneratedRolesGrantWhatIsDeclaredAndNothingElse(t *testing.T) { suit.CheckManifest(t) }

// TestAnImpliedRightIsNeeded takes the rights away that no call asks for by itself.
func TestAnImpliedRightIsNeeded(t *testing.T) {
	t.Run("workloads/finalizers update", func(t *testing.T) {
		w := newWorld(t)
		w.workload("web", head+repository)
		f := w.copyOf(suite.WithConfig(w.Account(suite.Without(workloadrenderer.DefaultSpec(), "update", "workloads/finalizers")...)))
		f.Send(w.event("web"))
		w.wants("web", "WorkloadTemplateReconciled", "False ReconcileFailed")
		if w.Get(render.GitRepositories, "web") != nil {
			t.Error("it was made all the same, with an owner reference that blocks the Workload's deletion")
		}
	})
	t.Run("worktrees/finalizers update", func(t *testing.T) {
		w := newWorld(t)
		w.worktree("files", `{url: "https://git.test/r.git", referenceName: refs/heads/main}`)
		f := suite.Run(w.World, worktreemirror.Declare(), suite.WithConfig(w.Account(suite.Without(worktreemirror.DefaultSpec(), "update", "worktrees/finalizers")...)))
		f.Send(w.Event(render.Worktrees, "files"))
		if is, reason, _ := suite.Condition(w.Must(render.Worktrees, "files"), "GitRepositoryReconciled"); is+reason != "FalseReconcileFailed" {
			t.Errorf("the condition is %s %s", is, reason)
		}
	})
}

func TestARightThatIsMissingIsSaidAndTriedAgainByTheResyncOnly(t *testing.T) {
	for _, res := range []string{"kustomizations", "gitrepositories"} {
		w := newWorld(t)
		w.workload("web", both)
		f := w.copyOf(suite.WithConfig(w.Account(suite.Without(workloadrenderer.DefaultSpec(), "create", res)...)))
		if got := f.Send(w.event("web")); got != 204 {
			t.Errorf("without the right to create %s the event was answered %d", res, got)
		}
		w.wants("web", "WorkloadTemplateReconciled", "False ReconcileFailed: cannot apply "+res)
		if got := w.why("web", "Ready"); !strings.Contains(got, "forbidden") {
			t.Errorf("Ready is %s", got)
		}
		w.copyOf().Resync()
		w.wants("web", "WorkloadTemplateReconciled", "True Ready")
	}
}
