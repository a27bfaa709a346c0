package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const (
	// MaxSize is the largest file that is read, in bytes.
	MaxSize = 16 << 20
	// headerSize is how much of a file is looked at for its header.
	headerSize = 64 << 10

	first   = "slipway recording"
	partEnd = "end"
)

// Names of parts.
const (
	partHeader     = "recording"
	partEvent      = "event"
	partDecisions  = "decisions"
	partCalls      = "calls"
	partConclusion = "conclusion"
	partMapping    = "mapping"
	partReads      = "reads"
)

// ErrEdited is a recording whose checksum is not that of its content.
var ErrEdited = errors.New("its checksum is not that of its content: it was edited or damaged")

// end is the last part.
type end struct {
	SHA256 string `json:"sha256"`
}

// section is one part of a file.
type section struct {
	name string
	text []byte
}

// Encode writes a recording. Equal recordings have equal bytes.
func (r *Recording) Encode() ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s %d: %s of %s %s, %s\n", first, Format, r.Header.Function, r.Header.Kind, r.Header.Object(), r.Header.Result.Class)
	for _, part := range []struct {
		name  string
		value any
		there bool
	}{
		{partHeader, r.Header, true},
		{partEvent, r.Event, r.Event != nil},
		{partDecisions, r.Decisions, len(r.Decisions) > 0},
		{partCalls, r.Calls, len(r.Calls) > 0},
		{partConclusion, r.Conclusion, r.Conclusion != nil},
		{partMapping, r.Mapping, len(r.Mapping) > 0},
		{partReads, r.Reads, len(r.Reads) > 0},
	} {
		if !part.there {
			continue
		}
		text, err := YAML(part.value)
		if err != nil {
			return nil, fmt.Errorf("cannot write part %q of the recording: %w", part.name, err)
		}
		out.WriteString(marker(part.name))
		out.Write(text)
	}
	sum := sha256.Sum256(out.Bytes())
	out.WriteString(marker(partEnd))
	fmt.Fprintf(&out, "sha256: %s\n", hex.EncodeToString(sum[:]))
	return out.Bytes(), nil
}

// YAML writes a value. What YAML does not allow in a text is escaped: an object may hold
// any character that JSON can.
func YAML(value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	text := escaped(string(raw))
	if strings.Contains(text, mergeKey) {
		// Written as YAML this key would lose its quotes, and mean something.
		return []byte(text + "\n"), nil
	}
	return yaml.JSONToYAML([]byte(text))
}

// mergeKey is the key "<<", as Go writes it in JSON, which YAML's writer does not quote.
const mergeKey = `"\u003c\u003c":`

// escaped is JSON without the characters that YAML's reader refuses. They can only
// stand within its strings.
func escaped(raw string) string {
	if !strings.ContainsFunc(raw, unreadable) {
		return raw
	}
	var out strings.Builder
	for _, r := range raw {
		if unreadable(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

func unreadable(r rune) bool {
	return (r >= 0x7f && r <= 0x9f) || r == 0xfeff || r == 0xfffe || r == 0xffff
}

func marker(name string) string { return "-- " + name + " --\n" }

// Parse reads a recording. The error says what is wrong with the file, and is
// ErrEdited if only its checksum is; then the recording is returned with it.
func Parse(text []byte) (*Recording, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", len(text), MaxSize)
	}
	sections, err := split(text)
	if err != nil {
		return nil, err
	}
	r := &Recording{}
	into := map[string]any{
		partHeader: &r.Header, partEvent: &r.Event, partDecisions: &r.Decisions, partCalls: &r.Calls,
		partConclusion: &r.Conclusion, partMapping: &r.Mapping, partReads: &r.Reads,
	}
	last := end{}
	into[partEnd] = &last
	seen := map[string]bool{}
	for _, s := range sections {
		target, known := into[s.name]
		switch {
		case !known:
			return nil, fmt.Errorf("it has a part %q, which no recording has", s.name)
		case seen[s.name]:
			return nil, fmt.Errorf("it has two parts %q", s.name)
		}
		seen[s.name] = true
		if err := decode(s.text, target); err != nil {
			return nil, fmt.Errorf("cannot read its part %q: %w", s.name, err)
		}
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	content, _, _ := bytes.Cut(text, []byte("\n"+marker(partEnd)))
	sum := sha256.Sum256(append(bytes.Clone(content), '\n'))
	if last.SHA256 != hex.EncodeToString(sum[:]) {
		return r, ErrEdited
	}
	return r, nil
}

// ParseHeader reads the header alone, from the beginning of a file.
func ParseHeader(text []byte) (Header, error) {
	if len(text) > headerSize {
		text = text[:headerSize]
	}
	h := Header{}
	if err := checkFirst(text); err != nil {
		return h, err
	}
	_, rest, found := bytes.Cut(text, []byte("\n"+marker(partHeader)))
	if !found {
		return h, errors.New("it has no part \"recording\"")
	}
	header, _, found := bytes.Cut(rest, []byte("\n-- "))
	if !found {
		return h, errors.New("it ends within its part \"recording\"")
	}
	if err := decode(append(header, '\n'), &h); err != nil {
		return h, fmt.Errorf("cannot read its part \"recording\": %w", err)
	}
	return h, nil
}

// check says what a recording must have to be one.
func (r *Recording) check() error {
	switch {
	case r.Header.Format != Format:
		return fmt.Errorf("its header says format %d, this program reads format %d", r.Header.Format, Format)
	case r.Header.Function == "":
		return errors.New("its header names no function")
	case r.Header.Name == "":
		return errors.New("its header names no object")
	}
	return nil
}

func checkFirst(text []byte) error {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	rest, ok := strings.CutPrefix(string(line), first+" ")
	if !ok {
		return fmt.Errorf("it is no recording: its first line does not begin with %q", first)
	}
	format, _, _ := strings.Cut(rest, ":")
	if format != fmt.Sprint(Format) {
		return fmt.Errorf("it has format %.20q, this program reads format %d: use the kubectl-slipway of the version that wrote it", format, Format)
	}
	return nil
}

// split takes a file apart.
func split(text []byte) ([]section, error) {
	if err := checkFirst(text); err != nil {
		return nil, err
	}
	var sections []section
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		name, isMarker := markerName(line)
		switch {
		case isMarker:
			sections = append(sections, section{name: name})
		case len(sections) > 0:
			last := &sections[len(sections)-1]
			last.text = append(append(last.text, line...), '\n')
		}
	}
	if len(sections) == 0 || sections[0].name != partHeader {
		return nil, errors.New("it does not begin with the part \"recording\"")
	}
	if sections[len(sections)-1].name != partEnd {
		return nil, errors.New("it is cut off: its last part \"end\" is missing")
	}
	return sections, nil
}

func markerName(line []byte) (string, bool) {
	rest, ok := strings.CutPrefix(string(line), "-- ")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, " --")
}

// decode reads YAML strictly, and integers as integers, as the API machinery does.
func decode(text []byte, into any) error {
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	strict, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		return err
	}
	return errors.Join(strict...)
}
