package decide

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// scheme begins every recorded hash. A function that computes the hash in another
// way takes another scheme, and must still be able to compute this one: else every
// machine of every pool would be replaced.
const scheme = "v1-"

// hashLength is how many digits of the hash are recorded.
const hashLength = 16

// inputs are everything whose change replaces machines but the Kubernetes version.
// Each field is written here on purpose: the hash must not change with the libraries
// that templates are written by. A field that is learnt later is left out while it
// is empty, so that the hashes of old inputs stay.
type inputs struct {
	Cores           string     `json:"cores"`
	Memory          string     `json:"memory"`
	AccessMode      string     `json:"accessMode"`
	StorageClass    string     `json:"storageClass,omitempty"`
	VolumeMode      string     `json:"volumeMode,omitempty"`
	Disks           []diskData `json:"disks"`
	NICs            []nic      `json:"nics"`
	BridgeMigration bool       `json:"bridgeMigration,omitempty"`
	GenerateType    string     `json:"generateType"`
	TalosVersion    string     `json:"talosVersion"`
	// Documents are the Talos documents as data.
	Documents []any `json:"documents,omitempty"`
}

type diskData struct {
	Name   string `json:"name"`
	Size   string `json:"size"`
	Source string `json:"source,omitempty"`
}

// hash is the record of all inputs of a pool.
func hash(m *machine, t *talos) string {
	in := m.inputs()
	in.GenerateType, in.TalosVersion, in.Documents = t.generateType, t.version, t.data()
	return scheme + in.digest()[:hashLength]
}

// content is what the name of a new machine template is made of.
func (m *machine) content() string { return m.inputs().digest() }

// content is what the name of a new config template is made of.
func (t *talos) content() string {
	return inputs{GenerateType: t.generateType, TalosVersion: t.version, Documents: t.data()}.digest()
}

func (t *talos) data() []any {
	data := make([]any, 0, len(t.documents))
	for _, doc := range t.documents {
		data = append(data, doc.data)
	}
	return data
}

func (m *machine) inputs() inputs {
	in := inputs{
		Cores: whole(m.cores), Memory: whole(m.memory),
		AccessMode: m.accessMode, StorageClass: m.storageClass, VolumeMode: m.volumeMode,
		NICs: slices.Clone(m.nics), BridgeMigration: m.bridgeMigration,
	}
	for _, d := range m.disks {
		source := ""
		if d.source != "" {
			source = d.sourceNamespace + "/" + d.source
		}
		in.Disks = append(in.Disks, diskData{Name: d.name, Size: whole(d.size), Source: source})
	}
	slices.SortFunc(in.NICs, func(a, b nic) int { return strings.Compare(a.Name, b.Name) })
	return in
}

// whole is a quantity by value, in whole units, however it is written.
func whole(q resource.Quantity) string { return strconv.FormatInt(q.Value(), 10) }

func (in inputs) digest() string {
	raw, err := json.Marshal(in)
	if err != nil {
		panic(err) // the fields above, and what YAML can hold, always encode
	}
	return digest(string(raw))
}

// digest is a hash as hexadecimal digits.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
