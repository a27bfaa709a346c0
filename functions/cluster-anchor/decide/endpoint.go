package decide

import (
	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
)

// apiPort is the port of every API endpoint.
const apiPort = 6443

// Announcements of a host that changes, which rolls the control plane. They name
// the input without its value.
const (
	moved     = "config map key " + dockyards.KeyExternalURL + " has changed: the API endpoint's host follows, and the control plane rolls"
	corrected = "the API endpoint's host was no DNS name and is corrected: the control plane may roll"
	kept      = "the API endpoint's host of before is kept: config map key " + dockyards.KeyExternalURL + " gives another one now"
)

// endpoint is what was decided about the host in force.
type endpoint struct {
	verdict
	// keep leaves the endpoint in the status as it is.
	keep bool
	// host is the host in force, for status and route; empty for none. With keep,
	// it is for the route alone.
	host string
	// record is the hostname that the host is recorded with; empty leaves the
	// record as it is.
	record string
	// drop takes the route away.
	drop bool
	// announce is what people are told of a host that changes.
	announce string
	// withRoute lets the status change only once the route leads to the host.
	withRoute bool
}

// decideEndpoint finds the host in force.
func (v *view) decideEndpoint() {
	have, port := stored(v.in.Cluster)
	usable := ""
	if validHost(have) && port != 0 {
		usable = have
	}
	keep := endpoint{keep: true, host: usable}
	stay := func(is verdict) {
		keep.verdict = is
		v.endpoint = keep
	}
	for _, f := range []verdict{v.unread(v.in.Faults.Gateway), v.unread(v.in.Faults.Route), v.unread(v.in.Faults.Clusters)} {
		if f.status != "" {
			keep.host = ""
			stay(f)
			return
		}
	}
	if v.gateway() == nil {
		keep.host = ""
		stay(v.awaitGateway())
		return
	}
	if rival := v.rival(); rival != nil {
		v.endpoint = endpoint{drop: true, verdict: wrong(v1alpha3.ReasonHostConflict,
			"Cluster "+quote(rival.GetNamespace()+"/"+rival.GetName())+" is older and has the same host: choose another name")}
		return
	}
	hostname, err := v.in.Config.Hostname()
	if err != nil {
		stay(wrong(v1alpha3.ReasonInvalidHostname, err.Error()))
		return
	}
	if hostname == "" {
		stay(waiting(v1alpha3.ReasonWaitingForListenerHostname, v.noHostname()))
		return
	}
	wanted, err := host(v.namespace, v.name, hostname)
	if err != nil {
		stay(wrong(v1alpha3.ReasonInvalidHostname, err.Error()))
		return
	}
	v.endpoint = v.inForce(have, usable, wanted, hostname)
}

// inForce chooses between the host in the status, the one that the route leads to
// and the one that is wanted.
func (v *view) inForce(have, usable, wanted, hostname string) endpoint {
	settled := done(v1alpha3.ReasonReconciled, "")
	recorded, leads := v.recorded()
	switch {
	case usable == "" && have != "" && !validHost(have):
		return endpoint{host: wanted, record: hostname, announce: corrected, verdict: settled}
	case usable == "", usable == wanted:
		return endpoint{host: wanted, record: hostname, verdict: settled}
	case recorded == hostname && leads == wanted:
		// A move whose status was not written: the rest of it.
		return endpoint{host: wanted, record: hostname, announce: moved, verdict: settled}
	case recorded == "", recorded == hostname:
		return endpoint{host: usable, record: hostname, verdict: done(v1alpha3.ReasonReconciled, kept)}
	case v.held():
		held := endpoint{keep: true, host: usable, verdict: waiting(v1alpha3.ReasonRolloutHeld,
			"config map key "+dockyards.KeyExternalURL+" has changed: the host stays while annotation "+v1alpha3.AnnotationHoldRollouts+" is set")}
		if before, err := host(v.namespace, v.name, recorded); err == nil && leads == before {
			held.keep, held.host, held.announce = false, before, moved
		}
		return held
	}
	return endpoint{host: wanted, record: hostname, announce: moved, withRoute: true, verdict: settled}
}

// noHostname says why there is no hostname.
func (v *view) noHostname() string {
	if !v.in.Config.Found {
		s := v.in.Settings
		return "config map " + quote(s.ConfigMapNamespace+"/"+s.ConfigMapName) + " does not exist"
	}
	return "config map key " + dockyards.KeyExternalURL + " is absent or empty"
}
