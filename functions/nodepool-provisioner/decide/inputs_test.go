package decide

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	kyaml "sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/shared/dockyards"
)

// TestRecordedHashesNeverChange: whoever changes one of these replaces every machine
// of every pool. A function that learns something new keeps them.
func TestRecordedHashesNeverChange(t *testing.T) {
	cases := map[string]struct {
		controlPlane bool
		change       func(w *world)
		want         string
	}{
		"control plane": {true, func(*world) {}, "v1-27c3b3164c2a8ffb"},
		"workers":       {false, func(*world) {}, "v1-b5470804162d153a"},
		"everything": {true, func(w *world) {
			w.in.Settings.Multus, w.in.Networks = true, definitions(t, "b", "!a.b")
			w.in.Settings.PodBridgeLiveMigration, w.in.Settings.NodeSubnets = true, []string{"10.0.0.0/8"}
			w.config(map[string]string{"dockyards-kubevirt.env.HTTP_PROXY": "", "dockyards-kubevirt.ntp.servers": "time.a"})
			disks("data", "1Gi")(w)
		}, "v1-c2cb5468f6fb78b9"},
	}
	for name, tc := range cases {
		w := newWorld(t, tc.controlPlane)
		tc.change(w)
		if got := look(now, w.in, nil).today; got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// anyMachine draws what machines shall be.
func anyMachine(t *rapid.T) *machine {
	m := &machine{
		cores:      *resource.NewQuantity(rapid.Int64Range(1, 64).Draw(t, "cores"), resource.DecimalSI),
		memory:     *resource.NewQuantity(rapid.Int64Range(1, 1<<40).Draw(t, "memory"), resource.BinarySI),
		accessMode: "ReadWriteMany", storageClass: rapid.SampledFrom([]string{"", "fast"}).Draw(t, "class"),
		volumeMode:      rapid.SampledFrom([]string{"", "Block"}).Draw(t, "mode"),
		bridgeMigration: rapid.Bool().Draw(t, "migration"),
		disks:           []disk{{name: bootDisk, size: resource.MustParse("10Gi"), sourceNamespace: "a", source: "b"}},
	}
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,5}`), 0, 4, rapid.ID[string]).Draw(t, "networks")
	for _, name := range names {
		m.nics = append(m.nics, nic{Name: name, Definition: "ns/" + name, Default: rapid.Bool().Draw(t, "default")})
	}
	return m
}

func anyTalos(t *rapid.T) *talos {
	var documents []document
	for _, text := range rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "texts") {
		doc, err := render(map[string]any{"a": text, "b": []string{text, "x"}, "c": map[string]any{"d": text}})
		if err != nil {
			continue
		}
		documents = append(documents, doc)
	}
	return &talos{generateType: "worker", version: "v1.12", documents: documents}
}

func TestTheHashKnowsNoOrderAndNoSpelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, documents := anyMachine(t), anyTalos(t)
		other := *m
		other.nics = rapid.Permutation(m.nics).Draw(t, "order")
		// The same memory, written in bytes.
		other.memory = resource.MustParse(whole(m.memory))
		again := *documents
		again.documents = nil
		for _, doc := range documents.documents {
			var data any
			if err := yaml.Unmarshal([]byte(doc.text), &data); err != nil {
				t.Fatal(err)
			}
			text := &strings.Builder{}
			encoder := yaml.NewEncoder(text)
			encoder.SetIndent(rapid.IntRange(2, 8).Draw(t, "indent"))
			if err := encoder.Encode(data); err != nil {
				t.Fatal(err)
			}
			parsed, ok := parse(text.String())
			if !ok {
				t.Fatalf("cannot read %q again", text)
			}
			again.documents = append(again.documents, document{text: text.String(), data: parsed})
		}
		if a, b := hash(m, documents), hash(&other, &again); a != b {
			t.Fatalf("%s became %s", a, b)
		}
		if !slices.Equal(other.differencesFrom(t, m), []string{}) {
			t.Fatalf("the same machine differs in %v", other.differencesFrom(t, m))
		}
	})
}

// differencesFrom compares with the template that another machine is written as.
func (m *machine) differencesFrom(t *rapid.T, other *machine) []string {
	spec := machineTemplateSpec{}
	spec.Template.Spec = other.spec()
	obj, p := objectOf(dockyards.KubevirtMachineTemplates, "", &spec)
	if p != nil {
		t.Fatal(p.message)
	}
	return append([]string{}, m.differences(obj)...)
}

func TestTheHashTellsMachinesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyMachine(t), anyMachine(t)
		documents := anyTalos(t)
		same := len(a.differencesFrom(t, b)) == 0
		if (hash(a, documents) == hash(b, documents)) != same || (a.content() == b.content()) != same {
			t.Fatalf("templates that are the same: %v; hashes %s %s", same, hash(a, documents), hash(b, documents))
		}
	})
}

func TestNamesOfTemplatesFitWhateverThePoolIsCalled(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.StringMatching(`[a-z]([-a-z0-9]{0,61}[a-z0-9])?`).Draw(rt, "name")
		w := newWorld(t, rapid.Bool().Draw(rt, "control plane"))
		w.in.Pool.SetName(name)
		w.rest()
		set(w.in.Pool, "4", "spec", "resources", "cpu")
		w.rest()
		got := w.infrastructure()
		if got == name || !strings.HasPrefix(got, name+"-") || len(validation.IsDNS1123Subdomain(got)) > 0 {
			rt.Fatalf("pool %q has template %q", name, got)
		}
	})
}

func TestDecidingTwiceAndInAnotherOrderIsTheSame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rapid.Bool().Draw(rt, "control plane"))
		w.in.Settings.Multus, w.in.Networks = true, definitions(t, "a", "b.c", "b-c")
		w.rest()
		set(w.in.Pool, rapid.SampledFrom([]string{"1", "2500m", "9"}).Draw(rt, "cpu"), "spec", "resources", "cpu")
		first := Decide(now, w.in, nil)
		w.in.Networks = rapid.Permutation(w.in.Networks).Draw(rt, "networks")
		w.in.MachineTemplates = rapid.Permutation(w.in.MachineTemplates).Draw(rt, "templates")
		if diff := cmp.Diff(first.Plan, Decide(now, w.in, nil).Plan); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// wantTemplate is what a pool with everything is turned into, as upstream writes it.
const wantTemplate = `
template:
  spec:
    virtualMachineBootstrapCheck: {checkStrategy: none}
    virtualMachineTemplate:
      spec:
        runStrategy: Always
        dataVolumeTemplates:
        - metadata: {name: boot}
          spec:
            pvc:
              accessModes: [ReadWriteMany]
              resources: {requests: {storage: 20Gi}}
              storageClassName: rook-ceph-block
              volumeMode: Block
            sourceRef: {kind: DataSource, name: talos, namespace: dockyards-system}
        - metadata: {name: data}
          spec:
            pvc:
              accessModes: [ReadWriteMany]
              resources: {requests: {storage: 1Gi}}
              storageClassName: rook-ceph-block
              volumeMode: Block
            source: {blank: {}}
        template:
          spec:
            evictionStrategy: LiveMigrate
            domain:
              cpu: {cores: 3}
              memory: {guest: 4Gi}
              resources: {}
              devices:
                disks:
                - {name: boot, disk: {bus: virtio}}
                - {name: data, disk: {bus: virtio}}
                interfaces:
                - {name: blue, bridge: {}}
                - {name: red, bridge: {}}
            networks:
            - {name: blue, multus: {networkName: team/blue, default: true}}
            - {name: red, multus: {networkName: team/red}}
            volumes:
            - {name: boot, dataVolume: {name: boot}}
            - {name: data, dataVolume: {name: data}}
`

func TestAMachineTemplateIsExactlyThis(t *testing.T) {
	w := newWorld(t, true)
	disks("data", "1Gi")(w)
	w.in.Settings.Multus, w.in.Networks = true, definitions(t, "red", "!blue")
	w.rest()
	var want map[string]any
	if err := kyaml.Unmarshal([]byte(wantTemplate), &want); err != nil {
		t.Fatal(err)
	}
	raw, err := kyaml.Marshal(w.in.MachineTemplates[0].Object["spec"])
	var got map[string]any
	if err == nil {
		err = kyaml.Unmarshal(raw, &got)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
