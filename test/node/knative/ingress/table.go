package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"knative.dev/networking/pkg/apis/networking/v1alpha1"
)

// table says where the requests of each host go. It is replaced as a whole.
type table struct {
	hosts atomic.Pointer[map[string][]v1alpha1.HTTPIngressPath]
}

// target is where one request goes.
type target struct {
	address string
	// host replaces the request's Host header, unless it is empty.
	host    string
	headers map[string]string
}

// replace computes the table from all Ingresses. Where two claim a host, the first by
// namespace and name has it.
func (t *table) replace(ingresses map[string]*v1alpha1.Ingress) {
	hosts := map[string][]v1alpha1.HTTPIngressPath{}
	for _, key := range slices.Sorted(maps.Keys(ingresses)) {
		for _, rule := range ingresses[key].Spec.Rules {
			if rule.HTTP == nil {
				continue
			}
			for _, host := range rule.Hosts {
				if _, taken := hosts[host]; !taken {
					hosts[host] = rule.HTTP.Paths
				}
			}
		}
	}
	t.hosts.Store(&hosts)
}

// find returns where the request goes, false if nobody serves its host and path.
func (t *table) find(r *http.Request) (target, bool) {
	hosts := t.hosts.Load()
	if hosts == nil {
		return target{}, false
	}
	host := r.Host
	if name, _, ok := strings.Cut(host, ":"); ok {
		host = name
	}
	for _, path := range (*hosts)[host] {
		if strings.HasPrefix(r.URL.Path, path.Path) && matches(r.Header, path.Headers) {
			return choose(path, rand.IntN(100)) //nolint:gosec // a fair share is no secret
		}
	}
	return target{}, false
}

func matches(header http.Header, wanted map[string]v1alpha1.HeaderMatch) bool {
	for name, value := range wanted {
		if header.Get(name) != value.Exact {
			return false
		}
	}
	return true
}

// choose takes one of the path's splits; dice is from 0 to 99.
func choose(path v1alpha1.HTTPIngressPath, dice int) (target, bool) {
	for _, split := range path.Splits {
		share := split.Percent
		if share == 0 && len(path.Splits) == 1 {
			share = 100
		}
		if dice -= share; dice >= 0 {
			continue
		}
		headers := maps.Clone(path.AppendHeaders)
		if headers == nil {
			headers = map[string]string{}
		}
		maps.Copy(headers, split.AppendHeaders)
		address := fmt.Sprintf("%s.%s.svc.cluster.local:%s", split.ServiceName, split.ServiceNamespace, split.ServicePort.String())
		return target{address: address, host: path.RewriteHost, headers: headers}, true
	}
	return target{}, false
}
