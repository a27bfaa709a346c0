// Package seal keeps secrets out of decisions, logs and recordings.
//
// A secret string is replaced by a token the moment it is read. A token tells
// the length of the secret and a keyed hash; equal secrets read in one
// reconcile have equal tokens, so a decision can compare them, copy them and
// measure them without ever seeing them. Only the applier opens tokens, right
// before a request is sent (see shared/vault for the secrets behind them).
package seal

import (
	"strconv"
	"strings"
)

const prefix = "sealed:"

// Token builds the token of a secret of size bytes with the given hash.
// decodes tells whether the secret is valid base64.
func Token(hash string, size int, decodes bool) string {
	kind := "t"
	if decodes {
		kind = "b"
	}
	return prefix + kind + ":" + strconv.Itoa(size) + ":" + hash
}

// Is reports whether s is a token.
func Is(s string) bool {
	_, _, ok := parse(s)
	return ok
}

// Len is the number of bytes of s, or of the secret behind it.
func Len(s string) int {
	if size, _, ok := parse(s); ok {
		return size
	}
	return len(s)
}

// Base64 reports whether the secret behind a token decodes as base64. For a
// string that is no token it is false.
func Base64(s string) bool {
	_, decodes, ok := parse(s)
	return ok && decodes
}

func parse(s string) (size int, decodes, ok bool) {
	parts := strings.SplitN(s, ":", 4)
	if len(parts) != 4 || parts[0]+":" != prefix || len(parts[3]) != hashLen || (parts[1] != "t" && parts[1] != "b") {
		return 0, false, false
	}
	size, err := strconv.Atoi(parts[2])
	if err != nil || size < 0 {
		return 0, false, false
	}
	return size, parts[1] == "b", true
}

const hashLen = 32
