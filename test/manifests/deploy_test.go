package manifests

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestDeployAndUndeploy runs the script behind make deploy and make undeploy, with
// images that somebody else built.
func TestDeployAndUndeploy(t *testing.T) {
	p := start(t)
	for _, overlay := range []string{"development", "authenticated"} {
		t.Run(overlay, func(t *testing.T) {
			p := *p
			p.t = t
			t.Setenv("OVERLAY", overlay)
			t.Setenv("IMAGES", "registry.invalid/slipway")
			t.Setenv("TAG", "v1.2.3")
			objs := p.render("deploy/overlays/" + overlay)

			p.must(nil, "make", "deploy")
			before, made := p.versions(objs), p.all(objs)
			for _, obj := range objs {
				if before[named(obj)] == "" {
					t.Errorf("deploy did not make %s", named(obj))
				}
			}
			p.images(objs)
			out := p.must(nil, "deploy/deploy")
			for name, version := range p.versions(objs) {
				if before[name] != version {
					t.Errorf("deploying twice changed %s:\n%s", name, cmp.Diff(made[name], p.all(objs)[name]))
				}
			}
			if strings.Contains(string(out), " created") {
				t.Errorf("deploying twice made something:\n%s", out)
			}

			if said := p.must(nil, "make", "logs-node-capacity", "KUBECTL="+p.kubectl()); !strings.Contains(string(said), "node-capacity is at zero") {
				t.Errorf("make logs does not say why there is nothing to see:\n%s", said)
			}

			p.freeClaims(objs)
			p.keepsWhatIsInUse(objs)
			p.must(nil, "make", "undeploy")
			for name := range p.versions(objs) {
				t.Errorf("undeploy left %s", name)
			}
			if _, err := p.run(nil, "deploy/undeploy"); err != nil {
				t.Errorf("undeploying twice is no failure: %v", err)
			}
		})
	}
	if err := os.Unsetenv("OVERLAY"); err != nil {
		t.Fatal(err)
	}
}

// all is what the API server holds of the objects.
func (p *platform) all(objs []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	p.t.Helper()
	out := map[string]*unstructured.Unstructured{}
	for _, obj := range objs {
		if live, err := p.in(obj).Get(p.t.Context(), obj.GetName(), metav1.GetOptions{}); err == nil {
			out[named(obj)] = live
		}
	}
	return out
}

// versions are those objects that are there, without the number of the write: the API
// server gives a claim another one at the second apply, though every byte is the same.
func (p *platform) versions(objs []*unstructured.Unstructured) map[string]string {
	p.t.Helper()
	out := map[string]string{}
	for _, obj := range objs {
		live, err := p.in(obj).Get(p.t.Context(), obj.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			p.t.Fatalf("%s: %v", named(obj), err)
		default:
			live.SetResourceVersion("")
			content, err := live.MarshalJSON()
			if err != nil {
				p.t.Fatal(err)
			}
			out[named(obj)] = string(content)
			// The status is the controllers' business.
			if obj.GetKind() == "CustomResourceDefinition" || obj.GetKind() == "Namespace" || obj.GetKind() == "Deployment" {
				out[named(obj)] = "present"
			}
		}
	}
	return out
}

func (p *platform) there(obj *unstructured.Unstructured) bool {
	p.t.Helper()
	_, err := p.in(obj).Get(p.t.Context(), obj.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		p.t.Fatalf("%s: %v", named(obj), err)
	}
	return err == nil
}

// images: no workload still names what only ko understands.
func (p *platform) images(objs []*unstructured.Unstructured) {
	p.t.Helper()
	for _, obj := range objs {
		if pod(obj) == nil {
			continue
		}
		live, err := p.in(obj).Get(p.t.Context(), obj.GetName(), metav1.GetOptions{})
		if err != nil {
			p.t.Fatal(err)
		}
		containers, _, _ := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			image, _ := c.(map[string]any)["image"].(string)
			if !strings.HasPrefix(image, "registry.invalid/slipway/") || !strings.HasSuffix(image, ":v1.2.3") {
				p.t.Errorf("%s runs image %q", named(obj), image)
			}
		}
	}
}

// freeClaims does what a controller does that does not run here: it lets go of claims
// that no Pod uses.
func (p *platform) freeClaims(objs []*unstructured.Unstructured) {
	p.t.Helper()
	for _, obj := range objs {
		if obj.GetKind() != "PersistentVolumeClaim" {
			continue
		}
		if _, err := p.in(obj).Patch(p.t.Context(), obj.GetName(), "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			p.t.Fatal(err)
		}
	}
}

// keepsWhatIsInUse: with a definition would go every object of its kind.
func (p *platform) keepsWhatIsInUse(objs []*unstructured.Unstructured) {
	p.t.Helper()
	machine := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine",
		"metadata": map[string]any{"name": "in-use", "namespace": "default"}, "spec": map[string]any{"template": "small"},
	}}
	if _, err := p.in(machine).Create(p.t.Context(), machine, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.run(nil, "deploy/undeploy"); err == nil || !strings.Contains(err.Error(), "machine.vitistack.io/in-use") {
		p.t.Errorf("undeploy does not say what is in use: %v", err)
	}
	if got := p.versions(objs); len(got) < len(objs) {
		p.t.Errorf("an undeploy that refused removed %d objects", len(objs)-len(got))
	}
	p.must(nil, "env", "KEEP_CRDS=1", "deploy/undeploy")
	for _, obj := range objs {
		if p.there(obj) != (obj.GetKind() == "CustomResourceDefinition") {
			p.t.Errorf("an undeploy that keeps the definitions left %s: %v", named(obj), p.there(obj))
		}
	}
	if err := p.in(machine).Delete(p.t.Context(), machine.GetName(), metav1.DeleteOptions{}); err != nil {
		p.t.Fatal(err)
	}
}
