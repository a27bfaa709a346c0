package decide

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

func digest(text string, count int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:count]
}

func TestNames(t *testing.T) {
	long := strings.Repeat("x", 60)
	for name, c := range map[string]struct {
		reason    string
		workload  string
		workloads []string
		clusters  []string
		services  []string
		want      []string
	}{
		"plain":              {reason: "WR6", services: []string{"target/front"}, want: []string{"web-front"}},
		"two namespaces":     {reason: "the target namespace has it", services: []string{"a/front", "target/front"}, want: []string{"web-front-" + digest("a/front", 8), "web-front"}},
		"neither is target":  {reason: "the first has it", services: []string{"b/front", "a/front"}, want: []string{"web-front", "web-front-" + digest("b/front", 8)}},
		"too long":           {reason: "a beginning of 54", services: []string{"target/" + long}, want: []string{"web-" + long[:50] + "-" + digest("target/"+long, 8)}},
		"a dot":              {reason: "a legal beginning", workload: "my.web", services: []string{"target/front"}, want: []string{"my-" + digest("target/front", 8)}},
		"a digit":            {reason: "it has no legal beginning", workload: "1web", services: []string{"target/front"}, want: []string{"w1web-front-" + digest("target/front", 8)}},
		"a crafted clash":    {reason: "the plain name stays", services: []string{"a/front", "target/front", "target/front-" + digest("a/front", 8)}, want: []string{"web-front-" + digest("a/front", 16), "web-front", "web-front-" + digest("a/front", 8)}},
		"a longer Workload":  {reason: "X20", workloads: []string{"web-shop"}, services: []string{"target/shop-front"}, want: []string{"web-" + digest("target/shop-front", 8)}},
		"a shorter Workload": {reason: "X20", workload: "web-shop", workloads: []string{"web"}, services: []string{"target/front"}, want: []string{"web-shop-front"}},
		"a Cluster's route":  {reason: "X20", clusters: []string{"web-prod"}, services: []string{"target/prod", "target/prod-lb"}, want: []string{"web-prod-" + digest("target/prod", 8), "web-prod-lb-" + digest("target/prod-lb", 8)}},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			if c.workload != "" {
				in.Workload.SetName(c.workload)
			}
			in.Workloads = append(c.workloads, in.Workload.GetName())
			for _, cluster := range c.clusters {
				in.Clusters = append(in.Clusters, *newCluster(t, "team", cluster, 0))
			}
			for _, service := range c.services {
				ns, name, _ := strings.Cut(service, "/")
				in.Remote.Services = append(in.Remote.Services, remoteService(t, ns, name, web))
			}
			var got []string
			for _, w := range look(in).ways {
				got = append(got, w.name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestAMirrorKeepsANameThatAnotherWorkloadCouldHave(t *testing.T) {
	in := newInput(t)
	in.Remote.Services = []unstructured.Unstructured{remoteService(t, "target", "shop-front", web)}
	in = settled(t, in)
	in.Workloads = append(in.Workloads, "web-shop")
	if got := planned(in); len(got) > 0 {
		t.Errorf("TK2: nothing is made anew, and it plans %v", got)
	}
}

func TestTheOldestServicesAreMirrored(t *testing.T) {
	in := newInput(t, "a.example")
	in.Limits.Services = 2
	for i, name := range []string{"a", "b", "c", "d", "e", "f"} {
		service := remoteService(t, "target", name, web)
		service.SetCreationTimestamp(stamp(-i))
		in.Remote.Services = append(in.Remote.Services, service)
	}
	in = settled(t, in)
	if len(in.Services) != 2 || find(in.Services, "team", "web-e") == nil || find(in.Services, "team", "web-f") == nil {
		t.Errorf("WR13: the mirrors are %v", planned(in))
	}
	if is, message := concluded(in); is != "True Reconciled" || message != `beyond the limit of 2 Services, and not mirrored: "target/d", "target/c", "target/b" and 1 more` {
		t.Errorf("WR13: the condition is %s (%s)", is, message)
	}
}

func TestRoutesGiveUpWhatIsOthersBeforeAnythingElse(t *testing.T) {
	in := newInput(t, "a.example", "b.example")
	in.Remote.Services = []unstructured.Unstructured{remoteService(t, "target", "front", web)}
	in = settled(t, in)
	in.Clusters = append(in.Clusters, *newCluster(t, "x", "older", 5, "a.example"))
	in.Remote.Services = append(in.Remote.Services, remoteService(t, "target", "another", web))
	if got := planned(in); len(got) != 5 || !strings.HasPrefix(got[0], "patch httproutes") || !strings.HasPrefix(got[1], "patch tlsroutes") {
		t.Errorf("X20: the order is %v", got)
	}
	for name, wait := range map[string]func(in *Input){
		"no Gateway": func(in *Input) { in.Gateway = nil },
		"silence":    func(in *Input) { in.Remote.Fault = &fault.Fault{Class: fault.Unavailable, Cluster: "team/prod"} },
		"no Cluster": func(in *Input) { in.CAPICluster = nil },
	} {
		waiting := in
		waiting.Clusters = slices.Clone(in.Clusters)
		wait(&waiting)
		if got := planned(waiting); len(got) != 2 {
			t.Errorf("X20, %s: it plans %v", name, got)
		}
		for _, entry := range entries(waiting) {
			if diff := cmp.Diff([]string{"*.b.example"}, hostnames(entry.Object)); diff != "" {
				t.Errorf("X20, %s (-want +got):\n%s", name, diff)
			}
		}
		waiting.Clusters[1] = *newCluster(t, "x", "older", 5, "a.example", "b.example")
		if got := planned(waiting); len(got) != 2 || !strings.HasPrefix(got[0], "delete httproutes") {
			t.Errorf("WR9, %s: it plans %v", name, got)
		}
	}
}

func TestAnIncompleteListRemovesNothing(t *testing.T) {
	in := newInput(t, "a.example")
	in.Remote.Services = []unstructured.Unstructured{remoteService(t, "target", "front", web)}
	in = settled(t, in)
	in.Remote = Remote{Incomplete: true}
	if got := planned(in); len(got) > 0 {
		t.Errorf("WR14: it plans %v", got)
	}
	in.Clusters[0] = *newCluster(t, "team", "prod", 0, "other.example")
	if got := planned(in); len(got) != 2 || !strings.HasPrefix(got[0], "delete httproutes") {
		t.Errorf("WR9: without a hostname no route stays: %v", got)
	}
}

// own: X10, in which cases an object that has no owner is taken over.
func TestWhoseAnObjectIs(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		do     func(obj *unstructured.Unstructured)
		want   string
	}{
		"ours":               {reason: "at the fixpoint", do: func(*unstructured.Unstructured) {}},
		"without an owner":   {reason: "it says the same", do: func(obj *unstructured.Unstructured) { obj.SetOwnerReferences(nil) }, want: "patch services team/web-front"},
		"and something else": {reason: "X10", do: func(obj *unstructured.Unstructured) { obj.SetOwnerReferences(nil); specOf(obj)["selector"] = nil }, want: "conflict"},
		"another's":          {reason: "X10", do: func(obj *unstructured.Unstructured) { refer(obj, "Workload", "other") }, want: "conflict"},
		"of a life before":   {reason: "it is about to be collected", do: func(obj *unstructured.Unstructured) { refer(obj, "Workload", "before") }, want: "conflict"},
		"ours and another's": {reason: "the first has it", do: func(obj *unstructured.Unstructured) {
			obj.SetOwnerReferences(append([]metav1.OwnerReference{{APIVersion: "dockyards.io/v1alpha3", Kind: "Workload", Name: "o", UID: "o"}}, obj.GetOwnerReferences()...))
		}, want: "conflict"},
		"a person's label": {reason: "X8", do: func(obj *unstructured.Unstructured) { obj.SetLabels(map[string]string{"mine": "x"}) }},
		"another type":     {reason: "WR4", do: func(obj *unstructured.Unstructured) { specOf(obj)["type"] = "NodePort" }, want: "patch services team/web-front"},
		"going":            {reason: "X9", do: func(obj *unstructured.Unstructured) { at := stamp(0); obj.SetDeletionTimestamp(&at) }, want: "going"},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			in.Remote.Services = []unstructured.Unstructured{remoteService(t, "target", "front", web)}
			in = settled(t, in)
			in.Clusters[0] = *newCluster(t, "team", "prod", 0, "a.example")
			in = settled(t, in)
			c.do(&in.Services[0])
			is, message := concluded(in)
			got := strings.Join(planned(in), ", ")
			switch {
			case strings.Contains(message, "belongs to somebody else") && is == "False NameConflict":
				// Its own routes must not lead to somebody else's Service.
				if !strings.HasPrefix(got, "delete httproutes") || strings.Contains(got, "services ") {
					t.Errorf("%s: it plans %s", c.reason, got)
				}
				got = "conflict"
			case strings.Contains(message, "is being deleted"):
				got = "going"
			}
			if got != c.want {
				t.Errorf("%s: it is %q (%s, %s), want %q", c.reason, got, is, message, c.want)
			}
		})
	}
}

func refer(obj *unstructured.Unstructured, kind, uid string) {
	refs := obj.GetOwnerReferences()
	refs[0].Kind, refs[0].UID = kind, "uid-of-"+refs[0].UID
	refs[0].Name = uid
	obj.SetOwnerReferences(refs)
}

func TestWhatServersAnswer(t *testing.T) {
	failed := func(f fault.Fault) plan.Outcome {
		return plan.Outcome{Entry: plan.Entry{Cluster: f.Cluster, Verb: plan.Patch}, Result: plan.Failed, Fault: &f}
	}
	for name, c := range map[string]struct {
		reason  string
		outcome plan.Outcome
		want    string
		class   plan.Class
	}{
		"refused here":     {"X16", failed(fault.Fault{Class: fault.Refused, Code: 422, Call: "create x", Message: "bad"}), "False ErrorReconciling", plan.Retry},
		"an outage here":   {"X16", failed(fault.Fault{Class: fault.Unavailable, Code: 503, Call: "create x", Message: "later 17"}), "False ErrorReconciling", plan.Retry},
		"not served":       {"it may be installed", failed(fault.Fault{Class: fault.NotServed, Code: 404, Call: "create x"}), "False ErrorReconciling", plan.Waiting},
		"silence there":    {"WR2", failed(fault.Fault{Class: fault.Unavailable, Cluster: "team/prod", Call: "patch x"}), "Unknown ClusterUnreachable", plan.Waiting},
		"refused there":    {"WR2", failed(fault.Fault{Class: fault.Refused, Code: 403, Cluster: "team/prod", Call: "patch x"}), "False ErrorReconciling", plan.Waiting},
		"gone there":       {"its event comes", failed(fault.Fault{Class: fault.Refused, Code: 404, Cluster: "team/prod", Call: "patch x"}), "True Reconciled", plan.Done},
		"too many to drop": {"the next call goes on", plan.Outcome{Result: plan.Capped}, "False ErrorReconciling", plan.Retry},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t, "a.example")
			in.Remote.Services = []unstructured.Unstructured{remoteService(t, "target", "front", web)}
			conclusion := Conclude(time.Unix(9, 0), in, nil, plan.Outcomes{c.outcome})
			is, message := concluded(in, c.outcome)
			if is != c.want || conclusion.Class != c.class || strings.Contains(message, "17") {
				t.Errorf("%s: it is %s (%s), class %s", c.reason, is, message, conclusion.Class)
			}
			bad := strings.HasPrefix(is, "False")
			if (len(conclusion.Events) == 1) != bad {
				t.Errorf("X18: the Events are %v", conclusion.Events)
			}
		})
	}
}

func TestJoinKeepsWithinItsRoomAndSaysWhatIsLeftOut(t *testing.T) {
	var all []string
	for i := range 100 {
		all = append(all, strings.Repeat("ä", i))
		if line := join(all); len(line) > messageMax {
			t.Fatalf("%d texts make %d bytes", i, len(line))
		}
	}
	if got := join([]string{"a"}, nil, []string{"b", "c"}); got != "a; b; c" {
		t.Errorf("it is %q", got)
	}
	if got := join([]string{strings.Repeat("x", 300), "b"}); len(got) > messageMax || !strings.HasSuffix(got, "...; and 1 more") {
		t.Errorf("it is %q", got)
	}
}
