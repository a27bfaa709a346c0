// Package seal keeps secrets out of decisions, logs and recordings.
//
// A secret string is replaced by a token the moment it is read. A token tells
// the length of the secret and a keyed hash; equal secrets read in one
// reconcile have equal tokens, so a decision can compare them, copy them and
// measure them without ever seeing them. The token of base64 text also leads to
// the token of what it decodes to. Only the applier opens tokens, right before
// a request is sent (see package vault for the secrets behind them).
package seal

import (
	"strconv"
	"strings"
)

const (
	prefix  = "sealed:"
	decoded = "~"
	hashLen = 32
)

// Token builds the token of a secret of size bytes with the given hash (32 hex
// digits).
func Token(hash string, size int) string {
	return prefix + strconv.Itoa(size) + ":" + hash
}

// Base64Token builds the token of base64 text, given the token of what it
// decodes to.
func Base64Token(hash string, size int, content string) string {
	return Token(hash, size) + decoded + content
}

// Is reports whether s is a token.
func Is(s string) bool {
	_, ok := size(s)
	return ok
}

// Len is the number of bytes of s, or of the secret behind it.
func Len(s string) int {
	if n, ok := size(s); ok {
		return n
	}
	return len(s)
}

// Decoded is the token of what base64 text decodes to. ok is false when s is
// not the token of valid base64 text.
func Decoded(s string) (content string, ok bool) {
	if !Is(s) {
		return "", false
	}
	_, content, ok = strings.Cut(s, decoded)
	return content, ok && Is(content)
}

func size(s string) (int, bool) {
	s, _, _ = strings.Cut(s, decoded)
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok {
		return 0, false
	}
	number, hash, ok := strings.Cut(rest, ":")
	n, err := strconv.Atoi(number)
	return n, ok && err == nil && n >= 0 && len(hash) == hashLen
}
