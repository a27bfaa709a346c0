package kubelet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/sources/adapter"
)

func TestAnAdapterGetsWhatItsContainerWouldFind(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"}}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "receive-adapter",
		Env: []corev1.EnvVar{
			{Name: "K_SINK", Value: "http://sink"},
			{Name: "NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
			{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
			{Name: "SYSTEM_NAMESPACE", Value: "elsewhere"},
			{Name: "METRICS_DOMAIN", Value: "elsewhere"},
		},
	}}
	got, err := environmentOf(deployment)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(adapter.Environment{"K_SINK": "http://sink", "NAMESPACE": "ns"}, got); diff != "" {
		t.Errorf("wrong environment (-want +got):\n%s", diff)
	}
	deployment.Spec.Template.Spec.Containers[0].Name = "other"
	if _, err := environmentOf(deployment); err == nil || !strings.Contains(err.Error(), `deployment ns/d has no container "receive-adapter"`) {
		t.Errorf("a Deployment without that container gave the error %v", err)
	}
}

func TestAnAdapterActsAsItsServiceAccount(t *testing.T) {
	k := New(t.Context(), &rest.Config{Host: "https://api"}, nil)
	got := k.as("ns", "source").Impersonate
	want := rest.ImpersonationConfig{
		UserName: "system:serviceaccount:ns:source",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wrong identity (-want +got):\n%s", diff)
	}
}
