package build

import "strings"

// knative is the Go module of what only the real node runs (test/node).
const knative = "test/node/knative"

// cluster are the programs of the real node besides kube.
var cluster = nodeTargets()

func nodeTargets() []Target {
	targets := []Target{
		{Name: "pause", Dir: ".", Package: "./test/node/pause"},
		{Name: "node-coredns", Dir: knative, Package: "./coredns", Heavy: true, Hint: "CoreDNS from source: 1 to 3 minutes the first time"},
		{Name: "node-ingress", Dir: knative, Package: "./ingress", Heavy: true},
		{Name: "node-policies", Dir: knative, Package: "./policies", Heavy: true},
	}
	for _, p := range KnativePrograms {
		targets = append(targets, Target{
			Name: KnativeTarget(p), Dir: knative, Package: p, Heavy: true,
			Hint: "Knative from source: 4 minutes for all of it the first time",
		})
	}
	return targets
}

// KnativePrograms are the main packages of Knative that the real node runs as images.
var KnativePrograms = []string{
	"knative.dev/serving/cmd/controller",
	"knative.dev/serving/cmd/webhook",
	"knative.dev/serving/cmd/autoscaler",
	"knative.dev/serving/cmd/activator",
	"knative.dev/serving/cmd/queue",
	"knative.dev/eventing/cmd/controller",
	"knative.dev/eventing/cmd/webhook",
	"knative.dev/eventing/cmd/mtchannel_broker",
	"knative.dev/eventing/cmd/broker/filter",
	"knative.dev/eventing/cmd/broker/ingress",
	"knative.dev/eventing/cmd/in_memory/channel_controller",
	"knative.dev/eventing/cmd/in_memory/channel_dispatcher",
	"knative.dev/eventing/cmd/apiserver_receive_adapter",
	"knative.dev/eventing/cmd/auth_proxy",
	"knative.dev/eventing/cmd/mtping",
}

// KnativeTarget is the name of the program that a main package of Knative becomes.
func KnativeTarget(program string) string {
	name := strings.Replace(strings.TrimPrefix(program, "knative.dev/"), "/cmd/", "/", 1)
	return "knative-" + strings.ReplaceAll(name, "/", "-")
}

// ClusterPrograms are the names of all programs that the real node needs besides kube
// and Slipway's own.
func ClusterPrograms() []string {
	names := make([]string, 0, len(cluster))
	for _, t := range cluster {
		names = append(names, t.Name)
	}
	return names
}
