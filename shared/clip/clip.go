// Package clip shapes what people are told: messages of conditions and Events,
// which may quote what anybody wrote.
package clip

import (
	"strings"
	"unicode/utf8"
)

const dots = "..."

// Line makes a text one line of at most size bytes: white space becomes single
// spaces, bytes that are no UTF-8 become U+FFFD, and no character is cut in two.
func Line(text string, size int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) <= size {
		return text
	}
	cut := max(size-len(dots), 0)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + dots[:min(len(dots), max(size, 0))]
}
