package dockyards

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func configOf(data map[string]any) Config {
	return ReadConfig(&unstructured.Unstructured{Object: map[string]any{"data": data}})
}

func TestAbsentEmptyAndMissingAreThreeThings(t *testing.T) {
	if ReadConfig(nil).Found || !configOf(nil).Found {
		t.Error("a config map without data exists, one that was not read does not")
	}
	c := configOf(map[string]any{KeyHTTPProxy: "", KeyNoProxy: "a", KeyHTTPSProxy: int64(1)})
	for key, want := range map[string]bool{KeyHTTPProxy: true, KeyNoProxy: true, KeyHTTPSProxy: false, KeyNTPServers: false} {
		if _, present := c.Value(key); present != want {
			t.Errorf("key %s is present: %v", key, present)
		}
	}
}

func TestTimeServersAreTrimmedAndNamedOnce(t *testing.T) {
	cases := map[string]struct {
		value string
		want  []string
	}{
		"in their order":  {"b,a", []string{"b", "a"}},
		"trimmed":         {" a ,\tb\n", []string{"a", "b"}},
		"the first stays": {"a,b,a", []string{"a", "b"}},
		"nothing":         {"", nil},
		"only commas":     {" ,, ", nil},
	}
	for name, tc := range cases {
		got, present := configOf(map[string]any{KeyNTPServers: tc.value}).NTPServers()
		if !slices.Equal(got, tc.want) || !present {
			t.Errorf("%s: %q gives %q", name, tc.value, got)
		}
	}
	if _, present := configOf(nil).NTPServers(); present {
		t.Error("a key that is absent is not present")
	}
}

func TestTheHostnameIsTheHostOfTheURLAlone(t *testing.T) {
	cases := map[string]struct{ value, want string }{
		"a URL":                {"https://dockyards.example.com", "dockyards.example.com"},
		"with everything":      {"https://u:p@Dockyards.Example.com:8443/path/?q=1#f", "dockyards.example.com"},
		"a bare host":          {"dockyards.example.com", "dockyards.example.com"},
		"a bare host and port": {"dockyards.example.com:8443", "dockyards.example.com"},
		"a trailing dot":       {"https://dockyards.example.com./", "dockyards.example.com"},
		"blanks around it":     {" https://a.b \n", "a.b"},
		"nothing":              {"  ", ""},
	}
	for name, tc := range cases {
		got, err := configOf(map[string]any{KeyExternalURL: tc.value}).Hostname()
		if got != tc.want || err != nil {
			t.Errorf("%s: %q gives %q %v", name, tc.value, got, err)
		}
	}
	for name, value := range map[string]string{
		"no URL": "https://a b", "no host": "https://:443", "an underscore": "https://a_b.c", "a label too long": "https://" + strings.Repeat("a", 254),
	} {
		got, err := configOf(map[string]any{KeyExternalURL: value}).Hostname()
		if err == nil || got != "" {
			t.Errorf("%s: %q gives %q", name, value, got)
		} else if strings.Contains(err.Error(), value) {
			t.Errorf("%s: the value stands in the error: %v", name, err)
		}
	}
}

func TestThePublicNamespaceHasADefault(t *testing.T) {
	if got := configOf(nil).PublicNamespace(); got != "dockyards-public" {
		t.Errorf("by default %q", got)
	}
	if got := configOf(map[string]any{KeyPublicNamespace: "x"}).PublicNamespace(); got != "x" {
		t.Errorf("%q", got)
	}
}
