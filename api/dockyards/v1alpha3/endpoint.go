package v1alpha3

import (
	"strconv"
	"strings"
)

// Valid tells whether the endpoint is known: a zero struct says nothing.
func (e ClusterAPIEndpoint) Valid() bool { return e.Host != "" && e.Port != 0 }

// URL is where the API server answers, an IPv6 address in brackets; empty for an
// endpoint that is not known.
func (e ClusterAPIEndpoint) URL() string {
	if !e.Valid() {
		return ""
	}
	host := e.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return "https://" + host + ":" + strconv.Itoa(int(e.Port))
}
