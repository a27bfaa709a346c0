package cluster

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/shared/event"
)

// Resync asks the named functions for a resync, through the broker.
func (c *Cluster) Resync(ctx context.Context, functions ...string) error {
	address, err := c.address(ctx, "knative-eventing", "broker-ingress")
	if err != nil {
		return err
	}
	for _, name := range functions {
		status, err := c.send(ctx, name, address, "", "/"+Namespace+"/default")
		if err != nil {
			return err
		}
		if status/100 != 2 {
			return fmt.Errorf("cannot ask %s for a resync: the broker answered %d", name, status)
		}
	}
	return nil
}

// Ask asks a function for a resync past the broker, through the cluster's gateway, and
// returns what it answers.
func (c *Cluster) Ask(ctx context.Context, function string) (int, error) {
	address, err := c.address(ctx, "kourier-system", "ingress")
	if err != nil {
		return 0, err
	}
	return c.send(ctx, function, address, function+"."+Namespace+".svc.cluster.local", "/")
}

// address is where a Service listens in the cluster's network.
func (c *Cluster) address(ctx context.Context, namespace, service string) (string, error) {
	return c.Kubectl(ctx, "get", "service", service, "-n", namespace, "-o", "jsonpath={.spec.clusterIP}")
}

// send sends a resync event for a function, and returns the status of the answer. Without
// a host the request is for the address itself.
func (c *Cluster) send(ctx context.Context, function, address, host, path string) (int, error) {
	now := time.Now()
	id := fmt.Sprintf("resync-%s-%d", function, now.UnixNano())
	next := event.Next(event.Resync{Function: function}, id, now)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+path, strings.NewReader(string(next.Data())))
	if err != nil {
		return 0, fmt.Errorf("cannot ask for a resync: %w", err)
	}
	req.Host = host
	for name, value := range map[string]string{
		"Ce-Specversion": "1.0", "Ce-Id": id, "Ce-Type": next.Type(), "Ce-Source": next.Source(),
		"Ce-Function": function, "Content-Type": "application/json",
	} {
		req.Header.Set(name, value)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return 0, fmt.Errorf("cannot ask for a resync: %w", err)
	}
	return resp.StatusCode, resp.Body.Close()
}

// Pods are the functions' pods that are not on their way out, "function/pod" each. The
// archive is none of them: it always runs.
func (c *Cluster) Pods(ctx context.Context) ([]string, error) {
	const service = "serving.knative.dev/service"
	list, err := c.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: service + "," + service + "!=event-archive"})
	if err != nil {
		return nil, fmt.Errorf("cannot list the functions' pods: %w", err)
	}
	var pods []string
	for _, pod := range list.Items {
		if pod.GetDeletionTimestamp() == nil {
			pods = append(pods, pod.GetLabels()[service]+"/"+pod.GetName())
		}
	}
	return pods, nil
}
