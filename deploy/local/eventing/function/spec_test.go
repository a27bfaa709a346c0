package function

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

func TestBinaryName(t *testing.T) {
	cases := map[string]struct{ reason, image, want string }{
		"Function":  {"a function's command lies in its folder cmd", "ko://github.com/slipway-dev/slipway/functions/machine-vm/cmd", "machine-vm"},
		"Command":   {"a command is its own folder", "ko://github.com/slipway-dev/slipway/cmd/event-archive", "event-archive"},
		"Published": {"a published image has a tag", "ghcr.io/slipway-dev/machine-vm:v1.0", "machine-vm"},
		"Pinned":    {"a pinned image has a digest", "registry.local:5000/slipway/machine-vm:v1@sha256:abc", "machine-vm"},
		"Bare":      {"a bare name is a name", "machine-vm", "machine-vm"},
		"Parent":    {"a name must not leave the folder", "ko://example.com/..", ""},
		"Empty":     {"nothing names nothing", "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := BinaryName(tc.image); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func service(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestRead(t *testing.T) {
	cases := map[string]struct {
		reason, text string
		want         Spec
		wantError    string
	}{
		"Whole": {
			reason: "all that counts is read",
			text: `
metadata: {name: fn, namespace: demo, generation: 3, annotations: {slipway.dev/disabled: "true"}}
spec:
  template:
    spec:
      containerConcurrency: 5
      timeoutSeconds: 30
      serviceAccountName: account
      containers: [{image: ko://x/functions/fn/cmd, args: [a], env: [{name: A, value: b}]}]`,
			want: Spec{
				NamespacedName: types.NamespacedName{Namespace: "demo", Name: "fn"}, Generation: 3, Disabled: true,
				Binary: "/bin/fn", Args: []string{"a"}, Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
				ServiceAccount: "account", Concurrency: 5,
			},
		},
		"Default": {
			reason: "a Service without an account acts as the default one",
			text:   `{metadata: {name: fn, namespace: demo}, spec: {template: {spec: {containers: [{image: fn}]}}}}`,
			want: Spec{
				NamespacedName: types.NamespacedName{Namespace: "demo", Name: "fn"}, Binary: "/bin/fn", ServiceAccount: "default",
			},
		},
		"NoContainer": {
			reason:    "a Service needs a container",
			text:      `{metadata: {name: fn, namespace: demo}, spec: {template: {spec: {}}}}`,
			wantError: "containers has 0 entries",
		},
		"NoImage": {
			reason:    "the image names the binary",
			text:      `{metadata: {name: fn, namespace: demo}, spec: {template: {spec: {containers: [{name: a}]}}}}`,
			wantError: `image "" names no binary`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Read(service(t, tc.text), "/bin")
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Fatalf("%s: got error %v, want %q", tc.reason, err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOnlyWhatAProcessCannotFollowReplacesIt(t *testing.T) {
	before := Spec{Binary: "a", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}, Generation: 1}
	after := before
	after.Generation = 2
	if before.fingerprint() != after.fingerprint() {
		t.Error("another generation of the same would replace the process")
	}
	after.Env = []corev1.EnvVar{{Name: "A", Value: "c"}}
	if before.fingerprint() == after.fingerprint() {
		t.Error("another environment would not replace the process")
	}
}

// tokens makes a client that hands out tokens with the given life.
func tokens(life time.Duration, objects ...runtime.Object) (*fake.Clientset, *int) {
	client, count := fake.NewClientset(objects...), 0
	client.PrependReactor("create", "serviceaccounts", func(action kubetesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "token" {
			return false, nil, nil
		}
		count++
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{
			Token: "token", ExpirationTimestamp: metav1.NewTime(time.Now().Add(life)),
		}}, nil
	})
	return client, &count
}

func TestTheEnvironmentOfAFunction(t *testing.T) {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "demo"}, Data: map[string]string{"mode": "plan"}}
	client, _ := tokens(time.Hour, settings)
	config := &rest.Config{Host: "https://127.0.0.1:6443"}
	dir := t.TempDir()
	credentials, err := NewCredentials(client, config, dir)
	if err != nil {
		t.Fatal(err)
	}
	environ := &Environ{Client: client, Credentials: credentials, Self: "127.0.0.1:1", Broker: "default"}
	from := func(name, key string, optional bool) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: &optional,
		}}
	}
	spec := Spec{
		NamespacedName: types.NamespacedName{Namespace: "demo", Name: "fn"}, Generation: 2, ServiceAccount: "account",
		Env: []corev1.EnvVar{
			{Name: "PLAIN", Value: "text"},
			{Name: "ARCHIVE", Value: "http://event-archive.demo.svc.cluster.local/r"},
			{Name: "MODE", ValueFrom: from("settings", "mode", false)},
			{Name: "ABSENT", ValueFrom: from("nowhere", "x", true)},
			{Name: "NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
			{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "x"}}},
		},
	}
	t.Setenv("UNRELATED", "must not be inherited")
	got, err := environ.Of(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	got = slices.DeleteFunc(got, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(inherited, name)
	})
	want := []string{
		"KUBECONFIG=" + filepath.Join(dir, "demo.account.kubeconfig"),
		"K_SERVICE=fn", "K_CONFIGURATION=fn", "K_REVISION=fn-00002",
		"K_SINK=http://127.0.0.1:1/demo/default",
		"PLAIN=text",
		"ARCHIVE=http://127.0.0.1:1/functions/demo/event-archive/r",
		"MODE=plan",
		"NAMESPACE=demo",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wrong environment (-want +got):\n%s", diff)
	}
	spec.Env = []corev1.EnvVar{{Name: "MODE", ValueFrom: from("settings", "absent", false)}}
	if _, err := environ.Of(t.Context(), spec); err == nil || !strings.Contains(err.Error(), `config map "settings" has no key "absent"`) {
		t.Errorf("a missing key gave the error %v", err)
	}
}

