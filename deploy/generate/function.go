package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/shared/reconcile"
)

// function is a function's account, its rights and its Service.
func function(spec reconcile.Spec) []object {
	out := []object{{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(spec.Name)}}
	out = append(out, role("slipway-"+spec.Name, spec.Name, spec.Grants)...)
	if grants := spec.GrantsFor(""); len(grants) > 0 {
		out = append(out, role("slipway-"+spec.Name+"-target", spec.Name, grants)...)
	}
	return append(out, service(spec))
}

// role is a ClusterRole with its binding to one account.
func role(name, account string, grants []reconcile.Grant) []object {
	labels := object{"app.kubernetes.io/part-of": "slipway"}
	return []object{
		{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
			"metadata": object{"name": name, "labels": labels}, "rules": rules(grants),
		},
		{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
			"metadata": object{"name": name, "labels": labels},
			"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
			"subjects": []any{object{"kind": "ServiceAccount", "name": account, "namespace": namespace}},
		},
	}
}

type rule struct {
	group, resource string
	names           string
}

func rules(grants []reconcile.Grant) []any {
	verbs := map[rule]map[string]bool{}
	for _, grant := range grants {
		resource := grant.Resource.Plural
		if grant.Subresource != "" {
			resource += "/" + grant.Subresource
		}
		key := rule{grant.Resource.Group, resource, strings.Join(grant.Names, ",")}
		if verbs[key] == nil {
			verbs[key] = map[string]bool{}
		}
		for _, verb := range grant.Verbs {
			verbs[key][verb] = true
		}
	}
	keys := slices.SortedFunc(maps.Keys(verbs), func(a, b rule) int {
		return cmp.Or(strings.Compare(a.group, b.group), strings.Compare(a.resource, b.resource), strings.Compare(a.names, b.names))
	})
	out := make([]any, 0, len(keys))
	for _, key := range keys {
		r := object{
			"apiGroups": []string{key.group}, "resources": []string{key.resource},
			"verbs": slices.Sorted(maps.Keys(verbs[key])),
		}
		if key.names != "" {
			r["resourceNames"] = strings.Split(key.names, ",")
		}
		out = append(out, r)
	}
	return out
}

// images is where ko finds a command.
const images = "ko://github.com/slipway-dev/slipway/"

// environment is what the function is told. Settings are left to their defaults: an
// overlay names what differs.
func environment(spec reconcile.Spec) []any {
	env := []any{
		object{"name": "LISTEN_ADDRESS", "value": "[::]:8080"},
		object{"name": "K_SINK", "value": brokerAddress},
		object{"name": "SLIPWAY_RECORD_ARCHIVE", "value": recordingsAddress},
	}
	if spec.Settings != "" {
		for _, v := range spec.Env {
			env = append(env, object{"name": v.Name, "valueFrom": object{
				"configMapKeyRef": object{"name": spec.Settings, "key": v.Name, "optional": true},
			}})
		}
	}
	return env
}

// service is the function's Knative Service. What it asks for covers the load, what it
// may take leaves room for a large page of a resync.
func service(spec reconcile.Spec) object {
	return object{
		"apiVersion": "serving.knative.dev/v1", "kind": "Service",
		"metadata": meta(spec.Name, object{"labels": object{
			"app.kubernetes.io/part-of": "slipway", "app.kubernetes.io/component": "function",
			"networking.knative.dev/visibility": "cluster-local",
		}}),
		"spec": object{"template": object{
			"metadata": object{
				"annotations": object{"autoscaling.knative.dev/max-scale": "5"},
				"labels":      object{"app.kubernetes.io/part-of": "slipway", "app.kubernetes.io/component": "function"},
			},
			"spec": object{
				"serviceAccountName": spec.Name, "containerConcurrency": spec.Concurrency, "timeoutSeconds": 30,
				"containers": []any{object{
					"image":           images + "functions/" + spec.Name + "/cmd",
					"env":             environment(spec),
					"ports":           []any{object{"containerPort": 8080}},
					"readinessProbe":  object{"httpGet": object{"path": "/health/readiness", "port": 8080}},
					"resources":       resources(spec),
					"securityContext": restricted(),
				}},
			},
		}},
	}
}

// cpu is what a function is sure of while it works; nothing limits it beyond.
const cpu = "20m"

// resources are what a function's container asks for and may take. What kn func reads
// of them stands in functions/<name>/func.yaml, which a test compares with this.
func resources(spec reconcile.Spec) object {
	return object{
		"requests": object{"cpu": cpu, "memory": spec.MemoryRequest()}, "limits": object{"memory": spec.MemoryLimit()},
	}
}

// restricted is what Pod Security's level of that name asks for, and more.
func restricted() object {
	return object{
		"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
		"capabilities": object{"drop": []string{"ALL"}}, "seccompProfile": object{"type": "RuntimeDefault"},
	}
}

// rootAccount is the account of the function at the root of the repository,
// with the rights of all functions.
func rootAccount(specs []reconcile.Spec) []object {
	const name = "slipway"
	var grants []reconcile.Grant
	for _, spec := range specs {
		grants = append(append(grants, spec.Grants...), spec.GrantsFor("")...)
	}
	return append([]object{{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(name)}}, role(name, name, grants)...)
}

// readme is the README with its table of functions brought up to date.
func readme(root string, specs []reconcile.Spec) ([]byte, error) {
	const begin, end = "<!-- functions: begin -->\n", "<!-- functions: end -->"
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the README: %w", err)
	}
	head, rest, ok := bytes.Cut(text, []byte(begin))
	_, tail, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return nil, fmt.Errorf("cannot find the lines %q and %q in README.md", strings.TrimSpace(begin), end)
	}
	var table strings.Builder
	table.WriteString("| function | reconciles | woken also by | what it does | takes over |\n| --- | --- | --- | --- | --- |\n")
	for _, spec := range specs {
		var woken []string
		for _, watch := range spec.Watches {
			if watch.Resource.String() != spec.Reconciles.String() && !slices.Contains(woken, watch.Resource.Kind) {
				woken = append(woken, watch.Resource.Kind)
			}
		}
		fmt.Fprintf(&table, "| [%s](functions/%s) | %s | %s | %s | %s |\n",
			spec.Name, spec.Name, spec.Reconciles.Kind, strings.Join(woken, ", "), spec.Summary, spec.TakesOver)
	}
	return slices.Concat(head, []byte(begin), []byte(table.String()), []byte(end), tail), nil
}
