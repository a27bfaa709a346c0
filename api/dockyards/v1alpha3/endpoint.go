package v1alpha3

import (
	"net"
	"strconv"
)

// Valid tells whether the endpoint is known: a zero struct says nothing.
func (e ClusterAPIEndpoint) Valid() bool { return e.Host != "" && e.Port != 0 }

// URL is where the API server answers, an IPv6 address in brackets; empty for an
// endpoint that is not known.
func (e ClusterAPIEndpoint) URL() string {
	if !e.Valid() {
		return ""
	}
	return "https://" + net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
}
