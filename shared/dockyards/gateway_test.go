package dockyards

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestGatewayAddress(t *testing.T) {
	for name, c := range map[string]struct {
		reason, addresses string
		want              Address
		none              bool
	}{
		"none":              {reason: "the Gateway has none yet", addresses: "[]", none: true},
		"missing":           {reason: "nor is there a list", addresses: "null", none: true},
		"IPv4":              {reason: "the usual one", addresses: "[{type: IPAddress, value: 192.0.2.1}]", want: Address{IP: "192.0.2.1"}},
		"without a type":    {reason: "an address without a type is an IP address", addresses: "[{value: 192.0.2.1}]", want: Address{IP: "192.0.2.1"}},
		"first of two":      {reason: "the first counts, not the last", addresses: "[{value: 192.0.2.1}, {value: 192.0.2.2}]", want: Address{IP: "192.0.2.1"}},
		"IPv4 behind IPv6":  {reason: "IPv4 goes before IPv6", addresses: "[{value: '2001:db8::1'}, {value: 192.0.2.1}]", want: Address{IP: "192.0.2.1"}},
		"IPv6":              {reason: "else the first IPv6 address", addresses: "[{type: Hostname, value: a.example.com}, {value: '2001:db8::1'}, {value: '2001:db8::2'}]", want: Address{IP: "2001:db8::1"}},
		"hostname":          {reason: "else the first hostname", addresses: "[{type: Hostname, value: a.example.com}, {type: Hostname, value: b.example.com}]", want: Address{Hostname: "a.example.com"}},
		"no address at all": {reason: "what does not parse is none", addresses: "[{value: gateway}, {value: '192.0.2.1/24'}, {value: 'fe80::1%eth0'}]", none: true},
		"named":             {reason: "a name of an address is none", addresses: "[{type: NamedAddress, value: x}]", none: true},
		"junk":              {reason: "whatever stands there", addresses: "[x, {value: 1}, {type: [], value: {}}, null]", none: true},
	} {
		t.Run(name, func(t *testing.T) {
			obj := map[string]any{}
			if err := yaml.Unmarshal([]byte("status: {addresses: "+c.addresses+"}"), &obj); err != nil {
				t.Fatal(err)
			}
			got, ok := GatewayAddress(&unstructured.Unstructured{Object: obj})
			if got != c.want || ok == c.none {
				t.Errorf("%s: %+v, %v; want %+v", c.reason, got, ok, c.want)
			}
			if text := c.want.IP + c.want.Hostname; got.String() != text {
				t.Errorf("it is written %q, want %q", got, text)
			}
		})
	}
	if _, ok := GatewayAddress(nil); ok {
		t.Error("no Gateway has an address")
	}
}
