package dockyards

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzConfigMap: whatever the shared config map says, its host is a DNS name or an
// error that does not tell the value.
func FuzzConfigMap(f *testing.F) {
	for _, seed := range []string{
		"https://example.com:8443/x?y#z", "example.com.", "https://user:password@EXAMPLE.com", "https://[::1]", "https://192.0.2.1", "//", "https://%zz", "http://a_b", "\x00",
	} {
		f.Add(seed, "time.a, ,time.b,time.a", "")
	}
	f.Fuzz(func(t *testing.T, url, servers, namespace string) {
		c := ReadConfig(&unstructured.Unstructured{Object: map[string]any{"data": map[string]any{
			KeyExternalURL: url, KeyNTPServers: servers, KeyPublicNamespace: namespace, "other": int64(7),
		}}})
		host, err := c.Hostname()
		if err == nil && host != "" && len(validation.IsDNS1123Subdomain(host)) > 0 {
			t.Errorf("%q has the host %q", url, host)
		}
		if err != nil && len(url) > 12 && strings.Contains(err.Error(), url) {
			t.Errorf("the error tells the value: %v", err)
		}
		list, present := c.NTPServers()
		for i, server := range list {
			if server == "" || strings.TrimSpace(server) != server || strings.Contains(server, ",") || slices.Index(list, server) != i {
				t.Errorf("%q has the servers %q", servers, list)
			}
		}
		if !present || c.PublicNamespace() == "" {
			t.Error("the config map has time servers and always a namespace")
		}
	})
}

// FuzzSettings: whatever an environment says, a setting is used or refused, and what
// was refused names its variable.
func FuzzSettings(f *testing.F) {
	f.Add(byte(0), "shared")
	f.Add(byte(7), "8Gi")
	f.Add(byte(10), "10.0.0.0/8, !10.1.0.0/16")
	f.Add(byte(12), "v1.12")
	f.Fuzz(func(t *testing.T, which byte, value string) {
		v := Variables()[int(which)%len(Variables())]
		s, err := ParseSettings(func(name string) (string, bool) { return value, name == v.Name })
		if err != nil {
			if !strings.Contains(err.Error(), v.Name) {
				t.Errorf("the error does not name %s: %v", v.Name, err)
			}
			return
		}
		if s.ImageSize.Sign() <= 0 || s.TalosVersion == "" || s.AccessMode == "" {
			t.Errorf("%s=%q makes %+v", v.Name, value, s)
		}
	})
}
