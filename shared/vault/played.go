package vault

import (
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/seal"
)

// redactMin is the length from which a secret is looked for outside of the fields that
// hold secrets: a shorter one is as likely to be a word that stands there anyway.
const redactMin = 16

// unknownHash is in tokens of what was never read: it tells nothing, and equal lengths
// have equal tokens.
var unknownHash = strings.Repeat("0", 32)

// Played makes the vault of a reconcile that is played from a recording. It has no
// secrets: the tokens of the recording are all there is, and are never sealed again.
func Played() *Vault {
	v := New()
	v.played = true
	return v
}

// Conceal keeps a value out of texts (Scrub) that stays readable where it was read.
func (v *Vault) Conceal(value string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.concealed == nil {
		v.concealed = map[string]bool{}
	}
	v.concealed[value] = true
}

// Known tells whether a text is a token of the vault.
func (v *Vault) Known(text string) bool {
	if !seal.Is(text) {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	_, known := v.secrets[text]
	return known || v.played
}

// Blind is a copy of an object's content for a recording: what stands in the fields
// that hold secrets and is no token becomes one that tells its length alone.
func (v *Vault) Blind(res kind.Resource, content map[string]any) map[string]any {
	out := copied(content)
	for _, path := range res.Sealed {
		path, _ = strings.CutSuffix(path, ":base64")
		walk(out, strings.Split(path, "."), func(text string) string {
			if v.Known(text) {
				return text
			}
			return seal.Token(unknownHash, len(text))
		})
	}
	if len(res.Sealed) == 0 {
		return out
	}
	metadata, _ := out["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if text, ok := annotations[lastApplied].(string); ok && !v.Known(text) {
		annotations[lastApplied] = seal.Token(unknownHash, len(text))
	}
	return out
}

// Redactor returns a function that replaces every longer secret in a text by its token.
// Secrets stand where they are sealed; this is for those that stand somewhere else too.
func (v *Vault) Redactor() func(text string) string {
	type form struct{ secret, token string }
	var forms []form
	v.mu.Lock()
	for token, secret := range v.secrets {
		if len(secret) >= redactMin {
			forms = append(forms, form{secret, token})
		}
	}
	v.mu.Unlock()
	slices.SortFunc(forms, func(a, b form) int {
		if len(a.secret) != len(b.secret) {
			return len(b.secret) - len(a.secret)
		}
		return strings.Compare(a.token, b.token)
	})
	return func(text string) string {
		for _, f := range forms {
			if len(text) >= len(f.secret) {
				text = strings.ReplaceAll(text, f.secret, f.token)
			}
		}
		return text
	}
}

// copied is a copy of what JSON knows.
func copied(content map[string]any) map[string]any {
	out, _ := copyOf(content).(map[string]any)
	return out
}

func copyOf(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for key, child := range v {
			out[key] = copyOf(child)
		}
		return out
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = copyOf(child)
		}
		return out
	}
	return value
}
