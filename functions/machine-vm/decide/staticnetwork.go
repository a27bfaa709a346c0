package decide

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
)

// staticNetwork is cloud-init's network configuration, version 1, for the
// addresses that an operator has given to the Machine's interfaces. Not ok:
// one is still awaited, or the NetworkNamespace cannot be used.
func (v *view) staticNetwork() (string, bool) {
	ns := v.in.NetworkNamespace.Object
	cidr := text(ns, "spec", "ipAllocation", "static", "ipv4CIDR")
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil || !prefix.Addr().Is4() {
		v.problem(networkFailed(v.in.NetworkNamespace.GetName(), fmt.Sprintf("NetworkNamespace %q has ipv4CIDR %q, which is no IPv4 network: correct it", v.in.NetworkNamespace.GetName(), cidr)))
		return "", false
	}
	gateway := text(ns, "spec", "ipAllocation", "static", "ipv4Gateway")
	servers := texts(ns, "spec", "ipAllocation", "static", "dns")

	record := v.in.Addresses
	if record == nil {
		record = v.in.Record
	}
	var config strings.Builder
	config.WriteString("version: 1\nconfig:\n")
	for _, n := range v.nics {
		addresses, _ := recordAddresses(record, n.mac)
		if len(addresses) == 0 {
			v.awaitAddress(n)
			return "", false
		}
		fmt.Fprintf(&config, "  - type: physical\n    name: %s\n    mac_address: %s\n    subnets:\n      - type: static\n        address: %s\n        netmask: %s\n",
			strconv.Quote(n.name), strconv.Quote(n.mac), strconv.Quote(addresses[0]), netmask(prefix.Bits()))
		if gateway != "" {
			fmt.Fprintf(&config, "        gateway: %s\n", strconv.Quote(gateway))
		}
		if len(servers) > 0 {
			config.WriteString("        dns_nameservers:\n")
		}
		for _, server := range servers {
			fmt.Fprintf(&config, "          - %s\n", strconv.Quote(server))
		}
	}
	return config.String(), true
}

func (v *view) awaitAddress(n nic) {
	v.problem(Problem{
		Part: PartCloudInit, Reason: v1alpha1.ReasonStaticAddressPending, Waiting: true,
		Message: fmt.Sprintf("NetworkConfiguration %q has no address for interface %q yet: an address operator has to give one", v1alpha1.RecordName(v.id.name), n.name),
	})
}

// netmask writes the length of an IPv4 prefix as a mask.
func netmask(bits int) string {
	const all = 32
	var mask [4]byte
	binary.BigEndian.PutUint32(mask[:], ^uint32(0)<<(all-bits))
	return netip.AddrFrom4(mask).String()
}
