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
	address, err := c.Kubectl(ctx, "get", "service", "broker-ingress", "-n", "knative-eventing", "-o", "jsonpath={.spec.clusterIP}")
	if err != nil {
		return err
	}
	for _, name := range functions {
		now := time.Now()
		id := fmt.Sprintf("resync-%s-%d", name, now.UnixNano())
		next := event.Next(event.Resync{Function: name}, id, now)
		url := "http://" + address + "/" + Namespace + "/default"
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(next.Data())))
		if err != nil {
			return fmt.Errorf("cannot ask for a resync: %w", err)
		}
		for name, value := range map[string]string{
			"Ce-Specversion": "1.0", "Ce-Id": id, "Ce-Type": next.Type(), "Ce-Source": next.Source(),
			"Ce-Function": name, "Content-Type": "application/json",
		} {
			req.Header.Set(name, value)
		}
		resp, err := c.HTTP.Do(req)
		if err != nil {
			return fmt.Errorf("cannot ask for a resync: %w", err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			return fmt.Errorf("cannot ask %s for a resync: the broker answered %s", name, resp.Status)
		}
	}
	return nil
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
