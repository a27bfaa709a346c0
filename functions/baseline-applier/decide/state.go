package decide

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/shared/kind"
)

// Outcome is what became of an asset.
type Outcome string

// What can become of an asset.
const (
	// InSync: the object is as the baseline wants it.
	InSync Outcome = "InSync"
	// Drifted: it is not, and will be written now.
	Drifted Outcome = "Drifted"
	// Failed: it cannot be rendered, read, tried or written.
	Failed Outcome = "Failed"
	// Throttled: it was written too often lately.
	Throttled Outcome = "Throttled"
	// Paused: it carries the pause annotation, or the record does.
	Paused Outcome = "Paused"
	// OptedOut: its user says unmanaged.
	OptedOut Outcome = "Unmanaged"
	// Excluded: by the root exclusion.
	Excluded Outcome = "Excluded"
	// Inactive: a condition does not hold.
	Inactive Outcome = "Inactive"
	// NotApplicable: it renders to nothing.
	NotApplicable Outcome = "NotApplicable"
	// CRDMissing: its kind is not installed.
	CRDMissing Outcome = "CRDMissing"
	// NamespaceMissing: its namespace is not there.
	NamespaceMissing Outcome = "NamespaceMissing"
	// Rewritten: the API changes a value right at our own apply.
	Rewritten Outcome = "Rewritten"
	// Unknown: what it depends on cannot be seen now; nothing is done.
	Unknown Outcome = "Unknown"
)

// Write is one effective write of an object, or one that is about to be.
type Write struct {
	At time.Time `json:"at"`
	// Base is the version that it rests on, absent for a creation.
	Base string `json:"base"`
	// Done tells that the object was seen to be another since.
	Done bool `json:"done,omitempty"`
	// First is the write that takes an object over, or follows a resume: it answers
	// nobody, and counts for no budget.
	First bool     `json:"first,omitempty"`
	Paths []string `json:"paths,omitempty"`
}

// Opposition is one change of somebody else's that undid a write.
type Opposition struct {
	At      time.Time `json:"at"`
	Seen    string    `json:"seen"`
	Manager string    `json:"manager,omitempty"`
}

// Pause is why an object is left alone.
type Pause struct {
	At       time.Time `json:"at"`
	Reason   string    `json:"reason"`
	Opponent string    `json:"opponent,omitempty"`
	UID      string    `json:"uid,omitempty"`
	// Deleted: the object was deleted again and again; there is nothing to annotate.
	Deleted bool `json:"deleted,omitempty"`
	// Annotated: the object was seen with the annotation; without it, the pause is over.
	Annotated bool `json:"annotated,omitempty"`
	// ByHand: a person set the annotation.
	ByHand bool `json:"byHand,omitempty"`
}

// Record is what is remembered of one asset, and what the report says of it.
type Record struct {
	Object  string  `json:"object"`
	Outcome Outcome `json:"outcome"`
	Message string  `json:"message,omitempty"`
	// Differs are the values that are not as wanted, while they are not.
	Differs []Difference `json:"differs,omitempty"`
	// Patched counts the operations in force, Ignored are the pointers in force,
	// Problems what is wrong with the rest.
	Patched  int      `json:"patched,omitempty"`
	Ignored  []string `json:"ignored,omitempty"`
	Problems []string `json:"problems,omitempty"`
	// LeftOut are fields that the installed definition does not have.
	LeftOut []string `json:"leftOut,omitempty"`
	// Missing is the definition that is not installed.
	Missing string `json:"missing,omitempty"`
	// Desired names what was wanted, Result what the object came to by it.
	Desired string `json:"desired,omitempty"`
	Result  string `json:"result,omitempty"`
	// UID is that of the object as it was seen last, Created whether it is the
	// function's own work.
	UID     string `json:"uid,omitempty"`
	Created bool   `json:"created,omitempty"`
	// HCO is the HyperConverged's version that was decided by.
	HCO string `json:"hco,omitempty"`

	Writes      []Write      `json:"writes,omitempty"`
	Oppositions []Opposition `json:"oppositions,omitempty"`
	// Vain counts writes in a row that were repeated because their values were not the
	// object's afterwards, although nobody else has changed them.
	Vain int `json:"vain,omitempty"`
	// Throttles counts oppositions in a row that could not be answered.
	Throttles int    `json:"throttles,omitempty"`
	Pause     *Pause `json:"pause,omitempty"`
	// Episodes counts pauses that the function itself set.
	Episodes int `json:"episodes,omitempty"`
	// Next is when a throttled write may be made.
	Next *time.Time `json:"next,omitempty"`
	// Patch is the last valid patch, if it is short enough to keep.
	Patch string `json:"patch,omitempty"`
	// Revision counts the changes of this record: Events are told apart by it.
	Revision int `json:"revision"`
}

