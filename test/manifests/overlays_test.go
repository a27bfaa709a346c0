package manifests

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway"
)

// home makes the namespace with Pod Security's level, and the accounts that Pods run
// under.
func (p *platform) home() {
	p.t.Helper()
	for _, obj := range append(p.render("deploy/common"), p.render("deploy/base")...) {
		if kind := obj.GetKind(); kind != "Namespace" && kind != "ServiceAccount" {
			continue
		}
		body, err := obj.MarshalJSON()
		if err != nil {
			p.t.Fatal(err)
		}
		force := true
		if _, err := p.in(obj).Patch(p.t.Context(), obj.GetName(), "application/apply-patch+yaml", body, metav1.PatchOptions{FieldManager: "manifests", Force: &force}); err != nil {
			p.t.Fatalf("%s: %v", named(obj), err)
		}
	}
}

// pod is the Pod that a workload makes; nil if it makes none. A Knative Service names
// things of its own in the Pod's specification.
func pod(obj *unstructured.Unstructured) *unstructured.Unstructured {
	group, _, _ := strings.Cut(obj.GetAPIVersion(), "/")
	if obj.GetKind() != "Deployment" && (obj.GetKind() != "Service" || group != "serving.knative.dev") {
		return nil
	}
	spec, _, _ := unstructured.NestedMap(obj.Object, "spec", "template", "spec")
	delete(spec, "containerConcurrency")
	delete(spec, "timeoutSeconds")
	// Functions other than those of the base have no account here.
	delete(spec, "serviceAccountName")
	spec["automountServiceAccountToken"] = false
	spec["serviceAccountName"] = "event-archive"
	for _, c := range spec["containers"].([]any) {
		container := c.(map[string]any)
		container["name"], container["image"] = "user-container", "registry.invalid/image"
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p-" + obj.GetName(), "namespace": namespace}, "spec": spec,
	}}
}

func TestEveryOverlayIsTakenByTheRealDefinitions(t *testing.T) {
	p := start(t)
	p.home()
	overlays, err := filepath.Glob(filepath.Join(p.root, "deploy/overlays/*"))
	if err != nil || len(overlays) == 0 {
		t.Fatalf("no overlay is found: %v", err)
	}
	overlays = append(overlays, filepath.Join(p.root, "deploy/base"), filepath.Join(p.root, "deploy/local/overlay"), filepath.Join(p.root, "deploy/target"))
	for _, overlay := range overlays {
		name := filepath.Base(overlay)
		t.Run(name, func(t *testing.T) {
			p := *p
			p.t = t
			var objs []*unstructured.Unstructured
			if name == "target" {
				objs = p.decode(p.must(nil, "cat", filepath.Join(overlay, "account.yaml")))
			} else {
				objs = p.render(overlay)
			}
			p.check(objs)
		})
	}
}

// check holds objects against the API server, and what is said of all of them.
func (p *platform) check(objs []*unstructured.Unstructured) {
	p.t.Helper()
	seen := map[string]bool{}
	for _, obj := range objs {
		if err := p.offer(obj); err != nil {
			p.t.Errorf("%s: %v", named(obj), err)
		}
		id := obj.GetAPIVersion() + named(obj) + obj.GetNamespace()
		if seen[id] {
			p.t.Errorf("%s is there twice", named(obj))
		}
		seen[id] = true
		if obj.GetKind() != "CustomResourceDefinition" && obj.GetLabels()["app.kubernetes.io/part-of"] != "slipway" {
			p.t.Errorf("%s does not carry the label that tells whose it is", named(obj))
		}
		if pod := pod(obj); pod != nil {
			if err := p.offer(pod); err != nil {
				p.t.Errorf("the Pod of %s: %v", named(obj), err)
			}
		}
	}
	p.references(objs)
}

// references follows every name by which one object means another of the set.
func (p *platform) references(objs []*unstructured.Unstructured) {
	p.t.Helper()
	services, accounts := map[string]bool{}, map[string]bool{}
	for _, obj := range objs {
		switch obj.GetKind() {
		case "Service":
			services[obj.GetAPIVersion()+" "+obj.GetName()] = true
		case "ServiceAccount":
			accounts[obj.GetName()] = true
		}
	}
	p.tokens(objs)
	for _, obj := range objs {
		if obj.GetKind() == "Trigger" {
			for _, path := range [][]string{{"spec", "subscriber", "ref"}, {"spec", "delivery", "deadLetterSink", "ref"}} {
				api, name := text(obj, append(path, "apiVersion")...), text(obj, append(path, "name")...)
				if !services[api+" "+name] {
					p.t.Errorf("%s sends to %s %q, which is not there", named(obj), api, name)
				}
			}
		}
		if account := text(obj, "spec", "template", "spec", "serviceAccountName"); account != "" && !accounts[account] {
			p.t.Errorf("%s runs as %q, which is not there", named(obj), account)
		}
	}
}

