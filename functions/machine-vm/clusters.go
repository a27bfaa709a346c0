package machinevm

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/decide"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
)

// place chooses the cluster: what the Machine and the environment say tells
// which clusters have to be looked at, and what is seen there decides.
func (x *reading) place(ctx context.Context) {
	configs := x.list(ctx, decide.Management, kinds.KubevirtConfigs, "", "")
	served := decide.Served{Configs: configs, KubevirtConfigs: true}
	if served.VirtualMachines = x.serves(ctx, decide.Management, kinds.VirtualMachines); !served.VirtualMachines && len(configs) == 0 {
		served.KubevirtConfigs = x.serves(ctx, decide.Management, kinds.KubevirtConfigs)
	}
	wish := decide.Wishes(x.machine, x.in.Settings, served)
	sights := x.look(ctx, wish, configs)
	if x.err != nil {
		return
	}
	x.in.Target = decide.Place(x.machine, x.in.Settings, wish, sights)
	if target := x.in.Target; target.Cluster != decide.Management && target.Problem == nil && target.Unreachable == nil && !x.deleting() {
		x.aheadTarget(ctx, target.Cluster)
	}
}

// look sees what the wish asks of the clusters: of all at once, so that the
// slowest decides how long it takes.
func (x *reading) look(ctx context.Context, wish decide.Wish, configs []unstructured.Unstructured) []decide.Sight {
	names := wish.Clusters()
	if len(names) == 0 {
		return nil
	}
	here, err := x.r.ClusterUID(ctx, decide.Management)
	x.note(err)
	var secrets []plan.Need
	for _, name := range names {
		if config := decide.ConfigNamed(name, configs, x.in.Settings); config != nil {
			if ns, secret := decide.KubeconfigSecret(config, x.in.Settings); secret != "" {
				secrets = append(secrets, plan.Need{Resource: kind.Secrets, Namespace: ns, Name: secret})
			}
		}
	}
	x.r.Ahead(ctx, secrets...)
	sights := make([]decide.Sight, len(names))
	for i, name := range names {
		sights[i] = decide.Sight{Cluster: name}
		if config := decide.ConfigNamed(name, configs, x.in.Settings); config != nil && x.err == nil {
			sights[i].Connection = x.connect(ctx, name, config)
		}
		if sights[i].Connection.Refused == "" && x.err == nil {
			x.r.AheadClusterUID(ctx, name)
			if wish.Searches(name) {
				x.r.Ahead(ctx, x.marked(name)...)
			}
		}
	}
	for i := range sights {
		if s := &sights[i]; s.Connection.Refused == "" && x.err == nil {
			x.see(ctx, s, wish, here)
		}
	}
	return sights
}

func (x *reading) connect(ctx context.Context, name string, config *unstructured.Unstructured) plan.Connection {
	ns, secret := decide.KubeconfigSecret(config, x.in.Settings)
	connection, err := x.r.Connect(ctx, name, ns, secret, decide.KubeconfigKey)
	x.note(err)
	return connection
}

// marked are the reads that show whether a cluster holds anything of the
// Machine.
func (x *reading) marked(cluster string) []plan.Need {
	var needs []plan.Need
	for _, candidate := range decide.Candidates(x.machine, x.in.Settings) {
		needs = append(needs, plan.Need{Cluster: cluster, Resource: kinds.VirtualMachines, Namespace: x.machine.GetNamespace(), Name: candidate})
	}
	keys := []string{v1alpha1.LabelSourceMachine}
	if x.deleting() {
		keys = append(keys, v1alpha1.LabelMachine, v1alpha1.LabelLegacySourceMachine)
	}
	for _, key := range keys {
		needs = append(needs, labelledClaims(x.machine, cluster, key))
	}
	return needs
}

// see fills in what one cluster shows.
func (x *reading) see(ctx context.Context, s *decide.Sight, wish decide.Wish, here string) {
	var err error
	s.UID, err = x.r.ClusterUID(ctx, s.Cluster)
	if x.sorted(s, err) {
		s.Same = s.Cluster == decide.Management || (s.UID != "" && s.UID == here)
		s.KubeVirt, err = x.r.Serves(ctx, s.Cluster, kinds.VirtualMachines)
		x.sorted(s, err)
	}
	if !wish.Searches(s.Cluster) {
		return
	}
	for _, need := range x.marked(s.Cluster) {
		answer := x.r.Answer(ctx, need)
		if answer.Fault != nil && !x.sorted(s, answer.Fault) {
			return
		}
		if answer.Object != nil {
			s.VMs = add(s.VMs, answer.Object)
		}
		for i := range answer.Items {
			s.Claims = add(s.Claims, &answer.Items[i])
		}
	}
}

// sorted puts what went wrong with a cluster where the placement looks for it,
// and tells whether to go on.
func (x *reading) sorted(s *decide.Sight, err error) bool {
	var f *fault.Fault
	switch {
	case err == nil:
		return true
	case !errors.As(err, &f):
		x.err = err
		return false
	case f.Class == fault.Refused || f.Class == fault.NotServed:
		s.Faults = append(s.Faults, *f)
		return true
	case f.Cluster == decide.Management:
		x.err = err
		return false
	}
	s.Unreachable = f
	return false
}

// targets are the target clusters that can be connected to, by name.
func (g gatherer) targets(ctx context.Context, r *read.Reader) ([]string, error) {
	configs, err := r.List(ctx, decide.Management, kinds.KubevirtConfigs, "", "")
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range configs {
		name := configs[i].GetName()
		if config := decide.ConfigNamed(name, configs, g.settings); config == nil || config.GetNamespace() != configs[i].GetNamespace() {
			continue
		}
		ns, secret := decide.KubeconfigSecret(&configs[i], g.settings)
		connection, err := r.Connect(ctx, name, ns, secret, decide.KubeconfigKey)
		if err != nil {
			return nil, err
		}
		if connection.Refused == "" {
			names = append(names, name)
		}
	}
	return names, nil
}
