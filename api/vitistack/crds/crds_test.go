package crds

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// definitions are the embedded definitions by plural.
func definitions(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	paths, err := fs.Glob(FS, "*")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, path := range paths {
		content, err := FS.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			t.Fatalf("cannot read %s: %v", path, err)
		}
		out[crd.Spec.Names.Plural] = crd
	}
	return out
}

func TestNamesScopeAndColumns(t *testing.T) {
	cases := map[string]struct {
		scope   apiextensionsv1.ResourceScope
		names   apiextensionsv1.CustomResourceDefinitionNames
		columns []string
	}{
		"machines": {
			scope: apiextensionsv1.NamespaceScoped,
			names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "machines", Singular: "machine", Kind: "Machine", ListKind: "MachineList", ShortNames: []string{"m"},
			},
			columns: []string{
				"Phase string .status.phase 0",
				"State string .status.state 0",
				"Public IPs string .status.publicIPAddresses 0",
				"Provider string .spec.provider 0",
				"Machine Class string .spec.machineClass 0",
				"Template string .spec.template 1",
				"Cluster string .status.kubevirtConfigRef 1",
				"Node string .status.nodeName 1",
				"VM string .status.vmName 1",
				"Age date .metadata.creationTimestamp 0",
			},
		},
		"machineclasses": {
			scope: apiextensionsv1.ClusterScoped,
			names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "machineclasses", Singular: "machineclass", Kind: "MachineClass", ListKind: "MachineClassList", ShortNames: []string{"mc"},
			},
			columns: []string{
				"Display Name string .spec.displayName 0",
				"Category string .spec.category 0",
				"Default string .spec.default 0",
				"Cpu Cores string .spec.cpu.cores 0",
				"Cpu Sockets string .spec.cpu.sockets 0",
				"Cpu Threads string .spec.cpu.threads 0",
				"Gpu Cores string .spec.gpu.cores 0",
				"Memory string .spec.memory.quantity 0",
				"Enabled string .spec.enabled 0",
				"Created string .status.created 0",
			},
		},
		"kubevirtconfigs": {
			scope: apiextensionsv1.ClusterScoped,
			names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "kubevirtconfigs", Singular: "kubevirtconfig", Kind: "KubevirtConfig", ListKind: "KubevirtConfigList", ShortNames: []string{"kvc"},
			},
			columns: []string{
				"Name string .spec.name 0",
				"Phase string .status.phase 0",
				"Status string .status.status 0",
				"Age date .metadata.creationTimestamp 0",
			},
		},
		"networkconfigurations": {
			scope: apiextensionsv1.NamespaceScoped,
			names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "networkconfigurations", Singular: "networkconfiguration", Kind: "NetworkConfiguration", ListKind: "NetworkConfigurationList", ShortNames: []string{"nc"},
			},
			columns: []string{
				"Name string .spec.name 0",
				"VLAN integer .spec.vlan 0",
				"Phase string .status.phase 0",
				"Status string .status.status 0",
				"Age date .metadata.creationTimestamp 0",
			},
		},
	}
	crds := definitions(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(cases)), slices.Sorted(maps.Keys(crds))); diff != "" {
		t.Fatalf("other resources than these:\n%s", diff)
	}
	for plural, want := range cases {
		t.Run(plural, func(t *testing.T) {
			crd := crds[plural]
			if crd.Spec.Scope != want.scope {
				t.Errorf("scope is %s, want %s: it can never be changed once installed", crd.Spec.Scope, want.scope)
			}
			if diff := cmp.Diff(want.names, crd.Spec.Names); diff != "" {
				t.Errorf("names:\n%s", diff)
			}
			if crd.Spec.Group != "vitistack.io" || len(crd.Spec.Versions) != 1 || crd.Spec.PreserveUnknownFields {
				t.Fatalf("not vitistack.io, or not one version, or not pruned")
			}
			version := crd.Spec.Versions[0]
			if version.Name != "v1alpha1" || !version.Served || !version.Storage {
				t.Errorf("v1alpha1 must be served and stored")
			}
			if version.Subresources == nil || version.Subresources.Status == nil || version.Subresources.Scale != nil {
				t.Errorf("the subresources are status and nothing else")
			}
			var columns []string
			for _, c := range version.AdditionalPrinterColumns {
				columns = append(columns, fmt.Sprintf("%s %s %s %d", c.Name, c.Type, c.JSONPath, c.Priority))
			}
			if diff := cmp.Diff(want.columns, columns); diff != "" {
				t.Errorf("columns:\n%s", diff)
			}
		})
	}
}