// Platform is what is remembered of the whole.
type Platform struct {
	// HCO names the HyperConverged that all assets were last brought in line with.
	HCO string `json:"hco,omitempty"`
	// Version is its resourceVersion.
	Version string `json:"version,omitempty"`
	// Hardware names for each detector one node that has it.
	Hardware map[string]string `json:"hardware"`
	// Problem is what is wrong with the root exclusion, Strangers are names of no asset
	// in the list of what may be looked after.
	Problem   string   `json:"problem,omitempty"`
	Strangers []string `json:"strangers,omitempty"`
	Revision  int      `json:"revision"`
}

// State is all that is remembered.
type State struct {
	Platform   Platform
	Assets     map[string]Record
	Tombstones map[string]Tombstone
	// Lost says why there is no memory; empty if there is, or never was.
	Lost string
}

// Keys of the ConfigMap. Assets have their name as key.
const (
	keyPlatform   = "_platform"
	keyTombstones = "_tombstones"
	keyReport     = "report.yaml"
)

// Tombstone is what became of an object that must go.
type Tombstone struct {
	Status   int    `json:"status"`
	Message  string `json:"message,omitempty"`
	Revision int    `json:"revision"`
}

// ReadState reads the record. What cannot be read is empty: enforcement goes on.
func ReadState(configMap *unstructured.Unstructured) State {
	s := State{Assets: map[string]Record{}, Tombstones: map[string]Tombstone{}}
	if configMap == nil {
		return s
	}
	data, _, err := unstructured.NestedStringMap(configMap.Object, "data")
	if err != nil {
		s.Lost = "it is no map of texts"
		return s
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		switch key {
		case keyReport:
		case keyPlatform:
			err = json.Unmarshal([]byte(data[key]), &s.Platform)
		case keyTombstones:
			err = json.Unmarshal([]byte(data[key]), &s.Tombstones)
		default:
			var r Record
			if err = json.Unmarshal([]byte(data[key]), &r); err == nil {
				s.Assets[key] = r
			}
		}
		if err != nil {
			s.Lost, err = fmt.Sprintf("its key %q: %v", key, err), nil
		}
	}
	if s.Tombstones == nil {
		s.Tombstones = map[string]Tombstone{}
	}
	return s
}

// clone is a copy that can be changed.
func (s State) clone() State {
	return State{
		Platform: s.Platform, Assets: maps.Clone(s.Assets), Tombstones: maps.Clone(s.Tombstones), Lost: s.Lost,
	}
}

// configMap writes the record down, on top of what there was.
func (s State) configMap(namespace string, base *unstructured.Unstructured) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kind.ConfigMaps.APIVersion(), "kind": kind.ConfigMaps.Kind,
		"metadata": map[string]any{
			"name": StateName, "namespace": namespace,
			"labels": map[string]any{"app.kubernetes.io/part-of": "slipway"},
		},
	}}
	if base != nil {
		obj = base.DeepCopy()
	}
	data := map[string]any{keyPlatform: encode(s.Platform), keyReport: s.report()}
	if len(s.Tombstones) > 0 {
		data[keyTombstones] = encode(s.Tombstones)
	}
	for name, record := range s.Assets {
		data[name] = encode(record)
	}
	obj.Object["data"] = data
	return obj
}

func encode(value any) string {
	// Plain structs always encode.
	text, _ := json.Marshal(value)
	return string(text)
}

