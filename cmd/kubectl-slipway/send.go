package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"k8s.io/client-go/rest"
)

// sendTimeout bounds the delivery of one event; a function takes 25 s at most.
const sendTimeout = 30 * time.Second

// send posts an event with all of its attributes to a URL; empty is the broker, which
// is reached through the API server's service proxy.
func (o *options) send(ctx context.Context, target string, ce cloudevents.Event) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	client, address, err := o.broker(target)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(ce.Data()))
	if err != nil {
		return fmt.Errorf("cannot use broker %q: %w", target, err)
	}
	for name, value := range headers(ce) {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot reach the broker: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		return fmt.Errorf("%s answered %s: %s", address, resp.Status, bytes.TrimSpace(text))
	}
	return nil
}

// broker is how to reach a target.
func (o *options) broker(target string) (*http.Client, string, error) {
	if target != "" {
		u, err := url.Parse(target)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, "", fmt.Errorf("cannot send to %q: write a URL like http://127.0.0.1:8080/slipway-system/default", target)
		}
		return http.DefaultClient, target, nil
	}
	config, err := o.config()
	if err != nil {
		return nil, "", err
	}
	client, server, err := apiServer(config)
	return client, server + "/api/v1/namespaces/knative-eventing/services/http:broker-ingress:80/proxy/" + o.system + "/default", err
}

// apiServer is the API server as plain HTTP.
func apiServer(config *rest.Config) (*http.Client, string, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, "", fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, "", fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	return client, strings.TrimSuffix(server.String(), "/"), nil
}

// headers are an event in CloudEvents' binary mode.
func headers(ce cloudevents.Event) map[string]string {
	out := map[string]string{"Ce-Specversion": ce.SpecVersion(), "Ce-Id": ce.ID(), "Ce-Type": ce.Type(), "Ce-Source": ce.Source()}
	for name, value := range map[string]string{"Ce-Subject": ce.Subject(), "Ce-Dataschema": ce.DataSchema(), "Content-Type": ce.DataContentType()} {
		if value != "" {
			out[name] = encodeHeader(value)
		}
	}
	if !ce.Time().IsZero() {
		out["Ce-Time"] = ce.Time().Format(time.RFC3339Nano)
	}
	for name, value := range ce.Extensions() {
		out["Ce-"+name] = encodeHeader(fmt.Sprint(value))
	}
	if out["Content-Type"] == "" && len(ce.Data()) > 0 {
		out["Content-Type"] = cloudevents.ApplicationJSON
	}
	return out
}

// encodeHeader writes what a header cannot hold as CloudEvents' HTTP binding says.
func encodeHeader(value string) string {
	var out strings.Builder
	for i := range len(value) {
		if c := value[i]; c <= ' ' && c != ' ' || c > '~' || c == '"' || c == '%' {
			fmt.Fprintf(&out, "%%%02X", c)
			continue
		}
		out.WriteByte(value[i])
	}
	return out.String()
}

// errNothing is a list without anything to send.
var errNothing = errors.New("there is nothing to send")
