package record

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	kjson "sigs.k8s.io/json"
)

// password is what stands between user and host of a URL.
var password = regexp.MustCompile(`(://[^/\s:@"']*:)([^/\s@"']+)(@)`)

// secretName is a name that a secret may stand under where nothing else says so: a
// header or a setting.
var secretName = regexp.MustCompile(`(?i)(auth|token|secret|passw|credential|cookie|apikey|api-key|private)`)

// SecretName tells whether what stands under a name is better left out.
func SecretName(name string) bool { return secretName.MatchString(name) }

// WithoutPasswords puts as many x in the place of each password in a URL, so that what
// is decided from the URL stays the same in kind.
func WithoutPasswords(text string) string {
	if !strings.Contains(text, "://") || !strings.Contains(text, "@") {
		return text
	}
	return password.ReplaceAllStringFunc(text, func(match string) string {
		parts := password.FindStringSubmatch(match)
		return parts[1] + strings.Repeat("x", len(parts[2])) + parts[3]
	})
}

// named are fields whose values are names: they are never taken for secrets, since
// what is read and written depends on them.
var named = map[string]bool{"apiVersion": true, "kind": true, "name": true, "namespace": true, "uid": true, "resourceVersion": true}

// Clean is a copy of a value as JSON knows it, with a change made to every string in
// it that is not the name of something. Nil stays nil.
func Clean(value any, change func(string) string) any {
	switch v := value.(type) {
	case string:
		return change(v)
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for key, child := range v {
			if text, isText := child.(string); isText && named[key] {
				out[key] = text
				continue
			}
			out[key] = Clean(child, change)
		}
		return out
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = Clean(child, change)
		}
		return out
	}
	return value
}

// Plain turns a value into what JSON knows: maps, lists, strings and numbers.
func Plain(value any) (map[string]any, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("cannot write %T: %w", value, err)
	}
	out := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &out); err != nil {
		return nil, fmt.Errorf("cannot write %T: %w", value, err)
	}
	return out, nil
}