// tokens: whoever has rights has the token to use them with.
func (p *platform) tokens(objs []*unstructured.Unstructured) {
	p.t.Helper()
	bound := map[string]bool{}
	for _, obj := range objs {
		if kind := obj.GetKind(); kind != "ClusterRoleBinding" && kind != "RoleBinding" {
			continue
		}
		subjects, _, _ := unstructured.NestedSlice(obj.Object, "subjects")
		for _, s := range subjects {
			if name, ok := s.(map[string]any)["name"].(string); ok {
				bound[name] = true
			}
		}
	}
	for _, obj := range objs {
		mounted, set, _ := unstructured.NestedBool(obj.Object, "spec", "template", "spec", "automountServiceAccountToken")
		if set && !mounted && !projects(obj) && bound[text(obj, "spec", "template", "spec", "serviceAccountName")] {
			p.t.Errorf("%s has rights and no token to use them with", named(obj))
		}
	}
}

// projects tells that a workload mounts a token of its own choice, for one audience.
func projects(obj *unstructured.Unstructured) bool {
	volumes, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "volumes")
	for _, v := range volumes {
		sources, _, _ := unstructured.NestedSlice(v.(map[string]any), "projected", "sources")
		for _, source := range sources {
			if source.(map[string]any)["serviceAccountToken"] != nil {
				return true
			}
		}
	}
	return false
}

