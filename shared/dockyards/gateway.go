package dockyards

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Address is where a Gateway can be reached: an IP address or a hostname, the
// other one empty.
type Address struct{ IP, Hostname string }

// String is the address as people write it.
func (a Address) String() string {
	if a.IP != "" {
		return a.IP
	}
	return a.Hostname
}

// GatewayAddress chooses among the addresses in a Gateway's status, the same
// way for every function: the first IPv4 address, else the first IPv6 address,
// else the first hostname. An address without a type counts as an IP address.
func GatewayAddress(gateway *unstructured.Unstructured) (Address, bool) {
	if gateway == nil {
		return Address{}, false
	}
	addresses, _, _ := unstructured.NestedSlice(gateway.Object, "status", "addresses")
	var v6, hostname Address
	for _, item := range addresses {
		entry, _ := item.(map[string]any)
		value, _ := entry["value"].(string)
		kindOf, _ := entry["type"].(string)
		switch kindOf {
		case "", "IPAddress":
			ip, err := netip.ParseAddr(value)
			if err != nil || ip.Zone() != "" {
				continue
			}
			if ip.Unmap().Is4() {
				return Address{IP: value}, true
			}
			if v6.IP == "" {
				v6.IP = value
			}
		case "Hostname":
			if hostname.Hostname == "" {
				hostname.Hostname = value
			}
		}
	}
	switch {
	case v6.IP != "":
		return v6, true
	case hostname.Hostname != "":
		return hostname, true
	}
	return Address{}, false
}
