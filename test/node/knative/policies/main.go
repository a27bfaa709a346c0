// Command policies enforces NetworkPolicies on the one node it runs on: the policy
// controller of kube-router, alone. The node's own network provider has none.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	node := flag.String("node", "", "the name of the node")
	services := flag.String("services", "", "the range of service addresses")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *node, *services); err != nil {
		fmt.Fprintln(os.Stderr, "policies:", err)
		stop()
		os.Exit(1)
	}
}

// run enforces until the context ends.
func run(ctx context.Context, kubeconfig, node, services string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("cannot read kubeconfig %q: %w", kubeconfig, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot reach the API server: %w", err)
	}
	settings := options.NewKubeRouterConfig()
	settings.HostnameOverride = node
	settings.ClusterIPCIDRs = []string{services}
	settings.EnableIPv4, settings.EnableIPv6 = true, false

	factory := informers.NewSharedInformerFactory(client, 0)
	pods, policies, namespaces := factory.Core().V1().Pods().Informer(), factory.Networking().V1().NetworkPolicies().Informer(), factory.Core().V1().Namespaces().Informer()
	tables, sets, err := netpol.NewIPTablesHandlers(settings)
	if err != nil {
		return fmt.Errorf("cannot use iptables and ipset: %w", err)
	}
	controller, err := netpol.NewNetworkPolicyController(client, settings, pods, policies, namespaces, &sync.Mutex{}, tables, sets)
	if err != nil {
		return fmt.Errorf("cannot enforce policies on node %q: %w", node, err)
	}
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		pods: controller.PodEventHandler, policies: controller.NetworkPolicyEventHandler, namespaces: controller.NamespaceEventHandler,
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("cannot follow the API server: %w", err)
		}
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("cannot follow the API server: %v are not listed", kind)
		}
	}
	// It reports its health; nobody listens here.
	health := make(chan *healthcheck.ControllerHeartbeat, 10)
	go func() {
		for range health {
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	go controller.Run(health, ctx.Done(), &running)
	running.Wait()
	return nil
}
