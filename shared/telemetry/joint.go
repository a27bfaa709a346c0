package telemetry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Joint serves the metrics of several functions of one process as one page. The
// label function tells them apart.
func Joint(all ...*Metrics) http.Handler {
	var registries prometheus.Gatherers
	for _, m := range all {
		registries = append(registries, m.registry)
	}
	return promhttp.HandlerFor(registries, promhttp.HandlerOpts{})
}
