package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/shared/kind"
)

// Resources that templates give.
var (
	Kustomizations   = flux("kustomize", "Kustomization", "kustomizations", "v1", "v1beta2")
	HelmReleases     = flux("helm", "HelmRelease", "helmreleases", "v2", "v2beta2")
	GitRepositories  = flux("source", "GitRepository", "gitrepositories", "v1", "v1beta2")
	HelmRepositories = flux("source", "HelmRepository", "helmrepositories", "v1", "v1beta2")
	OCIRepositories  = flux("source", "OCIRepository", "ocirepositories", "v1", "v1beta2")
	Buckets          = flux("source", "Bucket", "buckets", "v1", "v1beta2")
	HelmCharts       = flux("source", "HelmChart", "helmcharts", "v1", "v1beta2")
	Worktrees        = kind.Resource{
		Group: "dockyards.io", Versions: []string{"v1alpha3"}, Kind: "Worktree", Plural: "worktrees", Namespaced: true,
	}
	ConfigMaps = kind.ConfigMaps
	// Secrets are sealed before a decision sees them.
	Secrets         = kind.Secrets
	Namespaces      = kind.Namespaces
	ServiceAccounts = kind.Resource{Versions: []string{"v1"}, Kind: "ServiceAccount", Plural: "serviceaccounts", Namespaced: true}
	Roles           = rbac("Role", "roles")
	RoleBindings    = rbac("RoleBinding", "rolebindings")
)

// groups are all kinds that a template may ever give, in the order in which objects
// are applied; inside a group the order of the template counts.
var groups = [][]kind.Resource{
	{Namespaces, ServiceAccounts, Roles, RoleBindings},
	{Secrets, ConfigMaps},
	{Worktrees, GitRepositories, HelmRepositories, OCIRepositories, Buckets, HelmCharts},
	{Kustomizations, HelmReleases},
}

// GroupNames are what the groups are called in plans.
var GroupNames = []string{"namespaces and rights", "secrets and config maps", "sources", "releases"}

// off are the kinds that have to be switched on.
var off = []kind.Resource{ServiceAccounts, Roles, RoleBindings}

// Known are all kinds that a template may ever give, in the order of their groups.
func Known() []kind.Resource { return slices.Concat(groups...) }

// DefaultAllowed are the kinds that are allowed where nobody says otherwise.
func DefaultAllowed() []kind.Resource {
	return slices.DeleteFunc(Known(), func(res kind.Resource) bool { return isOne(off, res) })
}

// ParseAllowed reads a comma-separated list of Kind.group; the core group has no name.
func ParseAllowed(text string) ([]kind.Resource, error) {
	var wanted []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			wanted = append(wanted, item)
		}
	}
	var allowed []kind.Resource
	for _, res := range Known() {
		if i := slices.Index(wanted, KindGroup(res)); i >= 0 {
			allowed = append(allowed, res)
			wanted = slices.Delete(wanted, i, i+1)
		}
	}
	if len(wanted) > 0 {
		return nil, fmt.Errorf("cannot allow kind %q: there are %s", wanted[0], FormatAllowed(Known()))
	}
	return allowed, nil
}

// FormatAllowed is what ParseAllowed reads.
func FormatAllowed(allowed []kind.Resource) string {
	names := make([]string, 0, len(allowed))
	for _, res := range allowed {
		names = append(names, KindGroup(res))
	}
	return strings.Join(names, ",")
}

// KindGroup names a resource by kind and group.
func KindGroup(res kind.Resource) string {
	if res.Group == "" {
		return res.Kind
	}
	return res.Kind + "." + res.Group
}

// Group is the number of a resource's group; what is applied later is deleted
// earlier.
func Group(res kind.Resource) int {
	return slices.IndexFunc(groups, func(group []kind.Resource) bool { return isOne(group, res) })
}

// IsRelease tells whether a resource is one of those that bring something into a
// cluster: Kustomization and HelmRelease.
func IsRelease(res kind.Resource) bool { return isOne(groups[len(groups)-1], res) }

// IsSource tells whether a resource is one of Flux's sources.
func IsSource(res kind.Resource) bool { return res.Group == GitRepositories.Group }

// Find is the resource of a group and a kind among some.
func Find(among []kind.Resource, group, kindName string) (kind.Resource, bool) {
	i := slices.IndexFunc(among, func(res kind.Resource) bool { return res.Group == group && res.Kind == kindName })
	if i < 0 {
		return kind.Resource{}, false
	}
	return among[i], true
}

func isOne(of []kind.Resource, res kind.Resource) bool {
	_, found := Find(of, res.Group, res.Kind)
	return found
}

func flux(controller, kindName, plural string, versions ...string) kind.Resource {
	return kind.Resource{
		Group: controller + ".toolkit.fluxcd.io", Versions: versions, Kind: kindName, Plural: plural, Namespaced: true,
	}
}

func rbac(kindName, plural string) kind.Resource {
	return kind.Resource{
		Group: "rbac.authorization.k8s.io", Versions: []string{"v1"}, Kind: kindName, Plural: plural, Namespaced: true,
	}
}
