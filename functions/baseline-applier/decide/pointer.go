package decide

import (
	"fmt"
	"strconv"
	"strings"
)

// maxTokens bounds how deep a pointer leads.
const maxTokens = 100

// Tokens are the parts of a JSON pointer, with ~1 and ~0 decoded.
func Tokens(pointer string) ([]string, error) {
	if !strings.HasPrefix(pointer, "/") {
		return nil, fmt.Errorf("cannot use pointer %q: it has to begin with /", pointer)
	}
	parts := strings.Split(pointer[1:], "/")
	if len(parts) > maxTokens {
		return nil, fmt.Errorf("cannot use pointer %q: it has %d parts, %d are allowed", shorten(pointer), len(parts), maxTokens)
	}
	for i, part := range parts {
		for rest := part; ; {
			at := strings.IndexByte(rest, '~')
			if at < 0 {
				break
			}
			if at+1 >= len(rest) || rest[at+1] != '0' && rest[at+1] != '1' {
				return nil, fmt.Errorf("cannot use pointer %q: ~ is written ~0 and / is written ~1", pointer)
			}
			rest = rest[at+2:]
		}
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
	}
	return parts, nil
}

// Pointer is the JSON pointer of tokens.
func Pointer(tokens []string) string {
	var b strings.Builder
	for _, token := range tokens {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// index reads an array index.
func index(token string) (int, bool) {
	if token == "" || len(token) > 1 && token[0] == '0' || strings.Trim(token, "0123456789") != "" {
		return 0, false
	}
	i, err := strconv.Atoi(token)
	return i, err == nil
}

// shorten keeps texts for people short.
func shorten(text string) string {
	const most = 80
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
