package adapter

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

const (
	// dialTimeout bounds the way to a host that does not answer at all.
	dialTimeout = 3 * time.Second
	// idleTimeout ends connections that nobody uses.
	idleTimeout = 90 * time.Second
)

// connect makes a client of a remote cluster whose connections end with ctx. It is
// none of client-go's, which are shared and kept for the life of the process: a
// cluster that goes, or gets other credentials, leaves nothing behind. There is no
// bound on a whole request, since a watch is one, but on the wait for an answer's
// beginning; and a connection that died is found by HTTP/2's pings. What a foreign
// cluster answers is bounded in size.
func connect(ctx context.Context, config *rest.Config, timeout time.Duration, foreign bool) (*http.Client, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: its certificates cannot be used", config.Host)
	}
	dialer := &net.Dialer{Timeout: min(dialTimeout, timeout), KeepAlive: 30 * time.Second}
	transport := utilnet.SetTransportDefaults(&http.Transport{
		TLSClientConfig: tls, DialContext: until(ctx, dialer.DialContext), Proxy: config.Proxy,
		TLSHandshakeTimeout: min(dialTimeout, timeout), ResponseHeaderTimeout: timeout, IdleConnTimeout: idleTimeout,
	})
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w", config.Host, err)
	}
	if foreign {
		wrapped = distrusting{wrapped}
	}
	return &http.Client{
		Transport: wrapped,
		// An API server does not redirect, and the credentials are for it alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

type dial func(ctx context.Context, network, address string) (net.Conn, error)

// until makes connections that are closed when ctx is done: discovery's requests
// cannot be cancelled in any other way.
func until(ctx context.Context, next dial) dial {
	return func(request context.Context, network, address string) (net.Conn, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		conn, err := next(request, network, address)
		if err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		return &bounded{Conn: conn, stop: stop}, nil
	}
}

type bounded struct {
	net.Conn
	stop func() bool
}

// Close implements net.Conn.
func (b *bounded) Close() error {
	b.stop()
	return b.Conn.Close()
}
