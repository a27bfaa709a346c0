package main

import (
	"context"
	"net/http"
	"net/http/httputil"
	"time"
)

type targetKey struct{}

// newProxy forwards each request to where the table says.
func newProxy(routes *table) http.Handler {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:errcheck,forcetypeassert // documented to be one
	transport.MaxIdleConnsPerHost = 100
	// No wait for an answer ends here: a function that starts from zero takes its time.
	transport.ResponseHeaderTimeout = 0
	transport.IdleConnTimeout = 30 * time.Second
	forward := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			to, _ := r.In.Context().Value(targetKey{}).(target)
			r.Out.URL.Scheme, r.Out.URL.Host = "http", to.address
			// Whom it is for is in the host, not in the address.
			r.Out.Host = r.In.Host
			if to.host != "" {
				r.Out.Host = to.host
			}
			for name, value := range to.headers {
				r.Out.Header.Set(name, value)
			}
			r.SetXForwarded()
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, found := routes.find(r)
		if !found {
			if r.URL.Path == "/healthz" {
				w.WriteHeader(http.StatusOK)
				return
			}
			http.NotFound(w, r)
			return
		}
		forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), targetKey{}, to)))
	})
}
