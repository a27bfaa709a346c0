// Package stack puts Knative Eventing together in one process.
//
// What is Knative's own: the reconcilers of Broker, Trigger, EventPolicy,
// ApiServerSource and PingSource; the broker's ingress and filter; the receive
// adapters of both sources. What stands in for something: the channel (package
// channel), the kubelet that would run receive adapters (package kubelet), the
// activator that would run functions (package function), cluster DNS (package
// names), and the installation itself (package fixture). There is no webhook:
// see package manifest.
//
// All of it listens on one port of the loopback interface, told apart by the
// Host header:
//
//	broker-ingress.knative-eventing.svc…, or an address   the ingress: /<namespace>/<broker>
//	broker-filter.knative-eventing.svc…                   the filter
//	<channel>-kn-channel.<namespace>.svc…                 a channel
//	<name>.<namespace>.svc…                               a function
//
// At an address there are also /functions/<namespace>/<name>/…, for processes
// that cannot resolve a function's name, and /healthz.
package stack
