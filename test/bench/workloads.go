package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/crds"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
)

const (
	// servicesEach is how many load balancers each workload cluster has.
	servicesEach = 5
	// changesMade is how many more come afterwards, one after the other.
	changesMade = 20
	// atOnce is how many objects are made side by side.
	atOnce = 4
)

// runWorkloads measures the adapter and workload-router on many workload clusters that
// are connected to at the same moment.
//
// A few real API servers play them all: each has a prefix of its own in one etcd, and
// each kubeconfig leads to one of them. So every watch sees the Services of all clusters
// on its API server. For the adapter that is worse than in reality; the function is
// spared those events.
func runWorkloads(ctx context.Context, clusters, servers int) error {
	root, err := build.Root(".")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := build.Binaries(ctx, build.Options{Root: root, Out: os.Stderr}, "kube", "source-adapter", "workload-router"); err != nil {
		return err
	}
	x := &workloads{root: root, dir: dir, report: &workloadReport{Clusters: clusters, Servers: servers, Services: clusters * servicesEach}}
	defer x.stop()
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"starting the API servers", x.start},
		{"making Clusters, Workloads and Services", x.fill},
		{"starting function and adapter", x.run},
		{"waiting for every route", x.converge},
		{"changing", x.change},
		{"weighing", x.weigh},
	} {
		fmt.Fprintln(os.Stderr, step.name)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("cannot go on with %s: %w", step.name, err)
		}
	}
	x.report.print(os.Stdout)
	if err := save(x.report); err != nil {
		return err
	}
	if x.report.Lost > 0 || x.report.Watches != clusters {
		return fmt.Errorf("%d events were given up, and there are %d watches of %d clusters", x.report.Lost, x.report.Watches, clusters)
	}
	return nil
}

// workloads is a run.
type workloads struct {
	root, dir  string
	report     *workloadReport
	management *kube.Cluster
	servers    []*kube.Cluster
	client     dynamic.Interface
	inside     []dynamic.Interface
	broker     *broker
	function   *served
	adapter    *exec.Cmd
	own        int
	begun      time.Time
}

func (x *workloads) stop() {
	if x.adapter != nil {
		_ = x.adapter.Process.Signal(os.Interrupt)
		_ = x.adapter.Wait()
	}
	if x.broker != nil {
		x.broker.stop()
	}
	if x.function != nil {
		x.function.stop()
	}
	for _, server := range x.servers {
		server.Stop()
	}
	if x.management != nil {
		x.management.Stop()
	}
}

func (x *workloads) start(ctx context.Context) (err error) {
	definitions, err := crds.Load(ctx, crds.ClusterAPI, crds.GatewayAPI)
	if err != nil {
		return err
	}
	own, err := kube.ReadFiles(filepath.Join(x.root, "api/dockyards/crds"))
	if err != nil {
		return err
	}
	binary := filepath.Join(x.root, build.DefaultBin, "kube")
	if x.management, err = kube.Start(ctx, kube.Options{
		Binary: binary, Dir: filepath.Join(x.dir, "management"),
		Install: func(ctx context.Context, c *kube.Cluster) error {
			return kube.Apply(ctx, c.Config, append(definitions, own...)...)
		},
	}); err != nil {
		return err
	}
	if x.client, err = dynamic.NewForConfig(x.management.Config); err != nil {
		return err
	}
	for i := range x.report.Servers {
		server, err := kube.Start(ctx, kube.Options{
			Name: fmt.Sprintf("server-%d", i), Binary: binary, Dir: filepath.Join(x.dir, fmt.Sprintf("server-%d", i)),
			EtcdURL: x.management.EtcdURL, EtcdPrefix: fmt.Sprintf("/server-%d", i),
		})
		if err != nil {
			return err
		}
		x.servers = append(x.servers, server)
		client, err := dynamic.NewForConfig(server.Config)
		if err != nil {
			return err
		}
		x.inside = append(x.inside, client)
	}
	x.own, err = x.watches(ctx)
	return err
}

