package decide

import (
	"bytes"
	"fmt"
	"net/netip"
	"reflect"

	"gopkg.in/yaml.v3"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
)

// The Talos documents. Order and spelling of the keys are a contract: a control
// plane is replaced when one byte differs from what is stored.

const talosAPIVersion = "v1alpha1"

// controlPlaneDocument is what only control planes boot with.
type controlPlaneDocument struct {
	Version string              `yaml:"version"`
	Cluster controlPlaneCluster `yaml:"cluster"`
}

type controlPlaneCluster struct {
	Network   *networkPlugin `yaml:"network,omitempty"`
	APIServer apiServer      `yaml:"apiServer"`
	Etcd      *etcd          `yaml:"etcd,omitempty"`
}

type networkPlugin struct {
	CNI struct {
		Name string `yaml:"name"`
	} `yaml:"cni"`
}

type apiServer struct {
	CertSANs []string `yaml:"certSANs"`
}

type etcd struct {
	AdvertisedSubnets []string `yaml:"advertisedSubnets"`
	ListenSubnets     []string `yaml:"listenSubnets"`
}

// sharedDocument is what all machines boot with.
type sharedDocument struct {
	Version string         `yaml:"version"`
	Machine *sharedMachine `yaml:"machine,omitempty"`
	Cluster *sharedCluster `yaml:"cluster,omitempty"`
}

type sharedMachine struct {
	Kubelet *kubelet `yaml:"kubelet,omitempty"`
	Env     *proxies `yaml:"env,omitempty"`
}

type kubelet struct {
	NodeIP struct {
		ValidSubnets []string `yaml:"validSubnets"`
	} `yaml:"nodeIP"`
}

// proxies are environment variables of a machine. One that is set to nothing is
// another thing than one that is not set.
type proxies struct {
	HTTP  *string `yaml:"http_proxy,omitempty"`
	HTTPS *string `yaml:"https_proxy,omitempty"`
	No    *string `yaml:"no_proxy,omitempty"`
}

type sharedCluster struct {
	Network struct {
		PodSubnets     []string `yaml:"podSubnets,omitempty"`
		ServiceSubnets []string `yaml:"serviceSubnets,omitempty"`
	} `yaml:"network"`
}

// timeDocument names the servers that machines get the time from.
type timeDocument struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	NTP        struct {
		Servers []string `yaml:"servers"`
	} `yaml:"ntp"`
}

const timeKind = "TimeSyncConfig"

// document is one Talos document: its text, and what the text says.
type document struct {
	text string
	data any
}

// render writes a document.
func render(content any) (document, error) {
	raw, err := yaml.Marshal(content)
	if err != nil {
		return document{}, fmt.Errorf("cannot write a Talos document: %w", err)
	}
	data, ok := parse(string(raw))
	if !ok {
		return document{}, fmt.Errorf("cannot read a Talos document that was just written")
	}
	return document{text: string(raw), data: data}, nil
}

// parse reads the one document in a text. Not ok: there is none, or another one
// behind it.
func parse(text string) (any, bool) {
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	var data, more any
	if decoder.Decode(&data) != nil || decoder.Decode(&more) == nil {
		return nil, false
	}
	return data, true
}

// carried are the texts of documents, each as it is stored already if what is stored
// says the same.
func carried(documents []document, stored []string) []string {
	texts := make([]string, 0, len(documents))
	for _, doc := range documents {
		text := doc.text
		for _, have := range stored {
			if data, ok := parse(have); ok && reflect.DeepEqual(data, doc.data) {
				text = have
				break
			}
		}
		texts = append(texts, text)
	}
	return texts
}

// talos is everything that the machines of a pool are told about Talos.
type talos struct {
	generateType, version string
	documents             []document
}

// wantTalos says what the pool's machines shall boot with, or notes why that cannot
// be said.
func (v *view) wantTalos() {
	if !v.in.Config.Found || (v.controlPlane() && !v.cluster.Status.APIEndpoint.Valid()) || v.badSubnet() != "" {
		return // said where the conditions are put in order
	}
	want := &talos{generateType: "worker", version: v.in.Settings.TalosVersion}
	var contents []any
	if v.controlPlane() {
		want.generateType = "controlplane"
		contents = append(contents, v.controlPlaneDocument())
	}
	kept := v.keptEffects()
	if shared := v.sharedDocument(kept); shared.Machine != nil || shared.Cluster != nil {
		contents = append(contents, shared)
	}
	if len(kept.servers) > 0 {
		document := timeDocument{APIVersion: talosAPIVersion, Kind: timeKind}
		document.NTP.Servers = kept.servers
		contents = append(contents, document)
	}
	for _, content := range contents {
		doc, err := render(content)
		if err != nil {
			v.config.add(problem{reason: v1alpha3.ReasonErrorReconciling, message: err.Error(), terminal: true})
			return
		}
		want.documents = append(want.documents, doc)
	}
	v.talos = want
}

func (v *view) controlPlaneDocument() controlPlaneDocument {
	doc := controlPlaneDocument{Version: talosAPIVersion}
	if v.cluster.Spec.NoDefaultNetworkPlugin {
		doc.Cluster.Network = &networkPlugin{}
		doc.Cluster.Network.CNI.Name = "none"
	}
	doc.Cluster.APIServer.CertSANs = []string{v.cluster.Status.APIEndpoint.Host}
	if subnets := v.in.Settings.NodeSubnets; len(subnets) > 0 {
		doc.Cluster.Etcd = &etcd{AdvertisedSubnets: subnets, ListenSubnets: subnets}
	}
	return doc
}

func (v *view) sharedDocument(kept effects) sharedDocument {
	doc := sharedDocument{Version: talosAPIVersion}
	machine := sharedMachine{}
	if subnets := v.in.Settings.NodeSubnets; len(subnets) > 0 {
		machine.Kubelet = &kubelet{}
		machine.Kubelet.NodeIP.ValidSubnets = subnets
	}
	if kept.env != (proxies{}) {
		machine.Env = &kept.env
	}
	if machine != (sharedMachine{}) {
		doc.Machine = &machine
	}
	spec := v.cluster.Spec
	if len(spec.PodSubnets) > 0 || len(spec.ServiceSubnets) > 0 {
		doc.Cluster = &sharedCluster{}
		doc.Cluster.Network.PodSubnets, doc.Cluster.Network.ServiceSubnets = spec.PodSubnets, spec.ServiceSubnets
	}
	return doc
}

// badSubnet names the first field of the Cluster that holds no subnet; empty if all
// do.
func (v *view) badSubnet() string {
	for _, list := range []struct {
		field   string
		subnets []string
	}{{"podSubnets", v.cluster.Spec.PodSubnets}, {"serviceSubnets", v.cluster.Spec.ServiceSubnets}} {
		for i, subnet := range list.subnets {
			if _, err := netip.ParsePrefix(subnet); err != nil {
				return fmt.Sprintf("spec.%s[%d]", list.field, i)
			}
		}
	}
	return ""
}
