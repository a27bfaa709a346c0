package decide

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestHostnames(t *testing.T) {
	for name, c := range map[string]struct{ reason, url, want string }{
		"plain":                   {"the host of the URL", "https://example.com", "example.com"},
		"bare host":               {"a scheme is not needed", "example.com", "example.com"},
		"bare host and port":      {"nor with a port", "example.com:8443", "example.com"},
		"port":                    {"the endpoint has a port of its own", "https://example.com:8443", "example.com"},
		"path and query":          {"only the host counts", "https://example.com/a/b?c=d#e", "example.com"},
		"user":                    {"a user is no part of the host", "https://user:word@example.com", "example.com"},
		"slash":                   {"a slash at the end neither", "https://example.com/", "example.com"},
		"dot":                     {"a dot at the end means the same name", "https://example.com./", "example.com"},
		"case":                    {"names have no case", "HTTPS://API.Example.COM", "api.example.com"},
		"space":                   {"space around it is a slip", "  https://example.com \n", "example.com"},
		"one label":               {"a name may have one label", "https://localhost", "localhost"},
		"empty":                   {"nothing is no error", "", ""},
		"IPv4":                    {"no names are under an address", "https://192.0.2.1", "error"},
		"IPv6":                    {"no names are under an address", "https://[2001:db8::1]:6443/", "error"},
		"underscore":              {"it is in no hostname", "https://a_b.example.com", "error"},
		"wildcard":                {"a wildcard is no host", "https://*.example.com", "error"},
		"two dots":                {"an empty label", "https://a..example.com", "error"},
		"no host":                 {"a scheme alone", "https://", "error"},
		"bad escape":              {"no URL", "https://%zz", "error"},
		"space inside":            {"no URL", "https://exa mple.com", "error"},
		"label of 64":             {"a label has 63 characters", "https://" + strings.Repeat("a", 64) + ".com", "error"},
		"too long with name":      {"a name has 253 characters", "https://" + strings.Repeat(strings.Repeat("a", 60)+".", 4) + "com", "error"},
		"international, in ASCII": {"that is how DNS knows it", "https://xn--bcher-kva.example", "xn--bcher-kva.example"},
	} {
		t.Run(name, func(t *testing.T) {
			in := anInput(t, "", "")
			in.Config = aConfig(t, "externalURL: '"+strings.ReplaceAll(c.url, "\n", "")+"'")
			conclusion := carry(t, &in)
			got, _ := stored(in.Cluster)
			want, is := "team-a-prod."+c.want, "True Reconciled: "
			switch c.want {
			case "":
				want, is = "", "False WaitingForListenerHostname: config map key externalURL is absent or empty"
			case "error":
				want, is = "", "False InvalidHostname: "
			}
			if got != want {
				t.Errorf("%s: %q gives the host %q, want %q", c.reason, c.url, got, want)
			}
			if said := said(conclusion.Status, "APIEndpointReconciled"); !strings.HasPrefix(said, is) || strings.Contains(said, "aaaa") {
				t.Errorf("%s: %q gives the condition %q, want %q", c.reason, c.url, said, is)
			}
		})
	}
}

func TestHost(t *testing.T) {
	for name, c := range map[string]struct {
		reason, namespace, name string
		fails                   bool
	}{
		"usual":      {reason: "namespace and name are one label", namespace: "team-a", name: "prod"},
		"63":         {reason: "a label holds 63 characters", namespace: strings.Repeat("a", 31), name: strings.Repeat("b", 31)},
		"64":         {reason: "and no more", namespace: strings.Repeat("a", 32), name: strings.Repeat("b", 31), fails: true},
		"with a dot": {reason: "the second label is somebody else's", namespace: "team-a", name: "prod.b", fails: true},
		"numeric":    {reason: "digits are fine in a label", namespace: "1", name: "2"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := host(c.namespace, c.name, "example.com")
			if (err != nil) != c.fails || (err == nil && got != c.namespace+"-"+c.name+".example.com") {
				t.Errorf("%s: %q, %v", c.reason, got, err)
			}
		})
	}
}

func TestNamesakes(t *testing.T) {
	for name, c := range map[string]struct {
		reason, namespace, name string
		want                    []types.NamespacedName
	}{
		"none": {reason: "one dash can be in one place only", namespace: "a", name: "b"},
		"two": {
			reason: "each other dash may be the border", namespace: "a-b", name: "c",
			want: []types.NamespacedName{{Namespace: "a", Name: "b-c"}},
		},
		"three": {
			reason: "before and behind", namespace: "a-b", name: "c-d",
			want: []types.NamespacedName{{Namespace: "a", Name: "b-c-d"}, {Namespace: "a-b-c", Name: "d"}},
		},
		"double dash": {
			reason: "no name begins or ends with a dash", namespace: "a", name: "b--c",
		},
		"dotted": {reason: "it gets no host at all", namespace: "a-b", name: "c.d"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Namesakes(c.namespace, c.name)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}