func tenantOf(i int) string { return fmt.Sprintf("tenant-%03d", i) }

func (x *workloads) fill(ctx context.Context) error {
	if err := x.apply(ctx, x.management, `
{apiVersion: v1, kind: Namespace, metadata: {name: platform}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: dockyards-system, namespace: platform}, data: {externalURL: "https://api.example.test"}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: platform}
spec: {gatewayClassName: public, listeners: [{name: http, port: 80, protocol: HTTP}]}`); err != nil {
		return err
	}
	if err := x.status(ctx, dockyards.Gateways.Plural, "platform", "public", `{"status":{"addresses":[{"type":"IPAddress","value":"192.0.2.10"}]}}`); err != nil {
		return err
	}
	return x.each(func(i int) error { return x.tenant(ctx, i) })
}

// each does something for all workload clusters.
func (x *workloads) each(do func(i int) error) error { return each(x.report.Clusters, atOnce, do) }

func (x *workloads) apply(ctx context.Context, c *kube.Cluster, manifest string) error {
	objects, err := kube.Decode(strings.NewReader(manifest))
	if err != nil {
		return err
	}
	return kube.Apply(ctx, c.Config, objects...)
}

func (x *workloads) status(ctx context.Context, plural, namespace, name, patch string) error {
	for _, res := range resources {
		if res.Plural == plural {
			_, err := x.client.Resource(res.GVR()).Namespace(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
			return err
		}
	}
	return errors.New("no such resource: " + plural)
}

// tenant makes a Cluster with one Workload, and the Services in its workload cluster.
func (x *workloads) tenant(ctx context.Context, i int) error {
	name := tenantOf(i)
	server := x.servers[i%len(x.servers)]
	kubeconfig, err := server.AdminKubeconfig()
	if err != nil {
		return err
	}
	if err := x.apply(ctx, x.management, strings.ReplaceAll(`
{apiVersion: v1, kind: Namespace, metadata: {name: TENANT}}
---
{apiVersion: dockyards.io/v1alpha3, kind: Cluster, metadata: {name: shop, namespace: TENANT}, spec: {}}
---
{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: shop, namespace: TENANT}, spec: {paused: false}}`, "TENANT", name)); err != nil {
		return err
	}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
		"metadata": map[string]any{
			"name": dockyards.KubeconfigSecret("shop"), "namespace": name, "labels": map[string]any{dockyards.LabelCAPIClusterName: "shop"},
		},
		"stringData": map[string]any{dockyards.KubeconfigKey: string(kubeconfig)},
	}}
	cluster, err := x.client.Resource(dockyards.Clusters.GVR()).Namespace(name).Get(ctx, "shop", metav1.GetOptions{})
	if err != nil {
		return err
	}
	workload := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"provenience": "Dockyards", "targetNamespace": name}}}
	workload.SetGroupVersionKind(dockyards.Workloads.GVK())
	workload.SetNamespace(name)
	workload.SetName(name)
	workload.SetLabels(map[string]string{"dockyards.io/cluster-name": "shop"})
	workload.SetOwnerReferences([]metav1.OwnerReference{dockyards.Reference(dockyards.Clusters, cluster)})
	if err := kube.Apply(ctx, x.management.Config, secret, workload); err != nil {
		return err
	}
	if err := x.status(ctx, dockyards.Clusters.Plural, name, "shop", `{"status":{"dnsZones":["`+name+`.example.test"]}}`); err != nil {
		return err
	}
	manifest := `{apiVersion: v1, kind: Namespace, metadata: {name: ` + name + `}}`
	for n := range servicesEach {
		manifest += "\n---\n" + serviceOf(name, fmt.Sprintf("front-%d", n))
	}
	return x.apply(ctx, server, manifest)
}

