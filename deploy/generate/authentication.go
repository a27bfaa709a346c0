package main

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/shared/caller"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

const (
	brokerAudience = "eventing.knative.dev/broker/" + namespace + "/" + brokerName
	// tokenDir is where a sender's token for the broker is mounted.
	tokenDir = "/var/run/slipway/broker" //nolint:gosec // a path, not a token
	// longestName is how long a Trigger's name may be so that Knative names the
	// account of its tokens after it without shortening: names have 63 characters.
	longestName = 63 - len(triggerSuffix)
	// triggerSuffix is what Knative adds.
	triggerSuffix = "-oidc-eventing.knative.dev-trigger"
)

// authenticated is the component that lets a function take events from its own
// Trigger only, and lets what sends to the broker say who it is.
func authenticated(services []string) (object, error) {
	var patches []any
	for _, name := range services {
		if len(name) > longestName {
			return nil, fmt.Errorf("cannot tell the account of Trigger %q: the name is longer than %d characters, use a shorter one", name, longestName)
		}
		patches = append(patches,
			patch(object{"group": "serving.knative.dev", "kind": "Service", "name": name}, serviceOperations(name)),
			patch(object{"group": "eventing.knative.dev", "kind": "Trigger", "name": name}, []any{
				object{"op": "add", "path": "/spec/subscriber/audience", "value": audience(name)},
			}))
	}
	patches = append(patches, patch(nil, object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": adapterName, "namespace": namespace},
		"spec": object{"template": object{"spec": object{
			"containers": []any{object{"name": adapterName, "env": []any{tokenFile()}, "volumeMounts": []any{mount()}}},
			"volumes":    []any{volume()},
		}}},
	}))
	return component([]string{"account.yaml", "policy.yaml"}, patches), nil
}

func serviceOperations(name string) []any {
	const pod = "/spec/template/spec"
	env := func(v any) object {
		return object{"op": "add", "path": pod + "/containers/0/env/-", "value": v}
	}
	sender := "system:serviceaccount:" + namespace + ":" + name + triggerSuffix
	return []any{
		env(object{"name": caller.EnvAudience, "value": audience(name)}),
		env(object{"name": caller.EnvSenders, "value": sender}),
		env(tokenFile()),
		object{"op": "add", "path": pod + "/containers/0/volumeMounts", "value": []any{mount()}},
		object{"op": "add", "path": pod + "/volumes", "value": []any{volume()}},
	}
}

func audience(name string) string { return name + "." + namespace }

func tokenFile() object {
	return object{"name": caller.EnvTokenFile, "value": tokenDir + "/token"}
}

func mount() object {
	return object{"name": "broker-token", "mountPath": tokenDir, "readOnly": true}
}

// volume holds a token that is good for the broker and nothing else; the kubelet
// renews it.
func volume() object {
	return object{"name": "broker-token", "projected": object{"sources": []any{
		object{"serviceAccountToken": object{"audience": brokerAudience, "expirationSeconds": 3600, "path": "token"}},
	}}}
}

// eventPolicy names who may send to the broker: the sources, the adapter, and the
// functions themselves, whose resyncs go on through it.
func eventPolicy(specs []reconcile.Spec) object {
	var from []any
	for _, source := range append(apiServerSources(specs), resyncs(specs)...) {
		from = append(from, object{"ref": object{
			"apiVersion": source["apiVersion"], "kind": source["kind"],
			"name": source["metadata"].(object)["name"], "namespace": namespace,
		}})
	}
	accounts := []string{adapterName, rootName}
	for _, spec := range specs {
		accounts = append(accounts, spec.Name)
	}
	for _, account := range accounts {
		from = append(from, object{"sub": "system:serviceaccount:" + namespace + ":" + account})
	}
	return object{
		"apiVersion": "eventing.knative.dev/v1alpha1", "kind": "EventPolicy", "metadata": meta(brokerName),
		"spec": object{
			"to":   []any{object{"ref": object{"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": brokerName}}},
			"from": from,
		},
	}
}

// tokenReview is the right to ask whose a token is.
func tokenReview(accounts []string) []object {
	const name = "slipway-token-review"
	labels := object{"app.kubernetes.io/part-of": "slipway"}
	var subjects []any
	for _, account := range accounts {
		subjects = append(subjects, object{"kind": "ServiceAccount", "name": account, "namespace": namespace})
	}
	return []object{
		{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": object{"name": name, "labels": labels},
			"rules": []any{object{"apiGroups": []string{"authentication.k8s.io"}, "resources": []string{"tokenreviews"}, "verbs": []string{"create"}}},
		},
		{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": name, "labels": labels},
			"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
			"subjects": subjects,
		},
	}
}

// text is a value as YAML.
func text(content any) string {
	// Maps of strings and lists always encode.
	out, _ := yaml.Marshal(content)
	return string(out)
}
