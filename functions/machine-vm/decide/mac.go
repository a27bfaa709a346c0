package decide

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/plan"
)

var macPattern = regexp.MustCompile(`^([0-9a-f]{2}:){5}[0-9a-f]{2}$`)

const zeroMAC = "00:00:00:00:00:00"

// normalMAC writes a MAC address in lower case with colons.
func normalMAC(mac string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(mac)), "-", ":")
}

// usableMAC tells whether one interface can have an address of its own by it.
func usableMAC(mac string) bool {
	if !macPattern.MatchString(mac) || mac == zeroMAC {
		return false
	}
	// The lowest bit of the first octet marks a group of receivers.
	return !strings.ContainsRune("13579bdf", rune(mac[1]))
}

// resolveMACs gives each interface its MAC address: as stated, else as the
// live virtual machine has it, else as recorded, else derived from the
// Machine's UID, so that it is the same each time.
func (v *view) resolveMACs() {
	taken := v.stayingMACs()
	for _, n := range v.nics {
		if n.macStated {
			v.checkMAC(n, taken)
			taken[n.mac] = n.name
		}
	}
	for i := range v.nics {
		n := &v.nics[i]
		if n.macStated {
			continue
		}
		n.mac = v.knownMAC(n.name)
		if n.macMoved = taken[n.mac] != ""; n.macMoved || n.mac == "" {
			n.mac = v.derivedMAC(n.name, taken)
		}
		taken[n.mac] = n.name
	}
	v.checkOlderMACs()
}

// stayingMACs are those of the live interfaces that the Machine does not list
// and that are not the function's to take out.
func (v *view) stayingMACs() map[string]string {
	taken := map[string]string{}
	if v.vm == nil {
		return taken
	}
	was := parseWords(v.vm.GetAnnotations()[annotationWritten])
	for _, face := range entries(v.vm.Object, "spec", "template", "spec", "domain", "devices", "interfaces") {
		name, mac := text(face, "name"), normalMAC(text(face, "macAddress"))
		listed := slices.ContainsFunc(v.nics, func(n nic) bool { return n.name == name })
		if mac != "" && !listed && (v.adopted() || !was.has(nicWord(name))) {
			taken[mac] = name
		}
	}
	return taken
}

func (v *view) checkMAC(n nic, taken map[string]string) {
	switch other := taken[n.mac]; {
	case other != "":
		v.problem(invalid(PartNetwork, fmt.Sprintf("networks %q and %q have the same MAC address %s: change one", other, n.name, n.mac)))
	case !usableMAC(n.mac):
		v.problem(invalid(PartNetwork, fmt.Sprintf("network %q has MAC address %s, which is no single interface's: choose one whose second digit is 2, 6, a or e", n.name, n.mac)))
	}
}

func (v *view) knownMAC(name string) string {
	if mac := v.liveMAC(name); usableMAC(mac) {
		return mac
	}
	if v.in.Record == nil {
		return ""
	}
	if mac := normalMAC(text(named(entries(v.in.Record.Object, "spec", "networkInterfaces"), name), "macAddress")); usableMAC(mac) {
		return mac
	}
	return ""
}

func (v *view) liveMAC(name string) string {
	if v.vm == nil {
		return ""
	}
	interfaces := entries(v.vm.Object, "spec", "template", "spec", "domain", "devices", "interfaces")
	return normalMAC(text(named(interfaces, name), "macAddress"))
}

// derivedMAC takes the bytes of a hash, four at a time, until they clash with
// nothing.
func (v *view) derivedMAC(name string, taken map[string]string) string {
	sum := sha256.Sum256([]byte(v.id.uid + "/" + name))
	mac := ""
	for i := 0; i+4 <= len(sum); i += 4 {
		mac = fmt.Sprintf("02:%s:%02x:%02x:%02x:%02x", strings.ToLower(v.in.Settings.MACSet), sum[i], sum[i+1], sum[i+2], sum[i+3])
		if taken[mac] == "" {
			break
		}
	}
	return mac
}

// checkOlderMACs refuses a stated MAC address that an older Machine of the
// namespace holds. It is asked before the address is first attached: a virtual
// machine that has it already is not taken apart again.
func (v *view) checkOlderMACs() {
	wanted := map[string]string{}
	for _, n := range v.nics {
		if n.macStated && v.liveMAC(n.name) != n.mac {
			wanted[n.mac] = n.name
		}
	}
	if len(wanted) == 0 {
		return
	}
	machines, ok := v.ask(plan.Need{Resource: kinds.Machines, Namespace: v.namespace})
	records, ok2 := v.ask(plan.Need{Resource: kinds.NetworkConfigurations, Namespace: v.namespace})
	if !ok || !ok2 {
		return
	}
	for i := range machines.Items {
		other := &machines.Items[i]
		if !older(other, v.in.Machine) {
			continue
		}
		for _, mac := range heldMACs(other, find(records.Items, other.GetName())) {
			if name, clash := wanted[mac]; clash {
				v.problem(invalid(PartNetwork, fmt.Sprintf("network %q has MAC address %s, which Machine %q holds: change it", name, mac, other.GetName())))
				delete(wanted, mac)
			}
		}
	}
}

// older tells whether a Machine goes before another one: created first, or in
// the same second and first by name.
func older(a, b *unstructured.Unstructured) bool {
	if a.GetUID() == b.GetUID() || a.GetName() == b.GetName() {
		return false
	}
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if at.Equal(&bt) {
		return a.GetName() < b.GetName()
	}
	return at.Before(&bt)
}

// heldMACs are the MAC addresses in a Machine's spec and in its record.
func heldMACs(machine, record *unstructured.Unstructured) []string {
	var held []string
	for _, network := range entries(machine.Object, "spec", "networks") {
		held = append(held, normalMAC(text(network, "macAddress")))
	}
	if record == nil {
		return held
	}
	for _, n := range entries(record.Object, "spec", "networkInterfaces") {
		held = append(held, normalMAC(text(n, "macAddress")))
	}
	return held
}
