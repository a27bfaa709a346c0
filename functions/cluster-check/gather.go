package clustercheck

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/cluster-check/decide"
	"github.com/slipway-dev/slipway/functions/cluster-check/kinds"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
)

// gatherer reads what one decision needs.
type gatherer struct{ settings decide.Settings }

// gather reads the KubevirtConfig's cluster and the one that it is compared
// with, side by side: together they take no longer than the slower of the two.
func (g gatherer) gather(ctx context.Context, r *read.Reader, root *unstructured.Unstructured) (decide.Input, error) {
	in := decide.Input{Settings: g.settings, Config: root}
	if !decide.Counts(root, g.settings) {
		return in, nil
	}
	configs, err := r.List(ctx, decide.Management, kinds.KubevirtConfigs, "", "")
	if err != nil {
		return in, err
	}
	yardstick := decide.YardstickFor(root.GetName(), configs, g.settings)
	g.aheadSecrets(ctx, r, root, yardstick)
	r.Ahead(ctx, definitions()...)

	var other *decide.Sight
	if yardstick != nil {
		if other, err = g.connect(ctx, r, yardstick); err != nil {
			return in, err
		}
		aheadSight(ctx, r, other)
	}
	own, err := g.connect(ctx, r, root)
	if err != nil {
		return in, err
	}
	aheadSight(ctx, r, own)
	if in.Definitions, err = define(ctx, r); err != nil {
		return in, err
	}
	if other != nil {
		if err := see(ctx, r, other); err != nil {
			return in, err
		}
	}
	in.Yardstick = other
	err = see(ctx, r, own)
	in.Sight = *own
	return in, err
}

func (g gatherer) aheadSecrets(ctx context.Context, r *read.Reader, configs ...*unstructured.Unstructured) {
	for _, config := range configs {
		if config == nil {
			continue
		}
		if ns, name := decide.KubeconfigSecret(config, g.settings); name != "" {
			r.Ahead(ctx, plan.Need{Resource: kind.Secrets, Namespace: ns, Name: name})
		}
	}
}

// connect makes a KubevirtConfig's cluster known to the reader.
func (g gatherer) connect(ctx context.Context, r *read.Reader, config *unstructured.Unstructured) (*decide.Sight, error) {
	ns, name := decide.KubeconfigSecret(config, g.settings)
	connection, err := r.Connect(ctx, config.GetName(), ns, name, decide.KubeconfigKey)
	if err != nil {
		return nil, err
	}
	return &decide.Sight{Cluster: config.GetName(), Connection: connection}, nil
}

// definitions are the reads of the management cluster's own definitions.
func definitions() []plan.Need {
	var needs []plan.Need
	for _, res := range decide.Expected() {
		needs = append(needs, plan.Need{Resource: kind.CRDs, Name: res.String()})
	}
	return needs
}

// define reads the management cluster's own definitions.
func define(ctx context.Context, r *read.Reader) (decide.Definitions, error) {
	found := decide.Definitions{Found: map[string]*unstructured.Unstructured{}}
	for _, need := range definitions() {
		answer := r.Answer(ctx, need)
		switch {
		case answer.Fault != nil && answer.Fault.Class == fault.Refused:
			found.Refused = answer.Fault
		case answer.Fault != nil:
			return found, answer.Fault
		case answer.Object != nil:
			found.Found[need.Name] = answer.Object
		}
	}
	return found, nil
}

// what is read of a cluster.
func namespaces(cluster string) plan.Need {
	return plan.Need{Cluster: cluster, Resource: kind.Namespaces, Limit: 1}
}

func kubeVirts(cluster string) plan.Need {
	return plan.Need{Cluster: cluster, Resource: kinds.KubeVirts}
}

func definition(cluster string, res kind.Resource) plan.Need {
	return plan.Need{Cluster: cluster, Resource: kinds.Definitions, Name: res.String()}
}

// aheadSight starts all that see will ask a cluster for.
func aheadSight(ctx context.Context, r *read.Reader, s *decide.Sight) {
	if s.Connection.Refused != "" {
		return
	}
	needs := []plan.Need{namespaces(s.Cluster), kubeVirts(s.Cluster)}
	for _, res := range decide.Compared() {
		needs = append(needs, definition(s.Cluster, res))
	}
	r.Ahead(ctx, needs...)
}

// see fills in what a cluster shows. An error is one of the management cluster.
func see(ctx context.Context, r *read.Reader, s *decide.Sight) error {
	if s.Connection.Refused != "" {
		return nil
	}
	answer := r.Answer(ctx, namespaces(s.Cluster))
	if err := sort(s, answer.Fault, &s.NamespacesRefused); err != nil {
		return err
	}
	answer = r.Answer(ctx, kubeVirts(s.Cluster))
	if err := sort(s, answer.Fault, &s.KubeVirtsRefused); err != nil {
		return err
	}
	s.KubeVirts = answer.Items
	s.Stored = map[string]string{}
	for _, res := range decide.Compared() {
		answer = r.Answer(ctx, definition(s.Cluster, res))
		if err := sort(s, answer.Fault, &s.StoredRefused); err != nil {
			return err
		}
		if answer.Object != nil {
			s.Stored[res.Plural] = decide.StoredVersion(answer.Object)
		}
	}
	return nil
}

// sort puts what went wrong with a cluster where the checks look for it.
func sort(s *decide.Sight, f *fault.Fault, refused **fault.Fault) error {
	switch {
	case f == nil:
	case f.Class == fault.Refused || f.Class == fault.NotServed:
		if *refused == nil {
			*refused = f
		}
	case s.Cluster == decide.Management:
		return f
	case s.Unreachable == nil:
		s.Unreachable = f
	}
	return nil
}
