package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	fenced  = regexp.MustCompile("(?s)```.*?```")
)

// TestEveryLinkLeadsSomewhere follows links within the repository.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	h := open(t)
	texts := h.documents()
	for name, text := range texts {
		for _, found := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			to, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			target := name
			if to != "" {
				target = filepath.Join(filepath.Dir(name), to)
			}
			if _, err := os.Stat(filepath.Join(h.root, target)); err != nil {
				t.Errorf("%s leads to %s, which is not there", name, found[1])
				continue
			}
			if anchor != "" && !anchors(texts[target])[anchor] {
				t.Errorf("%s leads to %s, and there is no such heading", name, found[1])
			}
		}
	}
}

// anchors are the headings of a document, as links name them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, found := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		all[strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, strings.TrimSpace(found[1]))] = true
	}
	return all
}
