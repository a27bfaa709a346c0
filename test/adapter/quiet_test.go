package adapter

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/crds"
	"github.com/slipway-dev/slipway/deploy/local/kube"
)

var exhaustive = flag.Bool("exhaustive", false, "two minutes of foreign changes instead of a few seconds")

// perSecond is how many foreign objects of each kind change within a second.
const perSecond = 10

var rules = schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheusrules"}

// TestWhatBelongsToOthersWakesNoFunction runs the generated sources while ten objects of
// each kind that others use too change every second, and ten Nodes have heartbeats. No
// event means that no function is woken: Triggers pass on what comes, and nothing else.
func TestWhatBelongsToOthersWakesNoFunction(t *testing.T) {
	w := newQuietWorld(t)
	client := w.management.Client
	kinds := []string{
		`{apiVersion: v1, kind: ConfigMap, data: {n: "%d"}, metadata: {name: foreign-%d, namespace: default}}`,
		`{apiVersion: v1, kind: Secret, stringData: {n: "%d"}, metadata: {name: foreign-%d, namespace: default}}`,
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {annotations: {n: "%d"}, name: foreign-%d, namespace: default}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`,
		`{apiVersion: v1, kind: Service, metadata: {annotations: {n: "%d"}, name: foreign-%d, namespace: default, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: o, uid: o}]}, spec: {ports: [{port: 80}]}}`,
		`{apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, metadata: {annotations: {n: "%d"}, name: foreign-%d, namespace: default}, spec: {}}`,
		`{apiVersion: v1, kind: Node, metadata: {annotations: {kubevirt.io/heartbeat: "%d"}, name: node-%d}}`,
	}
	lasts := 4 * time.Second
	if *exhaustive {
		lasts = 2 * time.Minute
	}
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	changes := 0
	for began := time.Now(); time.Since(began) < lasts; changes++ {
		for _, manifest := range kinds {
			w.apply(object(t, fmt.Sprintf(manifest, changes, changes%perSecond)))
		}
		<-tick.C
	}
	t.Logf("%d changes of each of %d kinds", changes, len(kinds))

	// What follows concerns functions. Each watch is in order, so when these have come,
	// whatever came of the changes before has come too.
	labelled := func(kind, label, rest string) *unstructured.Unstructured {
		return object(t, fmt.Sprintf(`{apiVersion: v1, kind: %s, metadata: {name: ours, namespace: default, labels: {%s: "true"}}%s}`, kind, label, rest))
	}
	w.apply(
		labelled("ConfigMap", "slipway.dev/watch", ""), labelled("Secret", "slipway.dev/watch", ""),
		labelled("PersistentVolumeClaim", "vitistack.io/machine", `, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`),
		object(t, `{apiVersion: v1, kind: Service, metadata: {name: ours, namespace: default, ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Workload, name: w, uid: w}]}, spec: {ports: [{port: 80}]}}`),
		object(t, `{apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, metadata: {name: descheduler-rules, namespace: default}, spec: {}}`),
		object(t, `{apiVersion: v1, kind: Node, metadata: {name: node-0, labels: {feature.node.kubernetes.io/iommu-enabled: "true"}}}`),
	)
	if err := client.Resource(rules).Namespace("default").Delete(t.Context(), "descheduler-rules", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually("the events of what concerns functions", func() string {
		seen := map[string]bool{}
		for _, e := range w.sink.all() {
			seen[fmt.Sprintf("%s %s %s", e.Type(), e.Extensions()["kind"], e.Extensions()["name"])] = true
		}
		for _, want := range []string{"ref.add ConfigMap ours", "ref.add Secret ours", "ref.add PersistentVolumeClaim ours", "ref.add Service ours", "ref.delete PrometheusRule descheduler-rules", "ref.update Node node-0"} {
			if !seen["dev.knative.apiserver."+want] {
				return fmt.Sprintf("no %s in %v", want, seen)
			}
		}
		return ""
	})
	foreign, nodes := map[string]int{}, map[string]int{}
	for _, e := range w.sink.all() {
		name := fmt.Sprint(e.Extensions()["name"])
		if strings.HasPrefix(name, "foreign-") {
			foreign[fmt.Sprint(e.Extensions()["kind"])]++
		}
		if e.Extensions()["kind"] == "Node" {
			nodes[name]++
		}
	}
	for name, events := range nodes {
		// When it is seen first, and when its hardware changes.
		if most := map[bool]int{true: 2, false: 1}[name == "node-0"]; events > most {
			t.Errorf("%d changes of Node %s gave %d events, want %d at most", changes/perSecond, name, events, most)
		}
	}
	if len(foreign) > 0 {
		t.Errorf("what belongs to others gave events: %v", foreign)
	}
}

// newQuietWorld is an API server with everything that is watched by selector, owner or
// name, and all generated sources at work on it: the adapter's own, and those that a
// stock ApiServerSource would watch, by the same receive adapter.
func newQuietWorld(t *testing.T) *world {
	t.Helper()
	w, _ := newManagement(t, crds.PrometheusRules)
	w.runSources("source-adapter", w.generated())
	w.runSources("", w.stock())
	return w
}

// generated is what sources/adapter.yaml watches on the management cluster.
func (w *world) generated() []any {
	w.t.Helper()
	for _, obj := range w.sources("adapter.yaml") {
		text, _, _ := unstructured.NestedString(obj.Object, "data", "config.yaml")
		var config struct {
			Resources []any `json:"resources"`
		}
		if err := yaml.Unmarshal([]byte(text), &config); err != nil {
			w.t.Fatal(err)
		}
		if len(config.Resources) > 0 {
			return config.Resources
		}
	}
	w.t.Fatal("sources/adapter.yaml configures nothing")
	return nil
}

func (w *world) sources(file string) []*unstructured.Unstructured {
	w.t.Helper()
	objs, err := kube.ReadFiles(filepath.Join(w.root, "sources", file))
	if err != nil {
		w.t.Fatal(err)
	}
	return objs
}

// stock is what the ApiServerSources watch of the core group, as Knative's controller
// tells it to their receive adapters.
func (w *world) stock() []any {
	w.t.Helper()
	var out []any
	for _, source := range w.sources("apiserversources.yaml") {
		entries, _, _ := unstructured.NestedSlice(source.Object, "spec", "resources")
		for _, e := range entries {
			entry := e.(map[string]any)
			if entry["apiVersion"] != "v1" {
				continue
			}
			var selector metav1.LabelSelector
			raw, err := yaml.Marshal(entry["selector"])
			if err == nil {
				err = yaml.Unmarshal(raw, &selector)
			}
			if err != nil {
				w.t.Fatal(err)
			}
			watch := map[string]any{"kind": entry["kind"], "versions": []any{"v1"}, "resource": strings.ToLower(entry["kind"].(string)) + "s"}
			if entry["selector"] != nil {
				watch["selector"] = metav1.FormatLabelSelector(&selector)
			}
			out = append(out, watch)
		}
	}
	if len(out) == 0 {
		w.t.Fatal("no ApiServerSource watches the core group")
	}
	return out
}

// runSources runs the adapter's program with such a configuration, under an account or,
// without a name, with all rights: stock sources have an account of another shape.
func (w *world) runSources(account string, watches []any) {
	w.t.Helper()
	raw, err := yaml.Marshal(map[string]any{"sink": w.sink.url, "resources": watches})
	if err != nil {
		w.t.Fatal(err)
	}
	kubeconfig, err := w.management.Cluster.AdminKubeconfig()
	if account != "" {
		kubeconfig, err = w.management.Cluster.TokenKubeconfig(w.t.Context(), system, account)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	dir := w.t.TempDir()
	for name, content := range map[string][]byte{"config.yaml": raw, "kubeconfig": kubeconfig} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	log := &buffer{}
	cmd := exec.CommandContext(context.WithoutCancel(w.t.Context()), filepath.Join(w.root, build.DefaultBin, "source-adapter"), //nolint:gosec // a program of this repository
		"--config", filepath.Join(dir, "config.yaml"), "--kubeconfig", filepath.Join(dir, "kubeconfig"),
		"--health-listen", fmt.Sprintf("127.0.0.1:%d", freePort(w.t)))
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	t := w.t
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the adapter did not end well: %v", err)
		}
		if t.Failed() {
			t.Logf("what the adapter said:\n%s", log)
		}
	})
	w.eventually("the kinds to be watched", func() string {
		if strings.Contains(log.String(), "configmaps.v1") && (account == "" || strings.Count(log.String(), "prometheusrules") > 1 && strings.Contains(log.String(), "services.v1")) {
			return ""
		}
		return log.String()
	})
}
