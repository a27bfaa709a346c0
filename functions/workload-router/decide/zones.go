package decide

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/dockyards"
)

const (
	// hostnamesPerRoute is what every release of Gateway API takes.
	hostnamesPerRoute = 16
	// hostnameMax is the length of a DNS name.
	hostnameMax = 253
	// zoneShown is how much of a zone's name is quoted.
	zoneShown = 80
)

// zones are the hostnames of a Cluster.
type zones struct {
	// hostnames are those that the Cluster may have, in the order of its zones.
	hostnames []string
	// conflicts tell of zones that are others', dropped of those that are no DNS
	// names or come twice.
	conflicts, dropped []string
	// owners are the Clusters that zones belong to, by hostname: "namespace/name".
	owners map[string]string
	// platform is the host of externalURL, empty for none.
	platform string
}

// Zone is a zone's name in the form in which two are compared; ok is false for what
// cannot be one.
func Zone(text string) (zone string, ok bool) {
	zone = strings.ToLower(strings.TrimSuffix(text, "."))
	return zone, len(zone)+2 <= hostnameMax && len(validation.IsDNS1123Subdomain(zone)) == 0
}

// Zones are those of a Cluster, without those that cannot be any.
func Zones(cluster *unstructured.Unstructured) []string {
	var list []string
	for _, text := range written(cluster) {
		if zone, ok := Zone(text); ok && !slices.Contains(list, zone) {
			list = append(list, zone)
		}
	}
	return list
}

func written(cluster *unstructured.Unstructured) []string {
	if cluster == nil {
		return nil
	}
	list, _, _ := unstructured.NestedStringSlice(cluster.Object, "status", "dnsZones")
	return list
}

// findZones gives every zone to the oldest Cluster that has it, and finds those of
// the Workload's Cluster.
func (v *view) findZones() zones {
	z := zones{owners: map[string]string{}}
	clusters := make([]*unstructured.Unstructured, 0, len(v.in.Clusters))
	for i := range v.in.Clusters {
		clusters = append(clusters, &v.in.Clusters[i])
	}
	slices.SortFunc(clusters, dockyards.Older)
	for _, cluster := range clusters {
		for _, zone := range Zones(cluster) {
			if _, taken := z.owners[hostname(zone)]; !taken {
				z.owners[hostname(zone)] = key(cluster)
			}
		}
	}
	if host, err := v.in.Config.Hostname(); err == nil {
		z.platform = host // one that is no name is in no zone
	}
	if v.cluster == nil {
		return z
	}
	for _, zone := range Zones(v.cluster) {
		switch {
		case z.holdsPlatform(zone):
			z.conflicts = append(z.conflicts, fmt.Sprintf("zone %q holds the platform's own host", clip.Line(zone, zoneShown)))
		case z.owners[hostname(zone)] != key(v.cluster):
			z.conflicts = append(z.conflicts, fmt.Sprintf("zone %q belongs to an older Cluster", clip.Line(zone, zoneShown)))
		default:
			z.hostnames = append(z.hostnames, hostname(zone))
		}
	}
	z.dropped = dropped(v.cluster)
	return z
}

// dropped tells of what a Cluster's list of zones has besides zones.
func dropped(cluster *unstructured.Unstructured) []string {
	var list []string
	seen := map[string]bool{}
	for _, text := range written(cluster) {
		zone, ok := Zone(text)
		switch {
		case !ok:
			list = append(list, fmt.Sprintf("zone %q is no DNS name", clip.Line(text, zoneShown)))
		case seen[zone]:
			list = append(list, fmt.Sprintf("zone %q is listed twice", clip.Line(text, zoneShown)))
		}
		seen[zone] = true
	}
	return list
}

// report tells of the hostnames, if any Service wants one.
func (v *view) report() {
	if v.said.routed {
		v.said.hosts = v.zones.conflicts
		v.said.notes = append(v.said.notes, v.zones.dropped...)
	}
}

// holdsPlatform tells whether the platform's own host lies in a zone, or is it.
func (z zones) holdsPlatform(zone string) bool {
	return z.platform != "" && (z.platform == zone || strings.HasSuffix(z.platform, "."+zone))
}

// others tells whether a hostname belongs to somebody else than the Workload's
// Cluster.
func (v *view) others(host string) bool {
	if zone, ok := strings.CutPrefix(host, hostname("")); ok && v.zones.holdsPlatform(zone) {
		return true
	}
	owner, owned := v.zones.owners[host]
	return owned && owner != v.namespace+"/"+v.clusterName && owner != v.namespace+"/"+v.owner()
}

func hostname(zone string) string { return "*." + zone }

func key(obj *unstructured.Unstructured) string { return obj.GetNamespace() + "/" + obj.GetName() }
