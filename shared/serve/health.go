package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"time"
)

// defaultHealth is where probes and metrics are served; events have a port of
// their own.
const defaultHealth = ":8081"

// off is how operators are told to serve no metrics.
const off = "0"

// Health serves /healthz, /readyz and /metrics beside the function's port.
type Health struct {
	servers   []*http.Server
	listeners []net.Listener
}

// StartHealth opens the listeners: HEALTH_LISTEN_ADDRESS, else :8081, and the
// addresses in HEALTH_PROBE_BIND_ADDRESS and METRICS_BIND_ADDRESS where they
// differ from it.
func StartHealth(ready func(context.Context) (bool, error), metrics http.Handler) (*Health, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if ok, err := ready(r.Context()); !ok || err != nil {
			http.Error(w, "not ready: the management cluster does not answer", http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	mux.Handle("/metrics", metrics)

	h := &Health{}
	for _, address := range healthAddresses() {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot serve probes and metrics on %q: set HEALTH_LISTEN_ADDRESS to a free address: %w", address, err), h.Stop(context.Background()))
		}
		server := &http.Server{Handler: mux, ReadHeaderTimeout: 2 * time.Second}
		h.servers = append(h.servers, server)
		h.listeners = append(h.listeners, listener)
		go func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				slog.Error("health listener ended", "error", err)
			}
		}()
	}
	return h, nil
}

func healthAddresses() []string {
	first := defaultHealth
	if address := os.Getenv("HEALTH_LISTEN_ADDRESS"); address != "" {
		first = address
	}
	addresses := []string{first}
	for _, name := range []string{"HEALTH_PROBE_BIND_ADDRESS", "METRICS_BIND_ADDRESS"} {
		address := os.Getenv(name)
		// Another address on the port that is served already is no other listener.
		if address == "" || address == off || slices.ContainsFunc(addresses, func(a string) bool { return port(a) == port(address) }) {
			continue
		}
		addresses = append(addresses, address)
	}
	return addresses
}

func port(address string) string {
	_, p, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return p
}

// Addresses lists where it listens.
func (h *Health) Addresses() []string {
	addresses := make([]string, 0, len(h.listeners))
	for _, listener := range h.listeners {
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses
}

// Stop closes the listeners.
func (h *Health) Stop(ctx context.Context) error {
	var errs []error
	for _, server := range h.servers {
		errs = append(errs, server.Shutdown(ctx))
	}
	return errors.Join(errs...)
}
