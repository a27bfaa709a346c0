package decide

import (
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Limits of spec.name of a NetworkConfiguration.
const (
	recordNameMin = 2
	recordNameMax = 32
)

var notInRecordName = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// recordDisplayName is a name that the schema accepts, for every Machine.
func recordDisplayName(machine string) string {
	name := v1alpha1.Short(notInRecordName.ReplaceAllString(machine, "-"), recordNameMax)
	if len(name) < recordNameMin {
		name += name
	}
	return name
}

// planRecord keeps the NetworkConfiguration named like the Machine: which
// interfaces it has, for the operators that give out addresses.
func (v *view) planRecord() {
	live := v.in.Record
	if live == nil {
		if record := v.object(kinds.NetworkConfigurations, v.newRecord()); record != nil {
			v.records = append(v.records, plan.Entry{
				Verb: plan.Create, Resource: kinds.NetworkConfigurations, Object: record,
				Reason: "the Machine's interfaces are not recorded yet",
			})
		}
		return
	}
	if v.id.relate(live) != own {
		v.reason("NetworkConfiguration %q belongs to %s and is left alone", live.GetName(), whose(live))
		return
	}
	changed := live
	if marked := v.remarked(live); marked != nil {
		changed = marked
	}
	if interfaces, differ := v.recordInterfaces(live); differ {
		if changed == live {
			changed = live.DeepCopy()
		}
		put(changed.Object, interfaces, "spec", "networkInterfaces")
	}
	if changed != live {
		v.patch("", kinds.NetworkConfigurations, live, changed, &v.records, "the Machine's interfaces have changed")
	}
}

func (v *view) newRecord() *v1alpha1.NetworkConfiguration {
	yes := true
	record := &v1alpha1.NetworkConfiguration{
		ObjectMeta: metav1.ObjectMeta{
			Name: v1alpha1.RecordName(v.id.name), Namespace: v.namespace,
			Labels: v.labels(), Annotations: v.annotations(),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: kinds.Machines.APIVersion(), Kind: kinds.Machines.Kind,
				Name: v.id.name, UID: v.in.Machine.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: v1alpha1.NetworkConfigurationSpec{
			Name:                 recordDisplayName(v.id.name),
			NetworkNamespaceName: v.machine.Spec.Network.NetworkNamespaceName,
		},
	}
	for _, n := range v.nics {
		record.Spec.NetworkInterfaces = append(record.Spec.NetworkInterfaces,
			v1alpha1.NetworkConfigurationInterface{Name: n.name, MACAddress: n.mac})
	}
	return record
}

// recordInterfaces is the list of interfaces as it shall be. What others wrote
// into an entry stays.
func (v *view) recordInterfaces(live *unstructured.Unstructured) (interfaces []any, differ bool) {
	have := entries(live.Object, "spec", "networkInterfaces")
	differ = len(have) != len(v.nics)
	for _, n := range v.nics {
		entry := map[string]any{"name": n.name}
		if old := named(have, n.name); old != nil {
			entry = (&unstructured.Unstructured{Object: old}).DeepCopy().Object
		}
		if normalMAC(text(entry, "macAddress")) != n.mac {
			entry["macAddress"] = n.mac
			differ = true
		}
		interfaces = append(interfaces, entry)
	}
	return interfaces, differ
}

// recordAddresses are the IPv4 and IPv6 addresses that operators have given to
// a MAC address, without their prefix lengths.
func recordAddresses(record *unstructured.Unstructured, mac string) (v4, v6 []string) {
	if record == nil {
		return nil, nil
	}
	for _, n := range entries(record.Object, "status", "networkInterfaces") {
		if mac != "" && normalMAC(text(n, "macAddress")) != mac {
			continue
		}
		for _, address := range texts(n, "ipv4Addresses") {
			v4 = appendNew(v4, bareAddress(address))
		}
		for _, address := range texts(n, "ipv6Addresses") {
			v6 = appendNew(v6, bareAddress(address))
		}
	}
	return v4, v6
}

func bareAddress(address string) string {
	bare, _, _ := strings.Cut(strings.TrimSpace(address), "/")
	return bare
}
