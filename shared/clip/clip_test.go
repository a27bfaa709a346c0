package clip

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	for name, c := range map[string]struct {
		reason, text string
		size         int
		want         string
	}{
		"short":        {"what fits stays", "disk root is too small", 30, "disk root is too small"},
		"exact":        {"the size is a size that fits", "abcdef", 6, "abcdef"},
		"long":         {"what is cut says so", "abcdefghij", 8, "abcde..."},
		"lines":        {"a message is one line", "a\n\tb \r\n c", 20, "a b c"},
		"characters":   {"a character is whole or absent", "ééééé", 8, "éé..."},
		"no text":      {"bytes of no character are shown as such", "a\xffb", 10, "a\uFFFDb"},
		"tiny":         {"the dots fit as well", "abcdef", 2, ".."},
		"no room":      {"no size is no text", "abcdef", 0, ""},
		"a wrong size": {"a size below zero is no size", "abcdef", -4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Line(c.text, c.size); got != c.want {
				t.Errorf("%s: %q became %q, expected %q", c.reason, c.text, got, c.want)
			}
		})
	}
}

func FuzzAClippedTextFits(f *testing.F) {
	f.Add("disk root", 5)
	f.Add("é\xff\n", 3)
	f.Fuzz(func(t *testing.T, text string, size int) {
		got := Line(text, size)
		if len(got) > max(size, 0) || !utf8.ValidString(got) || strings.ContainsAny(got, "\r\n\t") {
			t.Errorf("%q of %d bytes became %q", text, size, got)
		}
	})
}
