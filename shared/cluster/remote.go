package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

const (
	// dialTimeout bounds the way to a host that does not answer at all, so that
	// several dead clusters still fit into one call.
	dialTimeout = 3 * time.Second
	// idleTimeout ends connections that nobody uses.
	idleTimeout = 90 * time.Second
)

// newRemote connects to a target cluster. Its transport is its own, not one of
// client-go's, which are kept for the life of the process.
func newRemote(userAgent string, bounds bounds, config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.UserAgent, config.Timeout = -1, userAgent, cmp.Or(bounds.timeout, Timeout)
	config.WarningHandler = rest.NoWarnings{} // a server's words must not stand in our log
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: its certificates cannot be used", config.Host)
	}
	dialer := &net.Dialer{Timeout: min(dialTimeout, config.Timeout), KeepAlive: 30 * time.Second}
	transport := utilnet.SetTransportDefaults(&http.Transport{
		TLSClientConfig: tls, DialContext: dialer.DialContext, TLSHandshakeTimeout: min(dialTimeout, config.Timeout),
		IdleConnTimeout: idleTimeout, Proxy: config.Proxy,
	})
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w", config.Host, err)
	}
	remembering := &remembering{next: bounds.around(wrapped), distrust: bounds.answer > 0}
	client, err := newClient("", config, &http.Client{
		Transport: remembering, Timeout: config.Timeout,
		// An API server does not redirect, and the credentials are for it alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	if err != nil {
		return nil, err
	}
	client.server = shown(config.Host)
	client.secrets = []string{config.BearerToken, config.Password, string(config.KeyData)}
	client.idle = transport.CloseIdleConnections
	return client, nil
}

// shown is an API server's address without anything else.
func shown(host string) string {
	u, err := url.Parse(host)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Server is the address of the API server; empty for the management cluster.
func (c *Client) Server() string { return c.server }

// Secrets are the credentials behind the connection, for scrubbing them from
// texts.
func (c *Client) Secrets() []string { return c.secrets }

func (c *Client) close() {
	if c.idle != nil {
		c.idle()
	}
}

// Connect makes a cluster known to the set, by the connection of the process
// to it if there is one. An error says what is wrong with the kubeconfig.
func (s *Set) Connect(name string, kubeconfig []byte) error {
	if name == Management {
		return errors.New("cannot connect to a cluster without a name")
	}
	management, err := s.Client(Management)
	if err != nil {
		return err
	}
	client, err := clients.client(kubeconfig, management.userAgent, bounds{timeout: s.RemoteTimeout, answer: s.RemoteAnswer})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[name] = client
	return nil
}

// remembering is the transport of one remote connection. Within one call, a
// cluster that did not answer is not asked again.
type remembering struct {
	next http.RoundTripper
	// distrust lets the first request of a call go ahead alone: a cluster that does
	// not answer costs that one, however many wait for it.
	distrust bool
}

// RoundTrip sends a request, unless an earlier one of the same call found the
// cluster unreachable.
func (t *remembering) RoundTrip(req *http.Request) (*http.Response, error) {
	memory, _ := req.Context().Value(memoryKey{}).(*memory)
	if memory == nil {
		return t.next.RoundTrip(req)
	}
	if t.distrust {
		landed, err := memory.takeOff(req.Context(), t)
		if err != nil {
			if req.Body != nil {
				req.Body.Close()
			}
			return nil, err
		}
		defer landed()
	}
	if err := memory.recall(t); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	bounded, end := memory.bound(req)
	resp, err := t.next.RoundTrip(bounded)
	memory.note(req.Context(), t, resp, err)
	if err != nil {
		end()
		return resp, err
	}
	resp.Body = ending{ReadCloser: resp.Body, end: end}
	return resp, nil
}

// CloseIdleConnections lets http.Client reach the transport below.
func (t *remembering) CloseIdleConnections() {
	if below, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		below.CloseIdleConnections()
	}
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *remembering) WrappedRoundTripper() http.RoundTripper { return t.next }

// WithMemory gives a call a memory of the clusters that it found unreachable:
// many objects on a dead cluster cost the timeout of one.
func WithMemory(ctx context.Context) context.Context {
	return context.WithValue(ctx, memoryKey{}, &memory{call: ctx, dead: map[*remembering]error{}, first: map[*remembering]chan struct{}{}})
}
