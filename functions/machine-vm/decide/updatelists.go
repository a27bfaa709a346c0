package decide

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
)

// Paths of lists below spec.template.spec.
var (
	pathVolumes    = []string{"volumes"}
	pathNetworks   = []string{"networks"}
	pathDisks      = []string{"domain", "devices", "disks"}
	pathInterfaces = []string{"domain", "devices", "interfaces"}
)

func (m *merge) list(path []string) []map[string]any { return entries(m.spec(), path...) }

func (m *merge) append(path []string, entry map[string]any) {
	items, _ := at(m.spec(), path...).([]any)
	put(m.spec(), append(slices.Clone(items), entry), path...)
}

// drop takes a device out of its two lists.
func (m *merge) drop(word, name string, paths ...[]string) {
	for _, path := range paths {
		if removeNamed(m.spec(), name, path...) {
			m.note(word)
		}
	}
}

// written are the names of the devices that the function wrote under a prefix.
func (w words) written(prefix string) []string {
	var names []string
	for word := range w {
		if name, ok := strings.CutPrefix(word, prefix); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// stale are the devices that the function wrote and the Machine does not list
// any more.
func (m *merge) stale(prefix string) []string {
	return slices.DeleteFunc(m.was.written(prefix), func(name string) bool { return m.now.has(prefix + name) })
}

// disks: those listed are there, those that were listed are taken out, those
// of others stay. Disks that nobody asked for are not brought back.
func (m *merge) disks(v *view) {
	stale := m.stale(diskWord(""))
	for _, name := range stale {
		if !m.keep {
			m.drop(diskWord(name), name, pathVolumes, pathDisks)
		}
	}
	for _, d := range v.disks {
		if d.byDefault && len(stale) == 0 {
			continue
		}
		m.disk(v, d)
	}
	for _, volume := range m.list(pathVolumes) {
		name := text(volume, "name")
		if !m.now.has(diskWord(name)) && name != cloudInitDisk && name != v1alpha1.ISODiskName {
			m.extraDisks = append(m.extraDisks, name)
		}
	}
}

func (m *merge) disk(v *view, d disk) {
	word := diskWord(d.name)
	source := map[string]any{"claimName": d.claim}
	volume := named(m.list(pathVolumes), d.name)
	switch {
	case volume == nil:
		m.append(pathVolumes, map[string]any{"name": d.name, "persistentVolumeClaim": source})
		m.note(word)
	case volumeClaim(volume) != d.claim && !v.adopted():
		clear(volume)
		volume["name"], volume["persistentVolumeClaim"] = d.name, source
		m.note(word)
	case volumeClaim(volume) != d.claim:
		m.note(word)
	}
	device := named(m.list(pathDisks), d.name)
	if device == nil {
		m.append(pathDisks, m.numbered(v, word, map[string]any{"name": d.name, "disk": map[string]any{"bus": d.bus}}))
		m.note(word)
		return
	}
	if d.busStated && text(device, "disk", "bus") != d.bus {
		delete(device, "cdrom")
		delete(device, "lun")
		put(device, d.bus, "disk", "bus")
		m.note(word)
	}
}

// networks: as disks. Without a statement the live networks stay, unless the
// statement was there before.
func (m *merge) networks(v *view) {
	stale := m.stale(nicWord(""))
	for _, name := range stale {
		if !m.keep {
			m.drop(nicWord(name), name, pathInterfaces, pathNetworks)
		}
	}
	for _, n := range v.nics {
		if v.networksStated || len(stale) > 0 {
			m.nic(v, n)
		}
	}
	for _, network := range m.list(pathNetworks) {
		if name := text(network, "name"); !m.now.has(nicWord(name)) {
			m.extraNics = append(m.extraNics, name)
		}
	}
}

func (m *merge) nic(v *view, n nic) {
	word := nicWord(n.name)
	binding, source := "masquerade", map[string]any{"pod": map[string]any{}}
	if n.attachment != "" {
		binding, source = "bridge", map[string]any{"multus": map[string]any{"networkName": n.attachment}}
	}
	source["name"] = n.name

	network := named(m.list(pathNetworks), n.name)
	moved := network != nil && !sameNetwork(network, n, v.namespace)
	switch {
	case network == nil:
		m.append(pathNetworks, source)
		m.note(word)
	case moved && !m.keep:
		clear(network)
		for key, value := range source {
			network[key] = value
		}
		m.note(word)
	case moved:
		m.note(word)
	}
	face := named(m.list(pathInterfaces), n.name)
	if face == nil {
		m.append(pathInterfaces, m.numbered(v, word, map[string]any{"name": n.name, "model": n.model, "macAddress": n.mac, binding: map[string]any{}}))
		m.note(word)
		return
	}
	m.face(face, n, word)
	if moved && !m.keep {
		delete(face, "masquerade")
		delete(face, "bridge")
		face[binding] = map[string]any{}
	}
}

// face enforces what is stated of an interface. Its binding stays what it was.
func (m *merge) face(face map[string]any, n nic, word string) {
	if n.modelStated && text(face, "model") != n.model {
		face["model"] = n.model
		m.note(word)
	}
	if (n.macStated || n.macMoved) && normalMAC(text(face, "macAddress")) != n.mac {
		face["macAddress"] = n.mac
		m.note(word)
	}
}

func sameNetwork(network map[string]any, n nic, namespace string) bool {
	if n.attachment == "" {
		return network["pod"] != nil
	}
	return localName(text(network, "multus", "networkName"), namespace) == n.attachment
}

// cloudInit follows the Machine on virtual machines that the function made.
func (m *merge) cloudInit(v *view) {
	if m.keep {
		return
	}
	if v.cloudInit == nil {
		if m.removed(wordCloudInit) {
			m.drop(wordCloudInit, cloudInitDisk, pathVolumes, pathDisks)
		}
		return
	}
	wanted := v.cloudInitVolume()
	hashed := m.was.has(wordCloudInit) && m.was[wordCloudInit] == m.now[wordCloudInit]
	volume := named(m.list(pathVolumes), cloudInitDisk)
	if volume == nil {
		m.append(pathVolumes, wanted)
		m.note(wordCloudInit)
	} else if have, ok := at(volume, v.cloudInit.source).(map[string]any); !ok || !sameSource(v.cloudInit.fields, have, hashed) {
		clear(volume)
		for key, value := range wanted {
			volume[key] = value
		}
		m.note(wordCloudInit)
	}
	if named(m.list(pathDisks), cloudInitDisk) == nil {
		m.append(pathDisks, map[string]any{"name": cloudInitDisk, "disk": map[string]any{"bus": busVirtio}})
		m.note(wordCloudInit)
	}
}

// bootOrder numbers the devices if the Machine states an order, and takes the
// numbers away if it did before.
func (m *merge) bootOrder(v *view) {
	if !m.now.has(wordBootOrder) && !m.removed(wordBootOrder) {
		return
	}
	order := map[string]uint{}
	if m.now.has(wordBootOrder) {
		order = v.bootOrder()
	}
	for _, d := range m.list(pathDisks) {
		name := text(d, "name")
		if m.now.has(diskWord(name)) || name == v1alpha1.ISODiskName {
			m.ordinal(d, order, diskWord(name))
		}
	}
	for _, n := range m.list(pathInterfaces) {
		if name := text(n, "name"); m.now.has(nicWord(name)) {
			m.ordinal(n, order, nicWord(name))
		}
	}
}

// numbered gives a device that comes into a virtual machine of the function's own
// the number that it would have in a new one, unless another device has it:
// machines that were emptied by hand boot again.
func (m *merge) numbered(v *view, word string, device map[string]any) map[string]any {
	wanted, listed := v.bootOrder()[word]
	if !listed || m.keep {
		return device
	}
	for _, other := range slices.Concat(m.list(pathDisks), m.list(pathInterfaces)) {
		if have, ok := number(other, "bootOrder"); ok && have == int64(wanted) { //nolint:gosec // a handful of devices
			return device
		}
	}
	device["bootOrder"] = int64(wanted) //nolint:gosec // a handful of devices
	return device
}

func (m *merge) ordinal(device map[string]any, order map[string]uint, word string) {
	wanted, listed := order[word]
	have, ok := number(device, "bootOrder")
	switch {
	case listed && (!ok || have != int64(wanted)): //nolint:gosec // a handful of devices
		device["bootOrder"] = int64(wanted) //nolint:gosec // a handful of devices
	case !listed && ok:
		delete(device, "bootOrder")
	default:
		return
	}
	m.note(wordBootOrder)
}

// sameObject compares two states of one object. Numbers count by value.
func sameObject(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(plainNumbers(a.Object), plainNumbers(b.Object))
}

func plainNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, child := range v {
			all[key] = plainNumbers(child)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, child := range v {
			all[i] = plainNumbers(child)
		}
		return all
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case int:
		return int64(v)
	}
	return value
}