func TestOverlaysDifferInWhatTheySay(t *testing.T) {
	p := start(t)
	find := func(objs []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
		t.Helper()
		for _, obj := range objs {
			if obj.GetKind() == kind && obj.GetName() == name {
				return obj
			}
		}
		return nil
	}
	var all []string
	for _, spec := range slipway.Specs() {
		all = append(all, spec.Name)
	}
	t.Run("every function has a Service, a Trigger and a resync, and so has the whole set", func(t *testing.T) {
		for overlay, services := range map[string][]string{"development": all, "all-in-one": {"slipway"}} {
			objs := p.render("deploy/overlays/" + overlay)
			var functions, triggers []string
			for _, obj := range objs {
				if obj.GetKind() == "Service" && strings.HasPrefix(obj.GetAPIVersion(), "serving.") && obj.GetName() != "event-archive" {
					functions = append(functions, obj.GetName())
				}
				if obj.GetKind() == "Trigger" {
					triggers = append(triggers, obj.GetName())
				}
			}
			slices.Sort(functions)
			slices.Sort(triggers)
			if !slices.Equal(functions, services) || !slices.Equal(triggers, services) {
				t.Errorf("%s has Services %v and Triggers %v, want %v", overlay, functions, triggers, services)
			}
			for _, name := range all {
				if find(objs, "PingSource", "resync-"+name) == nil {
					t.Errorf("%s has no resync of %s", overlay, name)
				}
			}
		}
	})
	t.Run("durable keeps events and dead letters", func(t *testing.T) {
		objs := p.render("deploy/overlays/durable")
		broker := find(objs, "Broker", "default")
		if got := broker.GetAnnotations(); got["eventing.knative.dev/broker.class"] != "Kafka" || got["messaging.knative.dev/async-handler"] != "" {
			t.Errorf("the Broker's annotations are %v", got)
		}
		if find(objs, "PersistentVolumeClaim", "event-archive") == nil || find(objs, "Deployment", "event-archive") == nil {
			t.Error("dead letters have no volume")
		}
		for _, obj := range objs {
			content, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			// The adapter's own configuration is overruled by its environment.
			if obj.GetKind() != "ConfigMap" && strings.Contains(string(content), "//broker-ingress.") {
				t.Errorf("%s sends to the broker in memory", named(obj))
			}
		}
	})
	t.Run("authenticated knows the sender of each function, and the broker its own", func(t *testing.T) {
		objs := p.render("deploy/overlays/authenticated")
		for _, name := range all {
			if got, want := text(find(objs, "Trigger", name), "spec", "subscriber", "audience"), name+"."+namespace; got != want {
				t.Errorf("the audience of %s is %q", name, got)
			}
			containers, _, _ := unstructured.NestedSlice(find(objs, "Service", name).Object, "spec", "template", "spec", "containers")
			content, err := json.Marshal(containers)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{name + "." + namespace, "system:serviceaccount:slipway-system:" + name + "-oidc-eventing.knative.dev-trigger", "K_SINK_TOKEN_FILE"} {
				if !strings.Contains(string(content), want) {
					t.Errorf("Service %s lacks %q", name, want)
				}
			}
		}
		from, _, _ := unstructured.NestedSlice(find(objs, "EventPolicy", "default").Object, "spec", "from")
		sources := 0
		for _, obj := range objs {
			if strings.HasSuffix(obj.GetKind(), "Source") {
				sources++
			}
		}
		// The adapter, the whole set and each function send by themselves.
		if want := sources + 2 + len(all); len(from) != want {
			t.Errorf("%d senders are let in, want %d", len(from), want)
		}
	})
	t.Run("observe lets no function write", func(t *testing.T) {
		objs := p.render("deploy/overlays/observe")
		for _, name := range all {
			content, err := json.Marshal(find(objs, "Service", name).Object["spec"])
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(content), `{"name":"SLIPWAY_MODE","value":"observe"}`) {
				t.Errorf("%s would write", name)
			}
		}
	})
	t.Run("validated has the webhook, and lets the API server reach it", func(t *testing.T) {
		objs := p.render("deploy/overlays/validated")
		if find(objs, "ValidatingWebhookConfiguration", "template-validator.slipway.dev") == nil || find(objs, "NetworkPolicy", "template-validator") == nil {
			t.Error("there is no webhook, or nobody reaches it")
		}
	})
	t.Run("an archive that asks who reads has a token to ask with, and readers have a port", func(t *testing.T) {
		for _, overlay := range []string{"development", "durable", "bucket"} {
			objs := p.render("deploy/overlays/" + overlay)
			archive := find(objs, "Deployment", "event-archive")
			if archive == nil {
				archive = find(objs, "Service", "event-archive")
			}
			if mounted, found, _ := unstructured.NestedBool(archive.Object, "spec", "template", "spec", "automountServiceAccountToken"); found && !mounted {
				t.Errorf("%s: the archive has no token", overlay)
			}
			if text(archive, "spec", "template", "metadata", "labels", "app.kubernetes.io/name") != text(find(objs, "Service", "event-archive-readers"), "spec", "selector", "app.kubernetes.io/name") {
				t.Errorf("%s: the Service of readers does not find the archive", overlay)
			}
			settings := env(t, archive)
			if (settings["ARCHIVE_DIR"] == "") != (overlay == "bucket") || settings["ARCHIVE_READERS"] == "" {
				t.Errorf("%s: the archive's settings are %v", overlay, settings)
			}
		}
	})
	t.Run("the console has one right and no door", func(t *testing.T) {
		objs := p.render("deploy/overlays/console")
		content, err := json.Marshal(find(objs, "Deployment", "console"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"--listen=127.0.0.1:", "--offline", `"automountServiceAccountToken":false`} {
			if !strings.Contains(string(content), want) {
				t.Errorf("the console lacks %s", want)
			}
		}
		for _, obj := range objs {
			subjects, _, _ := unstructured.NestedSlice(obj.Object, "subjects")
			for _, subject := range subjects {
				if subject.(map[string]any)["name"] == "console" && text(obj, "roleRef", "name") != "recordings-reader" {
					t.Errorf("%s gives the console a right", named(obj))
				}
			}
			if obj.GetKind() == "Service" && strings.HasPrefix(obj.GetAPIVersion(), "serving.") && obj.GetName() != "event-archive" && env(t, obj)["SLIPWAY_RECORD"] != "namespaces" {
				t.Errorf("%s does not look at the annotation of a namespace", named(obj))
			}
		}
		if rules, _, _ := unstructured.NestedSlice(find(objs, "NetworkPolicy", "console").Object, "spec", "ingress"); len(rules) > 0 {
			t.Errorf("somebody may connect to the console: %v", rules)
		}
	})
	t.Run("what is left out is not there", func(t *testing.T) {
		for _, obj := range p.render("deploy/overlays/without-crds") {
			if obj.GetKind() == "CustomResourceDefinition" {
				t.Errorf("without-crds has %s", named(obj))
			}
		}
		for _, obj := range p.render("deploy/overlays/without-adapter") {
			if strings.Contains(obj.GetName(), "source-adapter") {
				t.Errorf("without-adapter has %s", named(obj))
			}
		}
	})
}

// env are the variables of a workload's container; what comes from elsewhere is told so.
func env(t *testing.T, obj *unstructured.Unstructured) map[string]string {
	t.Helper()
	containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
	out := map[string]string{}
	for _, v := range containers[0].(map[string]any)["env"].([]any) {
		variable := v.(map[string]any)
		value, ok := variable["value"].(string)
		if !ok {
			value = "(from elsewhere)"
		}
		out[variable["name"].(string)] = value
	}
	return out
}
