package decide

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/shared/dockyards"
)

// nameMax is the length of a Service's name.
const nameMax = validation.DNS1035LabelMaxLength

// digits are the lengths of the hash in a name: the next one is taken if a name is
// taken, which a tenant can bring about for the first.
var digits = []int{8, 16, 32, 40}

// nameWays gives each Service that is mirrored a name of its own.
func (v *view) nameWays() {
	taken := map[string]bool{}
	for _, w := range v.ways {
		if plain := v.plain(w.service); v.firstOfItsName(w) && legal(plain) && !v.reserved(plain) {
			w.name, taken[plain] = plain, true
		}
	}
	for _, w := range v.ways {
		for i := 0; w.name == ""; i++ {
			if name := v.hashed(w.service, digits[min(i, len(digits)-1)]); !taken[name] {
				w.name, taken[name] = name, true
			}
		}
	}
}

// plain is the name of a Service's mirror, unless something is wrong with it.
func (v *view) plain(service *unstructured.Unstructured) string {
	return v.name + "-" + service.GetName()
}

func legal(name string) bool { return len(validation.IsDNS1035Label(name)) == 0 }

// firstOfItsName tells whether of several Services of a name this one may keep it:
// the one in the target namespace, else the first by namespace.
func (v *view) firstOfItsName(w *way) bool {
	target, _, _ := unstructured.NestedString(v.in.Workload.Object, "spec", "targetNamespace")
	first := w
	for _, other := range v.ways { // in the order of their namespaces
		if other.service.GetName() != w.service.GetName() {
			continue
		}
		if other.service.GetNamespace() == target {
			return other == w
		}
		if other.service.GetNamespace() < first.service.GetNamespace() {
			first = other
		}
	}
	return first == w
}

// reserved tells whether a name belongs to somebody else by its form: to a Workload
// with a longer name, or to a Cluster, whose route has its own name and whose API
// server's Service that name with -lb. What is there already is kept.
func (v *view) reserved(plain string) bool {
	if mirror := find(v.in.Services, v.namespace, plain); mirror != nil && v.mine(mirror) {
		return false
	}
	for _, other := range v.in.Workloads {
		if len(other) > len(v.name) && strings.HasPrefix(plain, other+"-") {
			return true
		}
	}
	return find(v.in.Clusters, v.namespace, plain) != nil || find(v.in.Clusters, v.namespace, strings.TrimSuffix(plain, "-lb")) != nil
}

// hashed is a name with the hash of a Service's own name behind it. What stands
// before it shows where it comes from, as far as it is legal.
func (v *view) hashed(service *unstructured.Unstructured, count int) string {
	name := ""
	for _, stem := range []string{v.plain(service), v.name} {
		if name = beginning(stem, nameMax-1-count) + "-" + hash(service, count); !v.reserved(name) {
			break
		}
	}
	return name
}

// hash are the first digits of the hash of a Service's own name.
func hash(service *unstructured.Unstructured, count int) string {
	sum := sha256.Sum256([]byte(key(service)))
	return hex.EncodeToString(sum[:])[:count]
}

// beginning is the part of a text, of a length at most, with which a Service's name
// may begin. A text that begins with something else gets a letter before it.
func beginning(text string, size int) string {
	if text[0] < 'a' || text[0] > 'z' {
		text = letter + text
	}
	end := strings.IndexFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-'
	})
	if end >= 0 {
		text = text[:end]
	}
	return strings.TrimRight(text[:min(len(text), size)], "-")
}

const letter = "w"

// behind is what may stand behind the part of a name that shows where it is from:
// a hash, or the number of a further route.
var behind = regexp.MustCompile(`-([0-9a-f]{8,40}|[0-9]+)$`)

// MayBeFor tells whether an object of a name may be a mirror or a route of a
// Workload. It never says no to one that is.
func MayBeFor(name, workload string) bool {
	if strings.HasPrefix(name, workload+"-") {
		return true
	}
	whole := beginning(workload, nameMax)
	for at := behind.FindStringIndex(name); at != nil; at = behind.FindStringIndex(name) {
		name = name[:at[0]]
		if strings.HasPrefix(name, whole) || strings.HasPrefix(whole, name) {
			return true
		}
	}
	return false
}

// MayMirror tells whether a mirror of a Workload may be that of a Service. It never
// says no to one that is.
func MayMirror(mirror, workload, namespace, name string) bool {
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	hash := hex.EncodeToString(sum[:])
	at := strings.LastIndexByte(mirror, '-')
	return mirror == workload+"-"+name || (len(mirror)-at-1 >= digits[0] && strings.HasPrefix(hash, mirror[at+1:]))
}

func byName(a, b *unstructured.Unstructured) int {
	return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
}

// mine tells whether an object belongs to the Workload.
func (v *view) mine(obj *unstructured.Unstructured) bool {
	for _, ref := range obj.GetOwnerReferences() {
		if dockyards.Workloads.Is(ref.APIVersion, ref.Kind) {
			// Of several Workloads that claim it, the first has it.
			return ref.UID == v.in.Workload.GetUID()
		}
	}
	return false
}
