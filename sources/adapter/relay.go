package adapter

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"time"
)

// Relay stands between the receive adapters of this process and a sink that wants to
// know who sends. A receive adapter would ask the cluster that it watches for a token,
// and a remote cluster's says nothing to the sink; so all of them send to a port of
// this machine, and the relay adds the token that the file holds. The file is read for
// each event: its token is renewed.
//
// It returns the URL to send to, until ctx is done; without a file that is the sink.
func Relay(ctx context.Context, sink, tokenFile string) (string, error) {
	if tokenFile == "" {
		return sink, nil
	}
	target, err := url.Parse(sink)
	if err != nil {
		return "", fmt.Errorf("cannot use sink %q: %w", sink, err)
	}
	if _, err := readToken(tokenFile); err != nil {
		return "", err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot listen for the events of this process: %w", err)
	}
	server := &http.Server{
		Handler: authorize(tokenFile, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL, r.Out.Host = target, target.Host
		}}),
		ReadHeaderTimeout: 5 * time.Second,
	}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return "http://" + listener.Addr().String(), nil
}

// authorize adds the token. Without one the answer is 503, so that the receive adapter
// tries again.
func authorize(tokenFile string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := readToken(tokenFile)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		r.Header.Set("Authorization", "Bearer "+token)
		next.ServeHTTP(w, r)
	})
}

func readToken(path string) (string, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // the manifest names the file
	if err != nil {
		return "", fmt.Errorf("cannot read the token for the sink (%s): %w", EnvTokenFile, err)
	}
	return strings.TrimSpace(string(raw)), nil
}