func TestATokenIsRenewedWhenHalfOfItsLifeIsOver(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		life   time.Duration
		want   int
	}{
		"Fresh": {"a fresh token is used again", time.Hour, 1},
		"Stale": {"a token whose half is over is not", 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			client, count := tokens(tc.life)
			credentials, err := NewCredentials(client, &rest.Config{Host: "https://127.0.0.1:6443"}, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			var file string
			for range 2 {
				if file, err = credentials.Ensure(context.Background(), "demo", "account"); err != nil {
					t.Fatal(err)
				}
			}
			if *count != tc.want {
				t.Errorf("%s: %d tokens were asked for, want %d", tc.reason, *count, tc.want)
			}
			config, err := clientcmd.BuildConfigFromFlags("", file)
			if err != nil {
				t.Fatal(err)
			}
			token, err := os.ReadFile(config.BearerTokenFile)
			if err != nil || string(token) != "token" || config.Host != "https://127.0.0.1:6443" {
				t.Errorf("the kubeconfig leads to %q with token %q, %v", config.Host, token, err)
			}
		})
	}
}

func TestConditionsKeepTheirTimeWhileTheyDoNotChange(t *testing.T) {
	first, second := time.Unix(1000, 0), time.Unix(2000, 0)
	before := map[string]any{"conditions": conditions(nil, "", nil, first)}
	if diff := cmp.Diff(before["conditions"], any(conditions(before, "", nil, second))); diff != "" {
		t.Errorf("the same state gave other conditions (-want +got):\n%s", diff)
	}
	changed := conditions(before, "BinaryMissing", os.ErrNotExist, second)
	want := []any{
		map[string]any{"type": "ConfigurationsReady", "status": "False", "reason": "BinaryMissing", "message": "file does not exist", "lastTransitionTime": "1970-01-01T00:33:20Z"},
		map[string]any{"type": "Ready", "status": "False", "reason": "BinaryMissing", "message": "file does not exist", "lastTransitionTime": "1970-01-01T00:33:20Z"},
		map[string]any{"type": "RoutesReady", "status": "True", "lastTransitionTime": "1970-01-01T00:16:40Z"},
	}
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Errorf("wrong conditions (-want +got):\n%s", diff)
	}
}
