package decide

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// clusterMap is what a test says of clusters, by name.
type clusterMap map[string]Sight

// Objects of the Machine web, and of nobody.
const (
	ownVM    = `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: vm-web, annotations: {vitistack.io/machine-uid: uid-web}}}`
	otherVM  = `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: vm-web, annotations: {vitistack.io/machine-uid: uid-else}}}`
	bareVM   = `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: vm-web}}`
	ownClaim = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web-root, annotations: {vitistack.io/machine-uid: uid-web}}}`
)

// up is a cluster that answers and has these objects.
func up(t *testing.T, uid string, manifests ...string) Sight {
	t.Helper()
	s := Sight{UID: uid, KubeVirt: true}
	for _, manifest := range manifests {
		obj := parse(t, manifest)
		obj.SetNamespace(ns)
		if isVM(obj) {
			s.VMs = append(s.VMs, *obj)
		} else {
			s.Claims = append(s.Claims, *obj)
		}
	}
	return s
}

func down(name string) Sight {
	return Sight{Unreachable: &fault.Fault{Class: fault.Unavailable, Cluster: name, Call: "get namespaces kube-system", Message: "connection refused"}}
}

func refusedConnection(message string) Sight {
	return Sight{Connection: plan.Connection{Refused: plan.KubeconfigInvalid, Message: message}}
}

// placed runs both steps of a placement.
func placed(t *testing.T, machine *unstructured.Unstructured, settings Settings, served Served, clusters clusterMap) Target {
	t.Helper()
	wish := Wishes(machine, settings, served)
	var sights []Sight
	for _, name := range wish.Clusters() {
		sight := clusters[name]
		sight.Cluster = name
		sight.Same = sight.Same || name == Management
		sights = append(sights, sight)
	}
	return Place(machine, settings, wish, sights)
}

// told is a Target as one word.
func told(target Target) string {
	switch {
	case target.Problem != nil:
		return "problem " + target.Problem.Reason
	case target.Undecided:
		return "undecided"
	case target.Nothing:
		return "nothing"
	case target.Unreachable != nil:
		return "unreachable " + target.Cluster
	case target.Conflict != nil:
		return "conflict on " + target.Cluster + " " + target.Conflict.Reason
	case target.More:
		return "more than " + target.Cluster
	case target.Automatic && target.Cluster != "":
		return "assigned " + target.Cluster
	case target.Same && target.Cluster == "":
		return "here"
	}
	return "at " + target.Cluster
}

const goingMeta = `, deletionTimestamp: "2026-11-21T00:00:00Z", finalizers: [machine.vitistack.io/cleanup]`

func TestPlace(t *testing.T) {
	all := []string{"a", "b"}
	for name, c := range map[string]struct {
		reason    string
		meta      string
		rest      string
		configs   []string
		namespace string // of the KubevirtConfigs
		settings  func(*Settings)
		noKubeVirt,
		notServed bool // by the management cluster
		clusters clusterMap
		want     string
		says     string
	}{
		"PL-1 rank 1 before 2":             {reason: "the spec counts most", meta: ", annotations: {vitistack.io/kubevirt-config: b}", rest: ", spec: {kubevirtConfigRef: a}", configs: all, clusters: clusterMap{"a": up(t, "ua")}, want: "at a"},
		"PL-1 rank 2 before 3":             {reason: "then the annotation", meta: ", annotations: {vitistack.io/kubevirt-config: b}", rest: ", status: {kubevirtConfigRef: a}", configs: all, clusters: clusterMap{"a": up(t, "ua"), "b": up(t, "ub")}, want: "at b"},
		"PL-1 rank 3 before 4":             {reason: "then the status", rest: ", status: {kubevirtConfigRef: a}", configs: all, settings: func(s *Settings) { s.DefaultConfig = "b" }, clusters: clusterMap{"a": up(t, "ua")}, want: "at a"},
		"PL-1 rank 4 before 5":             {reason: "then the environment", configs: all, settings: func(s *Settings) { s.DefaultConfig = "b" }, clusters: clusterMap{"b": up(t, "ub")}, want: "assigned b"},
		"PL-1 rank 5":                      {reason: "the only one", configs: []string{"a"}, clusters: clusterMap{"a": up(t, "ua")}, want: "assigned a"},
		"PL-1 rank 6":                      {reason: "the one that has it", configs: all, clusters: clusterMap{"a": up(t, "ua"), "b": up(t, "ub", ownVM)}, want: "assigned b"},
		"PL-3 none":                        {reason: "nobody can tell", configs: all, clusters: clusterMap{"a": up(t, "ua"), "b": up(t, "ub", otherVM)}, want: "problem PlacementAmbiguous", says: "Machine has no KubevirtConfig reference and 2 configs are available - cannot determine placement"},
		"PL-3 several":                     {reason: "nobody can tell which", configs: all, clusters: clusterMap{"a": up(t, "ua", ownVM), "b": up(t, "ub", ownVM)}, want: "problem PlacementAmbiguous", says: `"a", "b"`},
		"PL-3 one cluster under two names": {reason: "it is the same machine", configs: all, clusters: clusterMap{"a": up(t, "ua", ownVM), "b": up(t, "ua", ownVM)}, want: "assigned a"},
		"PL-3 by the rules of ID-6":        {reason: "one that could be adopted counts", configs: all, clusters: clusterMap{"a": up(t, "ua", bareVM), "b": up(t, "ub")}, want: "assigned a"},
		"PL-3 own before adoptable":        {reason: "as within one cluster", configs: all, clusters: clusterMap{"a": up(t, "ua", bareVM), "b": up(t, "ub", ownVM)}, want: "assigned b"},
		"PL-4 one does not answer":         {reason: "it may be there", configs: all, clusters: clusterMap{"a": down("a"), "b": up(t, "ub", ownVM)}, want: "undecided"},
		"PL-4 one cannot be asked":         {reason: "a person must mend it", configs: all, clusters: clusterMap{"a": refusedConnection("no"), "b": up(t, "ub")}, want: "problem KubevirtConfigInvalid", says: `"a"`},
		"PL-4 one refuses":                 {reason: "a person must mend it", configs: all, clusters: clusterMap{"a": {Faults: []fault.Fault{{Class: fault.Refused, Cluster: "a", Call: "get", Message: "forbidden"}}}, "b": up(t, "ub")}, want: "problem KubeVirtApiError", says: "forbidden"},
		"PL-5 none at all":                 {reason: "and no KubeVirt here", noKubeVirt: true, want: "problem KubevirtConfigNotFound", says: "no KubevirtConfigs are available"},
		"PL-5 no fallback":                 {reason: "a named one counts", rest: ", spec: {kubevirtConfigRef: gone}", configs: all, want: "problem KubevirtConfigNotFound", says: `"gone"`},
		"PL-6 the old one holds it":        {reason: "a Machine never moves", rest: ", spec: {kubevirtConfigRef: b}, status: {kubevirtConfigRef: a}", configs: all, clusters: clusterMap{"a": up(t, "ua", ownVM), "b": up(t, "ub")}, want: "conflict on a PlacementConflict", says: `"b"`},
		"PL-6 the old one holds a claim":   {reason: "its data stays", rest: ", spec: {kubevirtConfigRef: b}, status: {kubevirtConfigRef: a}", configs: all, clusters: clusterMap{"a": up(t, "ua", ownClaim), "b": up(t, "ub")}, want: "conflict on a PlacementConflict"},
		"PL-6 the old one holds nothing":   {reason: "the new choice counts", rest: ", spec: {kubevirtConfigRef: b}, status: {kubevirtConfigRef: a}", configs: all, clusters: clusterMap{"a": up(t, "ua", otherVM), "b": up(t, "ub")}, want: "at b"},
		"PL-6 the old one is down":         {reason: "nobody can tell", meta: ", finalizers: [machine.vitistack.io/cleanup]", rest: ", spec: {kubevirtConfigRef: b}, status: {kubevirtConfigRef: a}", configs: all, clusters: clusterMap{"a": down("a"), "b": up(t, "ub")}, want: "undecided"},
		"PL-6 down, and nothing was made":  {reason: "the Machine was never held", rest: ", spec: {kubevirtConfigRef: b}, status: {kubevirtConfigRef: a}", configs: all, clusters: clusterMap{"a": down("a"), "b": up(t, "ub")}, want: "at b"},
		"PL-6 a new name of the cluster":   {reason: "nothing moves", rest: ", spec: {kubevirtConfigRef: b}, status: {kubevirtConfigRef: a}", configs: all, clusters: clusterMap{"a": up(t, "ua", ownVM), "b": up(t, "ua")}, want: "at b"},
		"PL-6 the old one is gone":         {reason: "nobody can tell", meta: ", finalizers: [machine.vitistack.io/cleanup]", rest: ", spec: {kubevirtConfigRef: b}, status: {kubevirtConfigRef: a}", configs: []string{"b"}, clusters: clusterMap{"b": up(t, "ub")}, want: "problem PlacementConflict", says: `"a"`},
		"PL-6 the new one does not exist":  {reason: "status follows the old", rest: ", spec: {kubevirtConfigRef: gone}, status: {kubevirtConfigRef: a}", configs: all, clusters: clusterMap{"a": up(t, "ua", ownVM)}, want: "conflict on a KubevirtConfigNotFound"},
		"PL-6 it was here":                 {reason: "KubevirtConfigs came later", meta: ", finalizers: [machine.vitistack.io/cleanup]", configs: all, clusters: clusterMap{"": up(t, "uh", ownVM), "a": up(t, "ua"), "b": up(t, "ub")}, want: "here"},
		"PL-6 it was here, and a search":   {reason: "finds it under the supervisor's name", meta: ", finalizers: [machine.vitistack.io/cleanup]", configs: all, clusters: clusterMap{"": up(t, "uh", ownVM), "a": up(t, "ua"), "b": up(t, "uh", ownVM)}, want: "assigned b"},
		"PL-6 it was here, a config down":  {reason: "it is known where it is", meta: ", finalizers: [machine.vitistack.io/cleanup]", configs: all, clusters: clusterMap{"": up(t, "uh", ownVM), "a": down("a"), "b": up(t, "uh", ownVM)}, want: "assigned b"},
		"PL-6 it was here and shall go":    {reason: "a Machine never moves", rest: ", spec: {kubevirtConfigRef: b}, status: {vmName: vm-web}", configs: all, clusters: clusterMap{"": up(t, "uh", ownVM), "b": up(t, "ub")}, want: "conflict on  PlacementConflict", says: "management cluster"},
		"PL-6 it was here, under a name":   {reason: "the supervisor has a KubevirtConfig", rest: ", spec: {kubevirtConfigRef: b}, status: {vmName: vm-web}", configs: all, clusters: clusterMap{"": up(t, "uh", ownVM), "b": up(t, "uh")}, want: "at b"},
		"PL-6 it was here and is no more":  {reason: "the search counts", meta: ", finalizers: [machine.vitistack.io/cleanup]", configs: []string{"a"}, clusters: clusterMap{"": up(t, "uh"), "a": up(t, "ua")}, want: "assigned a"},
		"PL-7 namespaced":                  {reason: "those of one namespace count", configs: []string{"a"}, namespace: "default", clusters: clusterMap{"a": up(t, "ua")}, want: "assigned a"},
		"PL-7 namespaced elsewhere":        {reason: "they do not count", configs: []string{"a"}, namespace: "other", want: "here"},
		"PL-8 auto":                        {reason: "no KubevirtConfigs are known", notServed: true, want: "here"},
		"PL-8 true":                        {reason: "where nothing is named", configs: all, settings: func(s *Settings) { s.SingleCluster = SingleTrue }, want: "here"},
		"PL-8 true, and named":             {reason: "ranks 1 to 3 count", rest: ", spec: {kubevirtConfigRef: a}", configs: all, settings: func(s *Settings) { s.SingleCluster = SingleTrue }, clusters: clusterMap{"a": up(t, "ua")}, want: "at a"},
		"PL-8 false":                       {reason: "never here", settings: func(s *Settings) { s.SingleCluster = SingleFalse }, want: "problem KubevirtConfigNotFound"},
		"CN-1 a Secret is missing":         {reason: "says which", rest: ", spec: {kubevirtConfigRef: a}", configs: all, clusters: clusterMap{"a": refusedConnection(`Secret "s" does not exist`)}, want: "problem KubevirtConfigInvalid", says: `Secret "s"`},
		"CN-5 a cluster is down":           {reason: "it is waited for", rest: ", spec: {kubevirtConfigRef: a}", configs: all, clusters: clusterMap{"a": down("a")}, want: "unreachable a"},
		"CN-6 another is refused":          {reason: "it is none of its business", rest: ", spec: {kubevirtConfigRef: b}", configs: all, clusters: clusterMap{"a": refusedConnection("no"), "b": up(t, "ub")}, want: "at b"},

		"DL-6 the status":          {reason: "what was recorded counts first", meta: goingMeta + ", annotations: {vitistack.io/kubevirt-config: b}", rest: ", status: {kubevirtConfigRef: a}, spec: {kubevirtConfigRef: c}", configs: all, clusters: clusterMap{"a": up(t, "ua")}, want: "at a"},
		"DL-6 the annotation":      {reason: "then what was noted", meta: goingMeta + ", annotations: {vitistack.io/kubevirt-config: b}", rest: ", spec: {kubevirtConfigRef: a}", configs: all, clusters: clusterMap{"b": up(t, "ub")}, want: "at b"},
		"DL-6 the spec":            {reason: "then what was asked for", meta: goingMeta, rest: ", spec: {kubevirtConfigRef: a}", configs: all, clusters: clusterMap{"a": up(t, "ua")}, want: "at a"},
		"DL-6 searched":            {reason: "where something is", meta: goingMeta, configs: all, clusters: clusterMap{"": up(t, "uh"), "a": up(t, "ua"), "b": up(t, "ub", ownClaim)}, want: "assigned b"},
		"DL-6 searched here too":   {reason: "it may have been made here", meta: goingMeta, configs: all, clusters: clusterMap{"": up(t, "uh", ownVM), "a": up(t, "ua"), "b": up(t, "ub")}, want: "here"},
		"DL-6 in two":              {reason: "one after the other", meta: goingMeta, configs: all, clusters: clusterMap{"": up(t, "uh"), "a": up(t, "ua", ownVM), "b": up(t, "ub", ownVM)}, want: "more than a"},
		"DL-6 none":                {reason: "only the record is left", meta: goingMeta, configs: all, clusters: clusterMap{"": up(t, "uh"), "a": up(t, "ua", otherVM), "b": up(t, "ub", bareVM)}, want: "nothing"},
		"DL-6 one is down":         {reason: "it may hold something", meta: goingMeta, configs: all, clusters: clusterMap{"": up(t, "uh"), "a": down("a"), "b": up(t, "ub")}, want: "undecided"},
		"DL-6 only here":           {reason: "no KubevirtConfig", meta: goingMeta, want: "here"},
		"DL-7 unreachable":         {reason: "it is waited for", meta: goingMeta, rest: ", status: {kubevirtConfigRef: a}", configs: all, clusters: clusterMap{"a": down("a")}, want: "unreachable a"},
		"DL-7 the config is gone":  {reason: "there is a way out", meta: goingMeta, rest: ", status: {kubevirtConfigRef: gone}", configs: all, want: "problem KubevirtConfigNotFound", says: v1alpha1.AnnotationAbandonRemote},
		"DL-7 the Secret is wrong": {reason: "there is a way out", meta: goingMeta, rest: ", status: {kubevirtConfigRef: a}", configs: all, clusters: clusterMap{"a": refusedConnection("no")}, want: "problem KubevirtConfigInvalid", says: v1alpha1.AnnotationAbandonRemote},
	} {
		t.Run(name, func(t *testing.T) {
			settings := DefaultSettings()
			if c.settings != nil {
				c.settings(&settings)
			}
			served := Served{KubevirtConfigs: !c.notServed, VirtualMachines: !c.noKubeVirt}
			for _, config := range c.configs {
				obj := parse(t, `{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: `+config+`}, spec: {kubeconfigSecretRef: s}}`)
				obj.SetNamespace(c.namespace)
				served.Configs = append(served.Configs, *obj)
			}
			machine := parse(t, `{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, namespace: team-a, uid: uid-web`+c.meta+`}`+c.rest+`}`)
			target := placed(t, machine, settings, served, c.clusters)
			sees(t, "the placement ("+c.reason+")", told(target), c.want)
			for _, problem := range []*Problem{target.Problem, target.Conflict} {
				if problem != nil {
					holdsText(t, "the message", problem.Message, c.says)
				}
			}
		})
	}
}

func TestAKubevirtConfigThatGoesStillHoldsItsMachines(t *testing.T) {
	going := parse(t, `{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: a, deletionTimestamp: "2026-11-21T00:00:00Z", finalizers: [x]}}`)
	served := Served{KubevirtConfigs: true, Configs: []unstructured.Unstructured{*going}}
	for rest, want := range map[string]string{
		``: "problem KubevirtConfigNotFound",
		`, annotations: {vitistack.io/kubevirt-config: a}`:             "at a",
		`, annotations: {vitistack.io/kubevirt-config: a}` + goingMeta: "at a",
	} {
		machine := parse(t, `{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, uid: uid-web`+rest+`}}`)
		sees(t, "the placement of {"+rest+"}", told(placed(t, machine, DefaultSettings(), served, clusterMap{"a": up(t, "ua")})), want)
	}
}

func TestTheSecretOfAKubevirtConfig(t *testing.T) {
	for manifest, want := range map[string]string{
		`metadata: {name: a}, spec: {kubeconfigSecretRef: s}`:                                              "default/s",
		`metadata: {name: a, namespace: infra}, spec: {kubeconfigSecretRef: s}`:                            "infra/s",
		`metadata: {name: a, namespace: infra}, spec: {kubeconfigSecretRef: s, secretNamespace: explicit}`: "explicit/s",
		`metadata: {name: a}`: "default/",
	} {
		namespace, name := KubeconfigSecret(parse(t, `{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, `+manifest+`}`), DefaultSettings())
		sees(t, "CN-1: the Secret of "+manifest, namespace+"/"+name, want)
	}
}

func TestAnAssignedMachineIsToldWhere(t *testing.T) {
	w := newWorld(t, `{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: a}, spec: {kubeconfigSecretRef: s}}`)
	w.sights["a"] = up(t, "ua")
	w.machine(`template: small`)
	o := w.reconcile("web")
	if got, want := writesOf(o), "configured Machine, created Namespace, created NetworkConfiguration, created PersistentVolumeClaim, created VirtualMachine"; got != want {
		t.Errorf("RC-3, PL-9: the writes are %q, want %q", got, want)
	}
	machine := w.must(kinds.Machines, "web")
	sees(t, "PL-2: the annotation", machine.GetAnnotations()[v1alpha1.AnnotationKubevirtConfig], "a")
	sees(t, "PL-2: the status", w.status("web").KubevirtConfigRef, "a")
	if len(o.conclusion.Log) != 1 || o.conclusion.Log[0] != "Automatically assigned KubevirtConfig to machine" || o.conclusion.LogFields["kubevirtConfig"] != "a" {
		t.Errorf("PL-2: the log says %q %v", o.conclusion.Log, o.conclusion.LogFields)
	}
	sees(t, "PL-9: the label", w.must(kind.Namespaces, ns).GetLabels()[v1alpha1.LabelManagedBy], v1alpha1.DefaultManagedBy)
	for _, entry := range o.outcomes {
		if remote := entry.Entry.Cluster == "a"; remote != (entry.Entry.Resource.String() != kinds.Machines.String() && entry.Entry.Resource.String() != kinds.NetworkConfigurations.String()) {
			t.Errorf("%s goes to cluster %q", entry.Entry, entry.Entry.Cluster)
		}
	}
	if refs := w.must(kinds.VirtualMachines, "vm-web").GetOwnerReferences(); len(refs) > 0 {
		t.Errorf("ID-8: a virtual machine on another cluster has the owners %v", refs)
	}
	if o := w.settle("web"); len(o.conclusion.Log) > 0 {
		t.Errorf("RC-4: it says again %q", o.conclusion.Log)
	}
}

func TestTheSupervisorUnderANameOwnsItsVirtualMachines(t *testing.T) {
	w := newWorld(t, `{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: a}, spec: {kubeconfigSecretRef: s}}`)
	sight := up(t, "uid-here")
	sight.Same = true
	w.sights["a"] = sight
	w.machine(`template: small`)
	w.settle("web")
	if refs := w.must(kinds.VirtualMachines, "vm-web").GetOwnerReferences(); len(refs) != 1 || string(refs[0].UID) != "uid-web" {
		t.Errorf("ID-8: the owners are %v", refs)
	}
}

func TestAClusterThatIsDownLeavesTheStatus(t *testing.T) {
	w := newWorld(t, `{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: a}, spec: {kubeconfigSecretRef: s}}`)
	w.sights["a"] = up(t, "ua")
	w.machine(`template: small`)
	w.settle("web")
	w.kubevirt("vm-web")
	w.settle("web")
	before := w.status("web")
	w.sights["a"] = down("a")
	o := w.settle("web")
	after := w.status("web")
	sees(t, "CN-5: Ready", w.ready("web"), "Unknown ClusterUnreachable")
	sees(t, "CN-5: the class", string(o.conclusion.Class), string(plan.Waiting))
	sees(t, "CN-5: phase, addresses, virtual machine", after.Phase+after.IPAddresses[0]+after.VMName, before.Phase+before.IPAddresses[0]+before.VMName)
	w.deleteMachine("web")
	o = w.reconcile("web")
	sees(t, "DL-7: Ready", w.ready("web"), "Unknown ClusterUnreachable")
	sees(t, "DL-7: the writes", writesOf(o), "")
	w.sights["a"] = up(t, "ua")
	for range 6 {
		if w.get(kinds.Machines, "web") != nil {
			w.remove(kinds.VirtualMachineInstances, "vm-web")
			w.reconcile("web")
		}
	}
	if w.get(kinds.Machines, "web") != nil || w.get(kinds.VirtualMachines, "vm-web") != nil {
		t.Errorf("DL-7: the cluster is back, and there are %v", w.names())
	}
	if w.get(kind.Namespaces, ns) == nil {
		t.Error("DL-9: the namespace was deleted")
	}
}

func TestAMisplacedMachineIsStillFollowed(t *testing.T) {
	w := newWorld(t,
		`{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: a}, spec: {kubeconfigSecretRef: s}}`,
		`{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: b}, spec: {kubeconfigSecretRef: s}}`)
	w.sights["a"], w.sights["b"] = up(t, "ua"), up(t, "ub")
	w.machine(`template: small, kubevirtConfigRef: a`)
	w.settle("web")
	w.sights["a"] = up(t, "ua", ownVM)
	w.respec(`template: large, kubevirtConfigRef: b`)
	w.kubevirt("vm-web")
	o := w.settle("web")
	sees(t, "PL-6: Ready", w.ready("web"), "False PlacementConflict")
	sees(t, "PL-6: the class", string(o.conclusion.Class), string(plan.Terminal))
	sees(t, "ST-1: the phase follows the virtual machine", w.status("web").Phase, v1alpha1.PhaseRunning)
	sees(t, "PL-6: the status", w.status("web").KubevirtConfigRef, "a")
	sees(t, "PL-6: the annotation", w.must(kinds.Machines, "web").GetAnnotations()[v1alpha1.AnnotationKubevirtConfig], "a")
}

func TestAnUndecidedSearchIsTriedAgain(t *testing.T) {
	w := newWorld(t,
		`{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: a}, spec: {kubeconfigSecretRef: s}}`,
		`{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: b}, spec: {kubeconfigSecretRef: s}}`)
	w.sights["a"], w.sights["b"] = down("a"), up(t, "ub")
	w.machine(`template: small`)
	o := w.settle("web")
	sees(t, "PL-4: the class", string(o.conclusion.Class), string(plan.Retry))
	holdsText(t, "the message", w.message("web", "Ready"), `"a"`)
	if w.get(kinds.VirtualMachines, "vm-web") != nil {
		t.Error("PL-4: a virtual machine was made")
	}
}
