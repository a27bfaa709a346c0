package decide

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
)

// describeInstance fills in what the instance shows: where it runs, since
// when, its addresses and disks.
func (v *view) describeInstance(status *v1alpha1.MachineStatus) {
	before := *status
	status.VMIName, status.NodeName, status.BootTime, status.Disks = "", "", nil, nil
	status.NetworkInterfaces = nil
	if v.in.Instance != nil {
		status.VMIName = v.in.Instance.GetName()
		status.NodeName = text(v.in.Instance.Object, "status", "nodeName")
		status.Disks = v.instanceDisks()
		status.NetworkInterfaces = v.instanceInterfaces()
		if v.running() {
			status.BootTime = v.bootTime()
			if sameTime(before.BootTime, status.BootTime) {
				status.NetworkInterfaces = v.remember(before.NetworkInterfaces, status.NetworkInterfaces)
			}
		}
	}
	v.addresses(status)
}

// bootTime is when the instance became Running.
func (v *view) bootTime() *metav1.Time {
	for _, transition := range entries(v.in.Instance.Object, "status", "phaseTransitionTimestamps") {
		if text(transition, "phase") != string(kubevirtv1.Running) {
			continue
		}
		if at, err := time.Parse(time.RFC3339, text(transition, "phaseTransitionTimestamp")); err == nil {
			t := metav1.NewTime(at).Rfc3339Copy()
			return &t
		}
	}
	t := v.in.Instance.GetCreationTimestamp()
	if t.IsZero() {
		return nil
	}
	t = t.Rfc3339Copy()
	return &t
}

func sameTime(a, b *metav1.Time) bool { return a != nil && b != nil && a.Equal(b) }

// instanceInterfaces are the interfaces that the instance reports, without
// those that carry no address of their own, like the loopback.
func (v *view) instanceInterfaces() []v1alpha1.MachineNetworkInterfaceStatus {
	var found []v1alpha1.MachineNetworkInterfaceStatus
	for _, report := range entries(v.in.Instance.Object, "status", "interfaces") {
		mac := normalMAC(text(report, "mac"))
		if mac == "" || mac == zeroMAC {
			continue
		}
		n := v1alpha1.MachineNetworkInterfaceStatus{Name: text(report, "name"), MACAddress: mac, State: text(report, "linkState")}
		reported := texts(report, "ipAddresses")
		if len(reported) == 0 {
			reported = []string{text(report, "ipAddress")}
		}
		for _, address := range reported {
			sortAddress(address, &n.IPAddresses, &n.IPv6Addresses)
		}
		found = append(found, n)
	}
	slices.SortStableFunc(found, compareInterfaces)
	return found
}

// compareInterfaces puts interfaces in an order that does not depend on the
// report's: named ones first.
func compareInterfaces(a, b v1alpha1.MachineNetworkInterfaceStatus) int {
	if (a.Name == "") != (b.Name == "") {
		if a.Name == "" {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.MACAddress, b.MACAddress))
}

// sortAddress appends an address to the list of its family.
func sortAddress(address string, v4, v6 *[]string) {
	ip, err := netip.ParseAddr(bareAddress(address))
	if err != nil {
		return
	}
	if ip.Unmap().Is4() {
		*v4 = appendNew(*v4, ip.Unmap().String())
		return
	}
	*v6 = appendNew(*v6, ip.String())
}

// remember keeps the last known addresses of interfaces that the running
// instance reports none for: an empty report is no news.
func (v *view) remember(before, now []v1alpha1.MachineNetworkInterfaceStatus) []v1alpha1.MachineNetworkInterfaceStatus {
	silent := len(now) == 0
	for _, old := range before {
		if len(old.IPAddresses)+len(old.IPv6Addresses) == 0 {
			continue
		}
		i := slices.IndexFunc(now, func(n v1alpha1.MachineNetworkInterfaceStatus) bool {
			return n.Name == old.Name && n.MACAddress == old.MACAddress
		})
		switch {
		case i < 0 && (silent || old.Name != ""):
			now = append(now, old)
		case i >= 0 && len(now[i].IPAddresses)+len(now[i].IPv6Addresses) == 0:
			now[i].IPAddresses, now[i].IPv6Addresses = old.IPAddresses, old.IPv6Addresses
		default:
			continue
		}
		v.remembered = true
	}
	slices.SortStableFunc(now, compareInterfaces)
	return now
}

// addresses fills in the lists of addresses: by family, and by whether the
// interface has a name.
func (v *view) addresses(status *v1alpha1.MachineStatus) {
	status.IPAddresses, status.IPv6Addresses = nil, nil
	status.PublicIPAddresses, status.PrivateIPAddresses = nil, nil
	for _, n := range status.NetworkInterfaces {
		list := &status.PublicIPAddresses
		if n.Name == "" {
			list = &status.PrivateIPAddresses
		}
		for _, address := range n.IPAddresses {
			status.IPAddresses = appendNew(status.IPAddresses, address)
			*list = appendNew(*list, address)
		}
		for _, address := range n.IPv6Addresses {
			status.IPv6Addresses = appendNew(status.IPv6Addresses, address)
			*list = appendNew(*list, address)
		}
	}
	if !v.in.Settings.AddressesFromRecord || v.in.Record == nil {
		return
	}
	v4, v6 := recordAddresses(v.in.Record, "")
	status.PublicIPAddresses = slices.Concat(v4, v6)
}

// instanceDisks are the volumes of the instance that have a claim.
func (v *view) instanceDisks() []v1alpha1.MachineDiskStatus {
	var found []v1alpha1.MachineDiskStatus
	for _, volume := range entries(v.in.Instance.Object, "status", "volumeStatus") {
		info, ok := at(volume, "persistentVolumeClaimInfo").(map[string]any)
		if !ok {
			continue
		}
		d := v1alpha1.MachineDiskStatus{
			Name: text(volume, "name"), PVCName: text(info, "claimName"),
			VolumeMode: text(info, "volumeMode"), AccessModes: texts(info, "accessModes"),
		}
		if target := text(volume, "target"); target != "" {
			d.Device = "/dev/" + target
		}
		if size, ok := quantity(info, "capacity", "storage"); ok {
			d.Size = size.Value()
		}
		found = append(found, d)
	}
	slices.SortStableFunc(found, func(a, b v1alpha1.MachineDiskStatus) int { return cmp.Compare(a.Name, b.Name) })
	return found
}
