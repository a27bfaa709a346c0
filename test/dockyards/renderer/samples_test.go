package renderer

import (
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/test/suite"
)

// samples are the files of deploy/samples/templates with a template and a Workload.
var samples = []string{"cert-manager", "container-image", "git-repository", "helm-chart", "ingress-nginx", "podinfo", "rbac"}

// workloadOf is the name of the Workload in a sample.
func workloadOf(t *testing.T, sample string) string {
	t.Helper()
	objs, err := kube.Decode(strings.NewReader(sample))
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objs {
		if obj.GetKind() == dockyards.Workloads.Kind {
			return obj.GetName()
		}
	}
	t.Fatal("the sample has no Workload")
	return ""
}

func TestEverySampleBecomesTheObjectsOfItsGoldenAndRests(t *testing.T) {
	for _, name := range samples {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			sample := suite.File(t, "deploy/samples/templates/"+name+".yaml")
			w.Create(sample)
			workload := workloadOf(t, sample)
			before := w.Names()
			f := w.copyOf()
			if got := f.Send(w.event(workload)); got != http.StatusNoContent {
				t.Fatalf("the event was answered %d; the log:\n%s", got, f.Log)
			}
			reads, writes := f.Asked()
			t.Logf("creation took %d reads and %d writes", len(reads), len(writes))
			w.wants(workload, "WorkloadTemplateReconciled", "True Ready")
			w.wants(workload, "Ready", "False ")
			suite.Golden(t, name+".yaml", w.Documents(before...))
			w.flux()
			f.Insist(w.event(workload))
			w.wants(workload, "Ready", "True Ready")
			f.Rests(w.event(workload))
			f.Asked()
			f.Insist(w.event(workload))
			reads, _ = f.Asked()
			t.Logf("an event that changes nothing takes %d reads", len(reads))
			times := map[string]int{}
			for _, read := range reads {
				if times[read]++; times[read] > 2 || strings.HasPrefix(read, "list") {
					t.Errorf("more than two reads of an object, or a list: %v", reads)
				}
			}
			if t.Failed() {
				t.Log(f.Log)
			}
		})
	}
}
