package record

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Annotation, on a reconciled object or on its namespace, says whether reconciles are
// kept; the object's own comes first.
const Annotation = "slipway.dev/record"

// Which reconciles are kept.
const (
	modeOff       = "off"
	modeAnnotated = "annotated"
	// modeNamespaces looks for the annotation on the object's namespace too.
	modeNamespaces = "namespaces"
	modeAll        = "all"
)

const (
	defaultMaxBytes = 4 << 20
	defaultKeep     = 500
)

// Policy says which reconciles are kept.
type Policy struct {
	// All keeps every reconcile, Off none at all.
	All, Off bool
	// Namespaces are those of which every reconcile is kept.
	Namespaces []string
	// Annotated says that the annotation of an object's namespace counts too. Reading it
	// costs each reconcile a request.
	Annotated bool
	// Sample is how much is kept of what All, Namespaces and the annotation of a
	// namespace ask for: 1 is everything.
	Sample float64
	// MaxBytes bounds one recording.
	MaxBytes int
}

// Wants decides about one reconcile. The same event and object give the same
// answer, in every copy of a function. of is the annotation of the object's namespace,
// which is asked for only if nothing nearer decides.
func (p Policy) Wants(namespace, annotation, id string, of func() string) bool {
	switch {
	case p.Off || annotation == "false":
		return false
	case annotation == "true":
		return true
	}
	asked := p.All || slices.Contains(p.Namespaces, namespace)
	if p.Annotated && namespace != "" {
		switch of() {
		case "true":
			asked = true
		case "false":
			asked = false
		}
	}
	return asked && share(id) < p.Sample
}

// share maps a text to a number from 0 to below 1.
func share(text string) float64 {
	sum := sha256.Sum256([]byte(text))
	return float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
}

// ParsePolicy reads the settings.
func ParsePolicy(lookup func(string) (string, bool)) (Policy, error) {
	p := Policy{Sample: 1, MaxBytes: defaultMaxBytes}
	get := func(name string) string { value, _ := lookup(name); return strings.TrimSpace(value) }
	switch mode := get("SLIPWAY_RECORD"); mode {
	case "", modeAnnotated:
	case modeNamespaces:
		p.Annotated = true
	case modeOff:
		p.Off = true
	case modeAll:
		p.All = true
	default:
		return p, fmt.Errorf("environment variable SLIPWAY_RECORD is %q: use %s, %s, %s or %s", mode, modeOff, modeAnnotated, modeNamespaces, modeAll)
	}
	for name := range strings.SplitSeq(get("SLIPWAY_RECORD_NAMESPACES"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			p.Namespaces = append(p.Namespaces, name)
		}
	}
	if text := get("SLIPWAY_RECORD_SAMPLE"); text != "" {
		sample, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(sample) || sample < 0 || sample > 1 {
			return p, fmt.Errorf("environment variable SLIPWAY_RECORD_SAMPLE is %q: use a number from 0 to 1", text)
		}
		p.Sample = sample
	}
	var err error
	p.MaxBytes, err = number(get, "SLIPWAY_RECORD_MAX_BYTES", defaultMaxBytes, MaxSize)
	return p, err
}

func number(get func(string) string, name string, otherwise, most int) (int, error) {
	text := get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("environment variable %s is %q: use a number from 1 to %d", name, text, most)
	}
	return n, nil
}
