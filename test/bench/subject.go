package main

import (
	"context"
	"os"
	"path/filepath"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/crds"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/deploy/local/stages"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/subjects"
)

// subject is what the handler and a raw client do the same for.
type subject struct {
	*subjects.Subject
	host  *reconcile.Host
	place *place
	// pattern are the UIDs of the one that was recorded.
	pattern []string
}

// place is an API server that has all definitions and nothing that acts.
type place struct {
	root   string
	kube   *kube.Cluster
	client dynamic.Interface
	// proxy leads to the API server and keeps what is asked.
	proxy *proxy
}

// settings are what the functions are told: the Gateway of the sample.
var settings = map[string]string{
	"GATEWAY_NAME": "public", "GATEWAY_NAMESPACE": "dockyards-system", "DATA_VOLUME_STORAGE_CLASS_NAME": "standard", "LOG_LEVEL": "error",
}

// newPlace starts the API server.
func newPlace(ctx context.Context, root, dir string) (*place, error) {
	definitions, err := crds.Load(ctx, crds.KubeVirt, crds.CDI, crds.Multus, crds.ClusterAPI, crds.CAPK, crds.TalosBootstrap, crds.TalosControlPlane,
		crds.GatewayAPI, crds.FluxKustomize, crds.FluxSource, crds.FluxHelm, crds.OpenShiftMachineConfig, crds.PrometheusRules, crds.MetalLB, crds.UIPlugins, crds.AAQ)
	if err != nil {
		return nil, err
	}
	var names []string
	own, err := kube.ReadFiles(filepath.Join(root, "api/vitistack/crds"), filepath.Join(root, "api/dockyards/crds"), filepath.Join(root, "test/baseline/crds"))
	if err != nil {
		return nil, err
	}
	definitions = append(definitions, own...)
	for _, definition := range definitions {
		names = append(names, definition.GetName())
	}
	staged, err := stages.Objects()
	if err != nil {
		return nil, err
	}
	sample, err := common(root)
	if err != nil {
		return nil, err
	}
	p := &place{root: root}
	p.kube, err = kube.Start(ctx, kube.Options{
		Binary: filepath.Join(root, build.DefaultBin, "kube"), Dir: dir,
		Install: func(ctx context.Context, c *kube.Cluster) error {
			if err := kube.Apply(ctx, c.Config, definitions...); err != nil {
				return err
			}
			if err := kube.WaitEstablished(ctx, c.Config, names...); err != nil {
				return err
			}
			return kube.Apply(ctx, c.Config, append(staged, sample...)...)
		},
	})
	if err != nil {
		return nil, err
	}
	if p.client, err = dynamic.NewForConfig(p.kube.Config); err != nil {
		return p, err
	}
	if p.proxy, err = newProxy(p.kube.Config); err != nil {
		return p, err
	}
	return p, platformStatus(ctx, p.kube, p.client, root)
}

func (p *place) stop() {
	if p.proxy != nil {
		p.proxy.server.Close()
	}
	p.kube.Stop()
}

// subject makes the subject of a function on an API server.
func (p *place) subject(ctx context.Context, name string) (*subject, error) {
	described, err := subjects.Read(name)
	if err != nil {
		return nil, err
	}
	ground, err := described.Ground(p.root)
	if err != nil {
		return nil, err
	}
	if _, err := subjects.Put(ctx, p.client, ground...); err != nil {
		return nil, err
	}
	x := &subject{Subject: described, place: p}
	return x, x.serve()
}

// serve makes the function's host; what it asks goes through the proxy's recorder.
func (x *subject) serve() error {
	for name, value := range settings {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	x.host = slipway.Host(x.Function)
	return x.host.Connect(x.place.proxy.recorded)
}

// prepare makes one, by its name, and returns the UIDs of all it consists of.
func (x *subject) prepare(ctx context.Context, name string) ([]string, error) {
	kubeconfig, err := x.place.kube.AdminKubeconfig()
	if name == pattern {
		kubeconfig, err = x.place.proxy.kubeconfig()
	}
	if err != nil {
		return nil, err
	}
	made, err := subjects.Put(ctx, x.place.client, x.Objects(name, string(kubeconfig))...)
	if err != nil {
		return nil, err
	}
	var uids []string
	for _, obj := range made {
		uids = append(uids, string(obj.GetUID()))
	}
	return uids, nil
}

// handle lets the function take care of one, once.
func (x *subject) handle(ctx context.Context, name string) error {
	return handle(ctx, x.host, x.event(name))
}

func (x *subject) event(name string) cloudevents.Event {
	key := x.About(name)
	return added(key.APIVersion, key.Kind, key.Namespace, key.Name)
}