// line is one asset in the report.
type line struct {
	Asset      string       `json:"asset"`
	Object     string       `json:"object"`
	Outcome    Outcome      `json:"outcome"`
	Message    string       `json:"message,omitempty"`
	Patched    int          `json:"patchOperations,omitempty"`
	Ignored    []string     `json:"ignoredFields,omitempty"`
	Problems   []string     `json:"problems,omitempty"`
	LeftOut    []string     `json:"fieldsLeftOut,omitempty"`
	Missing    string       `json:"missingDefinition,omitempty"`
	PausedAt   *time.Time   `json:"pausedSince,omitempty"`
	Opponent   string       `json:"opponent,omitempty"`
	Differs    []Difference `json:"differs,omitempty"`
	Desired    string       `json:"desired,omitempty"`
	HCOVersion string       `json:"hyperConvergedVersion,omitempty"`
}

// report is the record for people.
func (s State) report() string {
	lines := make([]line, 0, len(s.Assets))
	for _, name := range slices.Sorted(maps.Keys(s.Assets)) {
		r := s.Assets[name]
		l := line{
			Asset: name, Object: r.Object, Outcome: r.Outcome, Message: r.Message, Patched: r.Patched, Ignored: r.Ignored, Problems: r.Problems,
			LeftOut: r.LeftOut, Missing: r.Missing, Differs: r.Differs, Desired: r.Desired, HCOVersion: r.HCO,
		}
		if r.Pause != nil {
			l.PausedAt, l.Opponent = &r.Pause.At, r.Pause.Opponent
		}
		lines = append(lines, l)
	}
	text, _ := yaml.Marshal(map[string]any{"assets": lines, "problem": s.Platform.Problem, "tombstones": s.Tombstones})
	return string(text)
}

// equal reports whether two records say the same: what a hint, a version or a count
// says does not matter.
func (r Record) equal(other Record) bool {
	for _, each := range []*Record{&r, &other} {
		each.Result, each.HCO, each.Revision = "", "", 0
	}
	return encode(r) == encode(other)
}

// baseOf names the version of an object that a write rests on.
func baseOf(live *unstructured.Unstructured) string {
	if live == nil {
		return absent
	}
	return string(live.GetUID()) + "/" + live.GetResourceVersion()
}

const absent = "absent"

// hcoHash names what of the HyperConverged assets depend on: not its status, and not
// who owns what.
func hcoHash(hco *unstructured.Unstructured) string {
	return versionOf(hco) + "/" + strings.TrimSpace(Projection(hco))
}

// Quiet reports whether an event of the HyperConverged brings no news: a change of its
// status alone, or one that was taken up before.
func (s State) Quiet(hco *unstructured.Unstructured, now time.Time) bool {
	if s.Platform.HCO == "" || s.Platform.HCO != hcoHash(hco) {
		return false
	}
	for _, r := range s.Assets {
		due := r.Next != nil && !r.Next.After(now)
		unsettled := len(r.Writes) > 0 && !r.Writes[len(r.Writes)-1].Done
		if due || unsettled || r.Outcome == Drifted {
			return false
		}
	}
	return true
}

// Left reports whether an object is just as the function left it: an event that tells
// of it tells of the function's own write, or of what nobody minds.
func (r Record) Left(live *unstructured.Unstructured) bool {
	n := len(r.Writes)
	return live != nil && r.Outcome == InSync && r.Result != "" && (n == 0 || r.Writes[n-1].Done) &&
		r.UID == string(live.GetUID()) && r.Result == Projection(live)
}

// settling is how long a call may take from a write to the next look.
const settling = 5 * time.Second

// Settling reports whether an event, sent and received at these times, tells of nothing
// but a write of a call that will look at the object again. A change that leaves no trace
// among the managers, within that time, is seen by the resync. An event that was sent
// before the write is no word of it: the call that it was for may have failed after it.
func (r Record) Settling(live *unstructured.Unstructured, sent, received time.Time) bool {
	n := len(r.Writes)
	if live == nil || n == 0 || r.Writes[n-1].Done || r.Writes[n-1].Base == baseOf(live) {
		return false
	}
	if at := r.Writes[n-1].At; sent.Before(at) || received.Sub(at).Abs() > settling {
		return false
	}
	var own, others time.Time
	for _, entry := range live.GetManagedFields() {
		if entry.Time == nil || entry.Subresource != "" {
			continue
		}
		if at := entry.Time.Time; isOurs(entry) && at.After(own) {
			own = at
		} else if !isOurs(entry) && at.After(others) {
			others = at
		}
	}
	return own.After(others)
}
