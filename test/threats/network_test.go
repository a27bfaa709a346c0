package threats

import (
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// TestNobodyMayConnectButWhoIsNamed: one policy closes all Pods, and each other one that
// opens a port says to whom.
func TestNobodyMayConnectButWhoIsNamed(t *testing.T) {
	closed := false
	for _, document := range strings.Split(read(t, "deploy/common/network.yaml"), "\n---\n") {
		var policy networkingv1.NetworkPolicy
		if err := yaml.UnmarshalStrict([]byte(document), &policy); err != nil {
			t.Fatal(err)
		}
		if policy.Namespace != "slipway-system" || len(policy.Spec.PolicyTypes) != 1 || policy.Spec.PolicyTypes[0] != networkingv1.PolicyTypeIngress {
			t.Errorf("policy %s is of another kind than the others: %+v", policy.Name, policy.Spec.PolicyTypes)
		}
		selects := len(policy.Spec.PodSelector.MatchLabels) + len(policy.Spec.PodSelector.MatchExpressions)
		if selects == 0 {
			closed = closed || len(policy.Spec.Ingress) == 0
		}
		for _, rule := range policy.Spec.Ingress {
			if len(rule.From) == 0 || len(rule.Ports) == 0 {
				t.Errorf("policy %s lets anybody in, or to any port: %+v", policy.Name, rule)
			}
			for _, peer := range rule.From {
				if peer.NamespaceSelector != nil && len(peer.NamespaceSelector.MatchLabels)+len(peer.NamespaceSelector.MatchExpressions) == 0 {
					t.Errorf("policy %s lets every namespace in", policy.Name)
				}
			}
		}
	}
	if !closed {
		t.Error("no policy closes all Pods")
	}
	if base := read(t, "deploy/base/kustomization.yaml"); !strings.Contains(base, "common") {
		t.Errorf("the base does not bring the policies:\n%s", base)
	}
}
