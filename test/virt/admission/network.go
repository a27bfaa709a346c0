package admission

import (
	"net"
	"regexp"

	kubevirtv1 "kubevirt.io/api/core/v1"
)

const (
	interfacesField = "spec.template.spec.domain.devices.interfaces"
	networksField   = "spec.template.spec.networks"

	// reservedMAC is the address of the bridge inside a masquerading pod.
	reservedMAC = "02:00:00:00:00:00"
)

var interfaceName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// models are the network cards that a machine may have.
var models = map[string]bool{
	"virtio": true, "e1000": true, "e1000e": true, "rtl8139": true, "ne2k_pci": true, "pcnet": true,
}

// checkNetworks is the part of rule 5 that is about networks.
func checkNetworks(vm *kubevirtv1.VirtualMachine, r *report) {
	interfaces := map[string]bool{}
	for _, iface := range vm.Spec.Template.Spec.Domain.Devices.Interfaces {
		interfaces[iface.Name] = true
	}
	seen := map[string]bool{}
	pods := 0
	for i, network := range vm.Spec.Template.Spec.Networks {
		name := at(networksField, i, ".name")
		if seen[network.Name] {
			r.add(5, name, "%q stands twice", network.Name)
		}
		seen[network.Name] = true
		if !interfaces[network.Name] {
			r.add(5, name, "%q has no interface", network.Name)
		}
		if network.Pod != nil {
			pods++
		}
		if (network.Pod == nil) == (network.Multus == nil) {
			r.add(5, at(networksField, i, ""), "needs one of pod and multus")
		}
		if network.Multus != nil && network.Multus.NetworkName == "" {
			r.add(5, at(networksField, i, ".multus.networkName"), "is missing")
		}
	}
	if pods > 1 {
		r.add(5, networksField, "has %d pod networks, at most one is allowed", pods)
	}
}

// checkInterfaces is the part of rule 5 that is about interfaces.
func checkInterfaces(vm *kubevirtv1.VirtualMachine, r *report) {
	networks := map[string]kubevirtv1.Network{}
	for _, network := range vm.Spec.Template.Spec.Networks {
		networks[network.Name] = network
	}
	seen := map[string]bool{}
	for i, iface := range vm.Spec.Template.Spec.Domain.Devices.Interfaces {
		name := at(interfacesField, i, ".name")
		if !interfaceName.MatchString(iface.Name) {
			r.add(5, name, "%q has characters other than letters, digits, - and _", iface.Name)
		}
		if seen[iface.Name] {
			r.add(5, name, "%q stands twice", iface.Name)
		}
		seen[iface.Name] = true
		network, ok := networks[iface.Name]
		if !ok {
			r.add(5, name, "%q has no network", iface.Name)
		}
		checkBinding(iface, network, at(interfacesField, i, ""), r)
	}
}

func checkBinding(iface kubevirtv1.Interface, network kubevirtv1.Network, field string, r *report) {
	bindings := 0
	for _, set := range []bool{
		iface.Bridge != nil, iface.Masquerade != nil, iface.SRIOV != nil, iface.PasstBinding != nil, iface.Binding != nil,
	} {
		if set {
			bindings++
		}
	}
	if bindings != 1 {
		r.add(5, field, "has %d bindings and needs one", bindings)
	}
	if iface.Masquerade == nil {
		return
	}
	if network.Pod == nil {
		r.add(5, field+".masquerade", "works on the pod network only")
	}
	if mac, err := net.ParseMAC(iface.MacAddress); err == nil && mac.String() == reservedMAC {
		r.add(5, field+".macAddress", "%s is reserved with masquerade", iface.MacAddress)
	}
}

// checkModels is rule 6.
func checkModels(vm *kubevirtv1.VirtualMachine, r *report) {
	for i, iface := range vm.Spec.Template.Spec.Domain.Devices.Interfaces {
		if iface.Model != "" && !models[iface.Model] {
			r.add(6, at(interfacesField, i, ".model"), "%q is no model", iface.Model)
		}
		if iface.MacAddress == "" {
			continue
		}
		// Six bytes with : or - between them; net.ParseMAC takes dots and longer
		// addresses, too.
		mac, err := net.ParseMAC(iface.MacAddress)
		if err != nil || len(mac) != 6 || len(iface.MacAddress) != 17 {
			r.add(6, at(interfacesField, i, ".macAddress"), "%q is no MAC address", iface.MacAddress)
		}
	}
}
