package crds

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestLoad(t *testing.T) {
	cases := map[string]struct {
		reason string
		// want are kinds that must be there, with the version that is stored.
		want map[string]string
	}{
		KubeVirt: {
			reason: "machine-vm writes VirtualMachines and reads their instances; cluster-check reads the KubeVirt object",
			want: map[string]string{
				"KubeVirt": "v1", "VirtualMachine": "v1", "VirtualMachineInstance": "v1", "VirtualMachineInstanceMigration": "v1",
			},
		},
		CDI: {
			reason: "data volumes, their sources and storage profiles are read or written",
			want: map[string]string{
				"CDI": "v1beta1", "CDIConfig": "v1beta1", "DataImportCron": "v1beta1", "DataSource": "v1beta1",
				"DataVolume": "v1beta1", "StorageProfile": "v1beta1", "VolumeImportSource": "v1beta1",
			},
		},
		Multus: {
			reason: "networks of machines are attached by definitions",
			want:   map[string]string{"NetworkAttachmentDefinition": "v1"},
		},
		ClusterAPI: {
			reason: "both contract versions are served, the newer is stored",
			want: map[string]string{
				"Cluster": "v1beta2", "Machine": "v1beta2", "MachineDeployment": "v1beta2", "MachineSet": "v1beta2",
				"MachinePool": "v1beta2", "MachineHealthCheck": "v1beta2",
			},
		},
		CAPK: {
			reason: "the infrastructure kinds of KubeVirt clusters",
			want: map[string]string{
				"KubevirtCluster": "v1alpha1", "KubevirtClusterTemplate": "v1alpha1", "KubevirtMachine": "v1alpha1", "KubevirtMachineTemplate": "v1alpha1",
			},
		},
		TalosBootstrap: {
			reason: "the bootstrap kinds of Talos",
			want:   map[string]string{"TalosConfig": "v1alpha3", "TalosConfigTemplate": "v1alpha3"},
		},
		TalosControlPlane: {
			reason: "the control plane kind of Talos",
			want:   map[string]string{"TalosControlPlane": "v1alpha3"},
		},
		GatewayAPI: {
			reason: "gateways and the routes to clusters, from the standard channel",
			want: map[string]string{
				"Gateway": "v1", "GatewayClass": "v1", "HTTPRoute": "v1", "TLSRoute": "v1", "ReferenceGrant": "v1beta1",
			},
		},
		FluxKustomize: {
			reason: "workloads become Kustomizations",
			want:   map[string]string{"Kustomization": "v1"},
		},
		FluxSource: {
			reason: "workloads come from these sources",
			want: map[string]string{
				"Bucket": "v1", "GitRepository": "v1", "HelmChart": "v1", "HelmRepository": "v1", "OCIRepository": "v1",
			},
		},
		OpenShiftMachineConfig: {
			reason: "the baseline has objects of both",
			want:   map[string]string{"MachineConfig": "v1", "KubeletConfig": "v1"},
		},
		PrometheusRules: {
			reason: "the baseline has alerts",
			want:   map[string]string{"PrometheusRule": "v1"},
		},
		MetalLB: {
			reason: "the baseline turns MetalLB on",
			want:   map[string]string{"MetalLB": "v1beta1"},
		},
		UIPlugins: {
			reason: "the baseline turns the monitoring plugin on",
			want:   map[string]string{"UIPlugin": "v1alpha1"},
		},
		AAQ: {
			reason: "the baseline turns application-aware quotas on",
			want:   map[string]string{"AAQ": "v1alpha1"},
		},
		FluxHelm: {
			reason: "workloads become HelmReleases",
			want:   map[string]string{"HelmRelease": "v2"},
		},
		KnativeEventing: {
			reason: "events reach functions through these",
			want: map[string]string{
				"ApiServerSource": "v1", "Broker": "v1", "EventPolicy": "v1alpha1", "PingSource": "v1", "Trigger": "v1",
			},
		},
		KnativeServing: {
			reason: "functions are Services",
			want:   map[string]string{"Configuration": "v1", "Revision": "v1", "Route": "v1", "Service": "v1"},
		},
		ServiceMonitors: {
			reason: "metrics are scraped by these",
			want:   map[string]string{"ServiceMonitor": "v1"},
		},
	}
	for _, name := range Names() {
		tc, ok := cases[name]
		if !ok {
			t.Errorf("source %q has no case", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			definitions, err := Load(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, definition := range definitions {
				crd := typed(t, definition)
				if _, ok := tc.want[crd.Spec.Names.Kind]; ok {
					got[crd.Spec.Names.Kind] = stored(crd)
				}
				if crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
					t.Errorf("definition %q names a conversion webhook", crd.Name)
				}
				checkStructural(t, crd)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLoadAll(t *testing.T) {
	t.Run("SortsByNameAndLoadsEachSourceOnce", func(t *testing.T) {
		definitions, err := Load(t.Context(), Multus, KubeVirt, Multus)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, definition := range definitions {
			got = append(got, definition.GetName())
		}
		want := []string{
			"kubevirts.kubevirt.io",
			"network-attachment-definitions.k8s.cni.cncf.io",
			"virtualmachineinstancemigrations.kubevirt.io",
			"virtualmachineinstances.kubevirt.io",
			"virtualmachines.kubevirt.io",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("GivesEachCallerItsOwnCopy", func(t *testing.T) {
		first, err := Load(t.Context(), Multus)
		if err != nil {
			t.Fatal(err)
		}
		first[0].SetName("changed")
		second, err := Load(t.Context(), Multus)
		if err != nil {
			t.Fatal(err)
		}
		if got := second[0].GetName(); got == "changed" {
			t.Error("a change to what one caller got shows up in what the next one gets")
		}
	})
	t.Run("RefusesAnUnknownName", func(t *testing.T) {
		if _, err := Load(t.Context(), "no-such-project"); err == nil {
			t.Error("want an error that lists the names there are")
		}
	})
	t.Run("GivesUpWithItsContext", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := download(ctx, []string{"kubevirt.io/kubevirt@v1.9.0"}); err == nil {
			t.Error("want an error from a context that is done")
		}
	})
	t.Run("NamesTheModuleThatCannotBeHad", func(t *testing.T) {
		if _, err := download(t.Context(), []string{"kubevirt.io/kubevirt@v0.0.0-no-such-version"}); err == nil {
			t.Error("want an error from a version that does not exist")
		}
	})
}

// TestKubeVirtKinds compares what is composed here with the code of KubeVirt's
// operator: every name, short name, column and path has to stand in the function
// that makes the definition there, or in a constant of its file.
func TestKubeVirtKinds(t *testing.T) {
	source := sources[KubeVirt]
	module := source.Module + "@" + source.Version
	dirs, err := download(t.Context(), []string{module})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dirs[module], filepath.Dir(filepath.FromSlash(source.Files[0])), "crds.go")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, content, 0)
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]string{
		"KubeVirt":                        "NewKubeVirtCrd",
		"VirtualMachine":                  "NewVirtualMachineCrd",
		"VirtualMachineInstance":          "NewVirtualMachineInstanceCrd",
		"VirtualMachineInstanceMigration": "NewVirtualMachineInstanceMigrationCrd",
	}
	for _, k := range kubevirtKinds {
		t.Run(k.kind, func(t *testing.T) {
			texts, hasStatus := inspectFunction(parsed, functions[k.kind])
			if hasStatus != k.status {
				t.Errorf("subresource status: the operator says %v, the table %v", hasStatus, k.status)
			}
			want := []string{k.plural, k.singular}
			for _, name := range k.shortNames {
				want = append(want, name.(string))
			}
			for _, c := range k.columns {
				c := c.(map[string]any)
				want = append(want, c["name"].(string), c["jsonPath"].(string), c["type"].(string))
			}
			for _, text := range want {
				if !texts[text] {
					t.Errorf("%q does not stand in the operator's %s", text, functions[k.kind])
				}
			}
		})
	}
}

// inspectFunction collects the strings of one function and of the constants and
// variables of the file, and tells whether the function names the subresource status.
func inspectFunction(file *ast.File, name string) (texts map[string]bool, hasStatus bool) {
	texts = map[string]bool{}
	for _, declaration := range file.Decls {
		function, isFunction := declaration.(*ast.FuncDecl)
		if isFunction && function.Name.Name != name {
			continue
		}
		ast.Inspect(declaration, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil {
					texts[text] = true
				}
			case *ast.SelectorExpr:
				hasStatus = hasStatus || isFunction && n.Sel.Name == "CustomResourceSubresourceStatus"
			}
			return true
		})
	}
	return texts, hasStatus
}

func typed(t *testing.T, definition *unstructured.Unstructured) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(definition.Object, crd, true); err != nil {
		t.Fatalf("definition %q has fields that its type does not know: %v", definition.GetName(), err)
	}
	return crd
}

func stored(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

// checkStructural asks what an API server asks before it serves a schema.
func checkStructural(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for _, version := range crd.Spec.Versions {
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			t.Errorf("definition %q, version %s: no schema", crd.Name, version.Name)
			continue
		}
		internal := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, internal, nil); err != nil {
			t.Errorf("definition %q, version %s: %v", crd.Name, version.Name, err)
			continue
		}
		schema, err := structuralschema.NewStructural(internal)
		if err != nil {
			t.Errorf("definition %q, version %s: %v", crd.Name, version.Name, err)
			continue
		}
		if errs := structuralschema.ValidateStructural(nil, schema); len(errs) > 0 {
			t.Errorf("definition %q, version %s is not structural: %v", crd.Name, version.Name, errs.ToAggregate())
		}
	}
}
