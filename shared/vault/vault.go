// Package vault holds the secrets behind the tokens of one reconcile.
//
// Read objects are sealed in place: secret strings become tokens (package
// seal). Objects that are about to be sent are opened in a copy. The key of
// the hashes is random and dies with the vault, so tokens tell nothing outside
// of the reconcile that made them.
package vault

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/seal"
)

// lastApplied is kubectl's copy of a whole object, its secrets included.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// scrubbed stands where a secret stood in an error text. Secrets shorter than
// scrubMin would make any text unreadable and are too short to be one.
const (
	scrubbed = "[secret]"
	scrubMin = 4
)

// Vault maps tokens to secrets. It is safe for concurrent use.
type Vault struct {
	key     []byte
	played  bool
	mu      sync.Mutex
	secrets map[string]string
	// concealed are values without a token.
	concealed map[string]bool
}

// New makes an empty vault with a key of its own.
func New() *Vault {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails, see crypto/rand
	return &Vault{key: key, secrets: map[string]string{}}
}

// Seal returns the token of a secret and remembers the secret. A token is
// never sealed again: text that only looks like one is.
func (v *Vault) Seal(secret string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, known := v.secrets[secret]; known || (v.played && seal.Is(secret)) {
		return secret
	}
	token := seal.Token(v.hash(secret), len(secret))
	v.secrets[token] = secret
	return token
}

// SealBase64 does the same for base64 text, and seals what it decodes to. Text
// that does not decode is sealed like any other.
func (v *Vault) SealBase64(text string) string {
	content, err := base64.StdEncoding.DecodeString(text)
	v.mu.Lock()
	_, known := v.secrets[text]
	v.mu.Unlock()
	if err != nil || known {
		return v.Seal(text)
	}
	token := seal.Base64Token(v.hash(text), len(text), v.Seal(string(content)))
	v.mu.Lock()
	defer v.mu.Unlock()
	v.secrets[token] = text
	return token
}

func (v *Vault) hash(secret string) string {
	mac := hmac.New(sha256.New, v.key)
	mac.Write([]byte(secret))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// Open returns the secret behind a token, and any other string as it is.
func (v *Vault) Open(s string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if secret, ok := v.secrets[s]; ok {
		return secret
	}
	return s
}

// Scrub replaces every secret of the vault that appears in a text, plain or in
// base64, longest first.
func (v *Vault) Scrub(text string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	forms := make([]string, 0, 2*(len(v.secrets)+len(v.concealed)))
	for secret := range v.all() {
		if len(secret) < scrubMin {
			continue
		}
		forms = append(forms, base64.StdEncoding.EncodeToString([]byte(secret)))
		forms = append(forms, spellings(secret)...)
		// A server may show one line of a longer value.
		for line := range strings.Lines(secret) {
			if line = strings.TrimSpace(line); len(line) >= scrubMin {
				forms = append(forms, spellings(line)...)
			}
		}
	}
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	for _, form := range forms {
		text = strings.ReplaceAll(text, form, scrubbed)
	}
	return text
}

// all are the secrets and what is concealed.
func (v *Vault) all() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, secret := range v.secrets {
			if !yield(secret) {
				return
			}
		}
		for value := range v.concealed {
			if !yield(value) {
				return
			}
		}
	}
}

// spellings are the forms in which servers show a value: as it is, quoted by
// Go, and quoted as JSON.
func spellings(secret string) []string {
	forms := []string{secret, strings.Trim(strconv.Quote(secret), `"`)}
	for _, escapeHTML := range []bool{true, false} {
		var quoted bytes.Buffer
		encoder := json.NewEncoder(&quoted)
		encoder.SetEscapeHTML(escapeHTML)
		if encoder.Encode(secret) == nil {
			forms = append(forms, strings.Trim(quoted.String(), "\"\n"))
		}
	}
	return forms
}

// SealObject replaces the secret strings of an object, in place.
func (v *Vault) SealObject(res kind.Resource, obj *unstructured.Unstructured) {
	if obj == nil || len(res.Sealed) == 0 {
		return
	}
	if annotations := obj.GetAnnotations(); annotations[lastApplied] != "" {
		annotations[lastApplied] = v.Seal(annotations[lastApplied])
		obj.SetAnnotations(annotations)
	}
	for _, path := range res.Sealed {
		path, base64Text := strings.CutSuffix(path, ":base64")
		walk(obj.Object, strings.Split(path, "."), func(s string) string {
			if base64Text {
				return v.SealBase64(s)
			}
			if inSecretData(res, path) {
				if raw, err := base64.StdEncoding.DecodeString(s); err == nil {
					s = string(raw)
				}
			}
			return v.Seal(s)
		})
	}
}

// OpenObject returns a copy of an object, or of a patch of one, in which every
// token is replaced by its secret.
func (v *Vault) OpenObject(res kind.Resource, content map[string]any) map[string]any {
	opened := (&unstructured.Unstructured{Object: content}).DeepCopy().Object
	if data, ok := opened["data"].(map[string]any); ok && inSecretData(res, "data.*") {
		for key, value := range data {
			s, isText := value.(string)
			if opened := v.Open(s); isText && opened != s {
				data[key] = base64.StdEncoding.EncodeToString([]byte(opened))
			}
		}
	}
	openAll(opened, v.Open)
	return opened
}

func inSecretData(res kind.Resource, path string) bool {
	return res.Group == "" && res.Kind == "Secret" && path == "data.*"
}

// walk calls change on every string at a path; "*" is any key of a map and
// "name[]" every item of a list.
func walk(value any, path []string, change func(string) string) {
	fields, ok := value.(map[string]any)
	if !ok {
		return
	}
	name, isList := strings.CutSuffix(path[0], "[]")
	keys := []string{name}
	if name == "*" {
		keys = keys[:0]
		for key := range fields {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		child, present := fields[key]
		switch text, isText := child.(string); {
		case !present:
		case len(path) == 1 && isText:
			fields[key] = change(text)
		case len(path) == 1:
		case isList:
			items, _ := child.([]any)
			for _, item := range items {
				walk(item, path[1:], change)
			}
		default:
			walk(child, path[1:], change)
		}
	}
}

func openAll(value any, open func(string) string) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			if s, ok := child.(string); ok {
				v[key] = open(s)
				continue
			}
			openAll(child, open)
		}
	case []any:
		for i, child := range v {
			if s, ok := child.(string); ok {
				v[i] = open(s)
				continue
			}
			openAll(child, open)
		}
	}
}