func serviceOf(tenant, name string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: %s, namespace: %s, labels: {dockyards.io/workload-name: %s}},
spec: {type: LoadBalancer, ports: [{name: http, port: 80}, {name: https, port: 443}]}}`, name, tenant, tenant)
}

// run starts the function, what stands for the broker, and the adapter with the
// generated configuration. No workload cluster is up yet.
func (x *workloads) run(ctx context.Context) (err error) {
	if x.function, _, err = launch(ctx, filepath.Join(x.root, build.DefaultBin, "workload-router"), x.management.Kubeconfig,
		"GATEWAY_NAME=public", "GATEWAY_NAMESPACE=platform", "DOCKYARDS_NAMESPACE=platform", "LOG_LEVEL=warn"); err != nil {
		return err
	}
	if x.broker, err = newBroker(x.function.url); err != nil {
		return err
	}
	config, err := adapterConfig(x.root)
	if err != nil {
		return err
	}
	path := filepath.Join(x.dir, "adapter.yaml")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return err
	}
	health, err := free()
	if err != nil {
		return err
	}
	x.adapter = exec.CommandContext(ctx, filepath.Join(x.root, build.DefaultBin, "source-adapter"), //nolint:gosec // our own binary
		"--config", path, "--kubeconfig", x.management.Kubeconfig, "--health-listen", health)
	x.adapter.Env = append(os.Environ(), "K_SINK="+x.broker.url)
	log, err := os.Create(filepath.Join(x.dir, "adapter.log"))
	if err != nil {
		return err
	}
	x.adapter.Stderr = log
	if err := x.adapter.Start(); err != nil {
		return err
	}
	if err := until(ctx, func() (bool, error) {
		text, err := os.ReadFile(log.Name())
		return strings.Contains(string(text), `"httproutes.v1"`), err
	}); err != nil {
		return err
	}
	if err := x.broker.quiet(ctx); err != nil {
		return err
	}
	x.report.AdapterIdle, err = resident(x.adapter.Process.Pid)
	return err
}

// adapterConfig is the generated one.
func adapterConfig(root string) ([]byte, error) {
	objects, err := kube.ReadFiles(filepath.Join(root, "sources/adapter.yaml"))
	if err != nil {
		return nil, err
	}
	text, found, err := unstructured.NestedString(objects[0].Object, "data", "config.yaml")
	if err != nil || !found {
		return nil, fmt.Errorf("cannot find the adapter's configuration: %w", err)
	}
	return yaml.YAMLToJSON([]byte(text))
}

// converge lets all control planes come up at once.
func (x *workloads) converge(ctx context.Context) error {
	x.begun = time.Now()
	if err := x.each(func(i int) error {
		_, err := x.client.Resource(dockyards.CAPIClusters.GVR()).Namespace(tenantOf(i)).Patch(ctx, "shop", types.MergePatchType,
			[]byte(`{"status":{"initialization":{"infrastructureProvisioned":true,"controlPlaneInitialized":true}}}`), metav1.PatchOptions{}, "status")
		return err
	}); err != nil {
		return err
	}
	if err := until(ctx, func() (bool, error) { return x.broker.connected() >= x.report.Clusters, nil }); err != nil {
		return err
	}
	x.report.Connected = time.Since(x.begun)
	fmt.Fprintf(os.Stderr, "  all connected after %s\n", x.report.Connected.Round(time.Millisecond))
	if err := until(ctx, func() (bool, error) { return x.reached(ctx) }); err != nil {
		return err
	}
	x.report.Converged = time.Since(x.begun)
	fmt.Fprintf(os.Stderr, "  every Service reachable after %s\n", x.report.Converged.Round(time.Millisecond))
	if err := x.broker.quiet(ctx); err != nil {
		return err
	}
	x.report.Settled = x.broker.last().Sub(x.begun)
	return nil
}

// reached tells whether every load balancer has its routes and knows its address.
func (x *workloads) reached(ctx context.Context) (bool, error) {
	for _, res := range []string{dockyards.TLSRoutes.Plural, dockyards.HTTPRoutes.Plural} {
		list, err := x.list(ctx, x.client, res)
		if err != nil || len(list) < x.report.Services {
			return false, err
		}
	}
	for _, client := range x.inside {
		list, err := x.list(ctx, client, dockyards.Services.Plural)
		if err != nil {
			return false, err
		}
		for i := range list {
			addresses, _, _ := unstructured.NestedSlice(list[i].Object, "status", "loadBalancer", "ingress")
			if list[i].GetLabels()["dockyards.io/workload-name"] != "" && len(addresses) == 0 {
				return false, nil
			}
		}
	}
	return true, nil
}

func (x *workloads) list(ctx context.Context, client dynamic.Interface, plural string) ([]unstructured.Unstructured, error) {
	for _, res := range resources {
		if res.Plural == plural {
			list, err := client.Resource(res.GVR()).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			return list.Items, nil
		}
	}
	return nil, errors.New("no such resource: " + plural)
}

var resources = []kind.Resource{dockyards.Gateways, dockyards.HTTPRoutes, dockyards.TLSRoutes, dockyards.Clusters, dockyards.Services}

// change makes further load balancers, one after the other.
func (x *workloads) change(ctx context.Context) error {
	routes, err := x.client.Resource(dockyards.HTTPRoutes.GVR()).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer routes.Stop()
	var took []time.Duration
	for n := range changesMade {
		tenant, name := tenantOf(n*7%x.report.Clusters), fmt.Sprintf("late-%d", n)
		started := time.Now()
		if err := x.apply(ctx, x.servers[n*7%x.report.Clusters%len(x.servers)], serviceOf(tenant, name)); err != nil {
			return err
		}
		for seen := false; !seen; {
			select {
			case event, open := <-routes.ResultChan():
				route, ok := event.Object.(*unstructured.Unstructured)
				if !open || !ok {
					return errors.New("the watch ended")
				}
				seen = route.GetName() == tenant+"-"+name
			case <-time.After(time.Minute):
				return fmt.Errorf("no route for Service %s/%s within a minute", tenant, name)
			}
		}
		took = append(took, time.Since(started))
		if err := x.broker.quiet(ctx); err != nil {
			return err
		}
	}
	x.report.ChangeMs = spreadOf(took)
	return nil
}

func (x *workloads) weigh(ctx context.Context) (err error) {
	r := x.report
	if r.Watches, err = x.watches(ctx); err != nil {
		return err
	}
	r.Watches -= x.own
	r.Events, r.Strange, r.Again, r.Lost = x.broker.counts()
	for _, field := range []struct {
		pid  int
		name string
		into *int64
	}{
		{x.adapter.Process.Pid, "VmRSS:", &r.AdapterLoaded},
		{x.adapter.Process.Pid, "VmHWM:", &r.AdapterPeak},
		{x.function.cmd.Process.Pid, "VmHWM:", &r.FunctionPeak},
	} {
		if *field.into, err = memory(field.pid, field.name); err != nil {
			return err
		}
	}
	return nil
}

// watches counts those of Services on the workload clusters' API servers; some are
// their own.
func (x *workloads) watches(ctx context.Context) (int, error) {
	total := 0
	for _, server := range x.servers {
		client, err := discovery.NewDiscoveryClientForConfig(server.Config)
		if err != nil {
			return 0, err
		}
		text, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "apiserver_longrunning_requests{") && strings.Contains(line, `resource="services",scope="cluster"`) {
				fields := strings.Fields(line)
				n, err := strconv.Atoi(fields[len(fields)-1])
				if err != nil {
					return 0, err
				}
				total += n
			}
		}
	}
	return total, nil
}

// until waits until something is so.
func until(ctx context.Context, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, convergence)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if done, err := is(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
