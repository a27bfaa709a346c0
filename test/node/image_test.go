package node

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// An engine loads an image by its table of contents; equal programs have to give equal
// images, so that a second import finds everything there.
func TestAnArchiveIsCompleteAndTheSameTwice(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(binary, []byte("not really a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func() []byte {
		t.Helper()
		var out bytes.Buffer
		if err := WriteArchive(&out, Image{Name: "dev.local/a/one:t", Binary: binary}, Image{Name: "dev.local/two:t", Binary: binary}); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	first := write()
	if !bytes.Equal(first, write()) {
		t.Error("two archives of the same programs differ")
	}
	files := map[string][]byte{}
	for archive := tar.NewReader(bytes.NewReader(first)); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
	var contents []entry
	if err := json.Unmarshal(files["manifest.json"], &contents); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"/ko-app/one", "/ko-app/two"} {
		var about config
		if err := json.Unmarshal(files[contents[i].Config], &about); err != nil {
			t.Fatal(err)
		}
		if got := about.Config.Entrypoint; len(got) != 1 || got[0] != want {
			t.Errorf("image %d starts %v, not %s", i, got, want)
		}
		if len(files[contents[i].Layers[0]]) == 0 {
			t.Errorf("image %d has no layer %q", i, contents[i].Layers[0])
		}
	}
}

func TestTheErrorOfAnImageNamesIt(t *testing.T) {
	err := WriteArchive(io.Discard, Image{Name: "dev.local/none:t", Binary: "/no/such/file"})
	if err == nil || !errors.Is(err, os.ErrNotExist) || !bytes.Contains([]byte(err.Error()), []byte("dev.local/none:t")) {
		t.Errorf("got %v", err)
	}
}
