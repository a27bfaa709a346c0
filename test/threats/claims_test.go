package threats

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/deploy/local/build"
)

const page = "docs/threat-model.md"

func read(t *testing.T, path string) string {
	t.Helper()
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// backing is a test that a claim names: its file, and its name.
var backing = regexp.MustCompile("`([\\w./-]+_test\\.go)` `(\\w+)`")

// TestEveryClaimNamesTestsThatThereAre: each row of each table of claims names at least
// one, and each that is named is a test or a fuzz target of that file.
func TestEveryClaimNamesTestsThatThereAre(t *testing.T) {
	claims, inTable := 0, false
	for _, line := range strings.Split(read(t, page), "\n") {
		switch {
		case line == "| claim | shown by |":
			inTable = true
			continue
		case !strings.HasPrefix(line, "|"):
			inTable = false
		}
		if !inTable || strings.HasPrefix(line, "| ---") {
			continue
		}
		claims++
		found := backing.FindAllStringSubmatch(line, -1)
		if len(found) == 0 || strings.Count(line, "`Test")+strings.Count(line, "`Fuzz") != len(found) {
			t.Errorf("this claim does not name its tests as `file` `Name`: %s", line)
		}
		for _, match := range found {
			if !strings.Contains(read(t, match[1]), "\nfunc "+match[2]+"(") {
				t.Errorf("%s has no %s, which a claim names: %s", match[1], match[2], line)
			}
		}
	}
	if claims < 40 {
		t.Errorf("only %d claims are found: are the tables read?", claims)
	}
}
