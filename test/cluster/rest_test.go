package cluster_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/test/cluster"
)

// fingerprint is what deploying decides about each object, not what controllers say.
func (f *fixture) fingerprint() map[string]string {
	f.t.Helper()
	objects, err := f.Rendered(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	file := filepath.Join(cluster.State(f.Root), "rendered.json")
	list := map[string]any{"apiVersion": "v1", "kind": "List"}
	var items []any
	for _, obj := range objects {
		items = append(items, obj.Object)
	}
	list["items"] = items
	raw, err := json.Marshal(list)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		f.t.Fatal(err)
	}
	var live unstructured.UnstructuredList
	if err := json.Unmarshal([]byte(f.kubectl("get", "-f", file, "-o", "json")), &live); err != nil {
		f.t.Fatal(err)
	}
	prints := map[string]string{}
	for _, obj := range live.Items {
		delete(obj.Object, "status")
		for _, field := range []string{"managedFields", "resourceVersion"} {
			unstructured.RemoveNestedField(obj.Object, "metadata", field)
		}
		text, err := json.Marshal(obj.Object)
		if err != nil {
			f.t.Fatal(err)
		}
		prints[obj.GetKind()+" "+obj.GetNamespace()+"/"+obj.GetName()] = fmt.Sprintf("%x", sha256.Sum256(text))
	}
	if len(prints) < len(objects) {
		f.t.Errorf("%d objects were deployed, and %d are there", len(objects), len(prints))
	}
	return prints
}

func deployingTwice(f *fixture, report *report) {
	before := f.fingerprint()
	if err := f.Deploy(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	if diff := cmp.Diff(before, f.fingerprint()); diff != "" {
		f.t.Errorf("the second deployment changed objects:\n%s", diff)
	}
	report.add("deployed objects that a second deployment leaves alone: %d", len(before))
}

// foreign are objects that no function has to do with.
const foreign = `apiVersion: v1
kind: Namespace
metadata: {name: somebody-else}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: foreign, namespace: somebody-else}
---
apiVersion: v1
kind: Secret
metadata: {name: foreign, namespace: somebody-else}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: foreign, namespace: somebody-else}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: nobody}
---
apiVersion: v1
kind: Service
metadata: {name: foreign, namespace: somebody-else}
spec: {ports: [{port: 80}]}
`

func atRest(f *fixture, report *report) {
	ctx := f.t.Context()
	f.atZero()
	began := time.Now()
	if err := f.Resync(ctx, f.Functions...); err != nil {
		f.t.Fatal(err)
	}
	f.eventually("functions to answer the resync", func() string {
		pods, err := f.Pods(ctx)
		if err != nil || len(pods) == 0 {
			return fmt.Sprintf("%d pods (%v)", len(pods), err)
		}
		return ""
	})
	f.atZero()
	asked, wrote := map[string]int{}, map[string]int{}
	answers, err := f.Answers(began)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, a := range answers {
		if !slices.Contains(f.Functions, a.Account()) {
			continue
		}
		asked[a.Account()]++
		if a.Write() {
			wrote[a.String()]++
		}
	}
	for _, text := range slices.Sorted(maps.Keys(wrote)) {
		f.t.Errorf("written at rest, %d times: %s", wrote[text], text)
	}
	report.add("a resync of everything at rest: %d functions asked, %d kinds of writes", len(asked), len(wrote))

	// Without the periodic resyncs whatever wakes a function now is an event.
	f.kubectl("delete", "pingsources.sources.knative.dev", "--all", "-n", "slipway-system")
	f.apply(foreign)
	f.atZero()
	changes := f.churn()
	report.add("foreign objects changed %d times in 30 s: no function was started", changes)
	if err := f.Deploy(ctx); err != nil {
		f.t.Fatal(err)
	}
	if err := f.AwaitReady(ctx); err != nil {
		f.t.Fatal(err)
	}
}

// churn changes foreign objects ten times a second and fails for every function that
// wakes up, for half a minute. It returns the number of changes.
func (f *fixture) churn() int {
	f.t.Helper()
	ctx := f.t.Context()
	ticker, end := time.NewTicker(100*time.Millisecond), time.NewTimer(30*time.Second)
	defer ticker.Stop()
	defer end.Stop()
	changes := 0
	resources := []string{"configmaps", "secrets", "persistentvolumeclaims", "services"}
	for {
		select {
		case <-end.C:
			return changes
		case <-ticker.C:
		}
		resource := schema.GroupVersionResource{Version: "v1", Resource: resources[changes%len(resources)]}
		changes++
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"somebody.else/counts":"%d"}}}`, changes)
		if _, err := f.Client.Resource(resource).Namespace("somebody-else").Patch(ctx, "foreign", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
			f.t.Fatal(err)
		}
		if changes%10 != 0 {
			continue
		}
		pods, err := f.Pods(ctx)
		if err != nil {
			f.t.Fatal(err)
		}
		if len(pods) > 0 {
			f.t.Errorf("after %d changes of foreign objects these run: %v", changes, pods)
			return changes
		}
	}
}

func undeploying(f *fixture, report *report) {
	ctx := f.t.Context()
	// While there are objects the definitions must stay, and everything else with them.
	if err := f.Undeploy(ctx); err == nil {
		f.t.Error("undeploy took the definitions away from under the Machines")
	}
	f.kubectl("delete", machineKind, "--all", "-A", "--timeout=4m")
	if left := f.kubectl("get", "virtualmachines.kubevirt.io", "-n", "default", "-o", "name"); left != "" {
		f.t.Errorf("Machines are gone and these are left: %s", left)
	}
	objects, err := f.Rendered(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	// Dockyards' objects stay, and their definitions with them.
	if err := f.Undeploy(ctx, "KEEP_CRDS=1"); err != nil {
		f.t.Fatal(err)
	}
	var left []string
	for _, obj := range objects {
		if obj.GetKind() == "CustomResourceDefinition" {
			continue
		}
		gvk := obj.GroupVersionKind()
		kind := gvk.Kind + "." + gvk.Version + "." + gvk.Group
		args := []string{"get", kind, obj.GetName(), "--ignore-not-found", "-o", "name"}
		if obj.GetNamespace() != "" {
			args = append(args, "-n", obj.GetNamespace())
		}
		if out := f.kubectl(args...); out != "" {
			left = append(left, out)
		}
	}
	if len(left) > 0 {
		f.t.Errorf("left behind: %v", left)
	}
	report.add("objects that undeploying removed: %d", len(objects))
}
