package v1alpha3

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOwnerCluster(t *testing.T) {
	owner := func(apiVersion, kind, name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name}
	}
	labelled := map[string]string{LabelClusterName: "labelled"}
	cases := map[string]struct {
		reason string
		pool   metav1.ObjectMeta
		want   string
	}{
		"Reference":         {"the owner", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner("dockyards.io/v1alpha3", "Cluster", "a")}}, "a"},
		"AnyVersion":        {"objects outlive versions", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner("dockyards.io/v1alpha2", "Cluster", "a")}}, "a"},
		"ClusterAPI":        {"Cluster API has a kind of that name", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner("cluster.x-k8s.io/v1beta1", "Cluster", "a")}}, ""},
		"OtherKind":         {"an Organization is no Cluster", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner("dockyards.io/v1alpha3", "Organization", "a")}}, ""},
		"First":             {"there may be several", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner("v1", "Secret", "s"), owner("dockyards.io/v1alpha3", "Cluster", "a"), owner("dockyards.io/v1alpha3", "Cluster", "b")}}, "a"},
		"Label":             {"the label stands in for a missing reference", metav1.ObjectMeta{Labels: labelled}, "labelled"},
		"ReferenceDecides":  {"a label can be changed by hand", metav1.ObjectMeta{Labels: labelled, OwnerReferences: []metav1.OwnerReference{owner("dockyards.io/v1alpha3", "Cluster", "a")}}, "a"},
		"BrokenReference":   {"a reference that cannot be read is none", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner("a/b/c", "Cluster", "a")}}, ""},
		"NothingAtAll":      {"no owner", metav1.ObjectMeta{}, ""},
		"GroupWithoutSlash": {"core has no Cluster", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner("dockyards.io", "Cluster", "a")}}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := OwnerCluster(&NodePool{ObjectMeta: tc.pool}); got != tc.want {
				t.Errorf("%s: OwnerCluster = %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestDefaultReleaseIsMarkedByPresence(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "": true, "false": true} {
		release := &Release{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationDefaultRelease: value}}}
		if got := IsDefaultRelease(release); got != want {
			t.Errorf("value %q: IsDefaultRelease = %v, want %v", value, got, want)
		}
	}
	if IsDefaultRelease(&Release{}) {
		t.Error("an unmarked Release is the default")
	}
}

func TestEndpoint(t *testing.T) {
	for name, tc := range map[string]struct {
		endpoint ClusterAPIEndpoint
		want     string
	}{
		"a name":                {ClusterAPIEndpoint{Host: "a.example.org", Port: 6443}, "https://a.example.org:6443"},
		"an address":            {ClusterAPIEndpoint{Host: "10.0.0.7", Port: 443}, "https://10.0.0.7:443"},
		"an IPv6 address":       {ClusterAPIEndpoint{Host: "fd00::1", Port: 6443}, "https://[fd00::1]:6443"},
		"a zero struct":         {ClusterAPIEndpoint{}, ""},
		"a host without port":   {ClusterAPIEndpoint{Host: "a"}, ""},
		"a port without a host": {ClusterAPIEndpoint{Port: 6443}, ""},
	} {
		if got := tc.endpoint.URL(); got != tc.want || tc.endpoint.Valid() != (tc.want != "") {
			t.Errorf("%s: URL = %q, want %q; Valid = %v", name, got, tc.want, tc.endpoint.Valid())
		}
	}
}

func TestExpiry(t *testing.T) {
	cluster := &Cluster{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: before}}
	if Expiry(cluster, nil) != nil {
		t.Error("an object without a duration expires")
	}
	if got := Expiry(cluster, &metav1.Duration{Duration: time.Hour}); got == nil || !got.Equal(now.Truncate(time.Second)) {
		t.Errorf("Expiry = %v, want an hour after the creation", got)
	}
}