// fields calls visit for every node of a definition's schema, with its path:
// dots between fields, [] after a list, {} after a map.
func fields(crd *apiextensionsv1.CustomResourceDefinition, visit func(path string, s apiextensionsv1.JSONSchemaProps)) {
	var walk func(path string, s apiextensionsv1.JSONSchemaProps)
	walk = func(path string, s apiextensionsv1.JSONSchemaProps) {
		visit(path, s)
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			walk(strings.TrimPrefix(path+"."+name, "."), s.Properties[name])
		}
		if s.Items != nil && s.Items.Schema != nil {
			walk(path+"[]", *s.Items.Schema)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			walk(path+"{}", *s.AdditionalProperties.Schema)
		}
	}
	walk("", *crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
}

func TestRulesForTheWholeGroup(t *testing.T) {
	got := map[string][]string{}
	note := func(rule, where, what string) { got[rule] = append(got[rule], strings.TrimSpace(where+" "+what)) }
	for plural, crd := range definitions(t) {
		fields(crd, func(path string, s apiextensionsv1.JSONSchemaProps) {
			where := plural + " " + path
			if s.XPreserveUnknownFields != nil || s.XEmbeddedResource {
				note("not pruned", where, "")
			}
			if s.Type == "integer" && s.Format != "" {
				note("integer with a format", where, s.Format)
			}
			if s.Nullable {
				note("nullable", where, "")
			}
			if s.Default != nil {
				note("default", where, string(s.Default.Raw))
			}
			if len(s.Required) > 0 {
				note("required", where, strings.Join(s.Required, ","))
			}
			if len(s.Enum) > 0 {
				var words []string
				for _, word := range s.Enum {
					words = append(words, string(word.Raw))
				}
				note("enum", where, strings.ReplaceAll(strings.Join(words, ","), `"`, ""))
			}
			if s.XIntOrString {
				note("quantity", where, "")
			}
			if s.Type == "array" && (s.XListType == nil || *s.XListType != "atomic") {
				note("list that is not atomic", where, fmt.Sprintf("%s %v", *s.XListType, s.XListMapKeys))
			}
			if len(s.XValidations) > 0 {
				note("rule", where, "")
			}
			if limits := limitsOf(s); limits != "" {
				note("limits", where, limits)
			}
		})
	}
	for rule := range got {
		slices.Sort(got[rule])
	}
	want := map[string][]string{
		"default": {
			"machineclasses spec.category \"Standard\"",
			"machineclasses spec.default false",
			"machineclasses spec.enabled true",
			"machines spec.cloudInit.type \"noCloud\"",
		},
		"enum": {
			"machines spec.bootOrder[] disk,network,cdrom",
			"machines spec.cloudInit.type noCloud,configDrive",
			"machines spec.disks[].accessMode ReadWriteOnce,ReadWriteMany,ReadOnlyMany,ReadWriteOncePod",
			"machines spec.disks[].volumeMode Filesystem,Block",
			"machines spec.networks[].model virtio,e1000,e1000e,rtl8139,ne2k_pci,pcnet",
			"machines spec.os.architecture amd64,arm64,x86_64",
			"networkconfigurations spec.networkInterfaces[].allocationMethod dhcp,static",
			"networkconfigurations status.networkInterfaces[].allocationMethod dhcp,static",
		},
		"integer with a format": {
			"kubevirtconfigs status.conditions[].observedGeneration int64",
			"machines spec.disks[].sizeGB int64",
			"machines spec.memory int64",
			"machines status.conditions[].observedGeneration int64",
			"machines status.disks[].availableBytes int64",
			"machines status.disks[].size int64",
			"machines status.disks[].usedBytes int64",
			"machines status.memory int64",
			"machines status.observedGeneration int64",
			"networkconfigurations status.conditions[].observedGeneration int64",
		},
		"limits": {
			"kubevirtconfigs spec.kubeconfigSecretRef at least 1 characters",
			"kubevirtconfigs spec.name at least 1 characters",
			"machines spec.cpu.cores 1..256",
			"machines spec.cpu.sockets 1..16",
			"machines spec.cpu.threadsPerCore 1..8",
			"machines spec.disks[].iops 100..64000",
			"machines spec.disks[].sizeGB 1..65536",
			"machines spec.disks[].throughput 125..4000",
			"machines spec.instanceType at least 1 characters",
			"machines spec.kubevirtConfigRef at least 1 characters",
			"machines spec.machineClass at least 1 characters",
			"machines spec.memory 0..",
			"machines spec.name at least 1 characters",
			"machines spec.networks[].macAddress ^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$",
			"machines spec.networks[].name at most 63 characters, ^[A-Za-z0-9_-]+$",
			"machines spec.resources.cpu.cores 1..256",
			"machines spec.resources.cpu.sockets 1..16",
			"machines spec.resources.cpu.threads 1..8",
			"machines spec.template at least 1 characters",
			"networkconfigurations spec.bridge at most 15 characters",
			"networkconfigurations spec.clusterIdentifier at least 2 characters, at most 32 characters, ^[A-Za-z0-9_-]+$",
			"networkconfigurations spec.datacenterIdentifier at least 2 characters, at most 32 characters, ^[A-Za-z0-9_-]+$",
			"networkconfigurations spec.description at most 256 characters",
			"networkconfigurations spec.name at least 2 characters, at most 32 characters, ^[A-Za-z0-9_-]+$",
			"networkconfigurations spec.networks[].bridge at most 15 characters",
			"networkconfigurations spec.networks[].vlan 0..4094",
			"networkconfigurations spec.provider at least 1 characters, at most 32 characters, ^[A-Za-z0-9_-]+$",
			"networkconfigurations spec.supervisorIdentifier at least 2 characters, at most 32 characters, ^[A-Za-z0-9_-]+$",
			"networkconfigurations spec.vlan 0..4094",
		},
		"list that is not atomic": {
			"machines spec.bootOrder set []",
			"machines spec.networks map [name]",
		},
		"nullable": {
			"kubevirtconfigs status.conditions[].lastTransitionTime",
			"machines status.conditions[].lastTransitionTime",
			"machines status.lastUpdated",
			"networkconfigurations status.conditions[].lastTransitionTime",
			"networkconfigurations status.created",
		},
		"quantity": {
			"machineclasses spec.memory.maxQuantity",
			"machineclasses spec.memory.minQuantity",
			"machineclasses spec.memory.quantity",
			"machines spec.disks[].size",
			"machines spec.resources.memory.size",
		},
		"required": {
			"kubevirtconfigs spec kubeconfigSecretRef",
			"machineclasses spec category,cpu,default,enabled,machineProviders,memory",
			"machineclasses spec.cpu cores",
			"machineclasses spec.gpu cores",
			"machineclasses spec.memory quantity",
			"machines spec.cloudInit.networkDataConfigMapRef name",
			"machines spec.cloudInit.networkDataSecretRef name",
			"machines spec.cloudInit.secretRef name",
			"machines spec.cloudInit.userDataConfigMapRef name",
			"machines spec.cloudInit.userDataSecretRef name",
			"machines spec.networks[] name",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the schema's special places are others than these (-want +got):\n%s", diff)
	}
}

// limitsOf is the range of a number, or length and form of a text, in short.
func limitsOf(s apiextensionsv1.JSONSchemaProps) string {
	var out []string
	if s.Minimum != nil || s.Maximum != nil {
		from, to := "", ""
		if s.Minimum != nil {
			from = fmt.Sprint(*s.Minimum)
		}
		if s.Maximum != nil {
			to = fmt.Sprint(*s.Maximum)
		}
		out = append(out, from+".."+to)
	}
	if s.MinLength != nil {
		out = append(out, fmt.Sprintf("at least %d characters", *s.MinLength))
	}
	if s.MaxLength != nil {
		out = append(out, fmt.Sprintf("at most %d characters", *s.MaxLength))
	}
	if s.Pattern != "" && !s.XIntOrString {
		out = append(out, s.Pattern)
	}
	return strings.Join(out, ", ")
}

func TestEveryFieldIsInAnAcceptedManifest(t *testing.T) {
	archive, err := txtar.ParseFile("../../../test/api/testdata/accepted.txtar")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, file := range archive.Files {
		var object map[string]any
		if err := yaml.Unmarshal(file.Data, &object); err != nil {
			t.Fatalf("%s: %v", file.Name, err)
		}
		kind, _ := object["kind"].(string)
		use(used, kind+" ", object)
	}
	for _, crd := range definitions(t) {
		fields(crd, func(path string, _ apiextensionsv1.JSONSchemaProps) {
			where := crd.Spec.Names.Kind + " " + path
			if !used[where] {
				t.Errorf("no manifest in accepted.txtar has %s", where)
			}
		})
	}
}

func use(used map[string]bool, path string, value any) {
	used[path] = true
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			separator := "."
			if strings.HasSuffix(path, " ") {
				separator = ""
			}
			use(used, path+separator+key, below)
			used[path+"{}"] = true
		}
	case []any:
		for _, below := range v {
			use(used, path+"[]", below)
		}
	}
}
