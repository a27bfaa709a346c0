package recordings

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/record"
)

var update = flag.Bool("update", false, "write down what the functions come to now")

// cases are the saved recordings, by function.
func cases(t *testing.T) map[string][]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "functions", "*", "testdata", "recordings", "*"+record.Suffix))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, path := range paths {
		name := filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(path))))
		out[name] = append(out[name], path)
	}
	return out
}

// host makes a function under the settings of a recording, and no others.
func host(t *testing.T, spec reconcile.Spec, settings map[string]string) *reconcile.Host {
	t.Helper()
	for _, name := range []string{"KUBECONFIG", "SLIPWAY_RECORD_DIR", "SLIPWAY_RECORD_ARCHIVE", "SLIPWAY_MODE"} {
		t.Setenv(name, "")
	}
	t.Setenv("LOG_LEVEL", "error")
	for _, v := range spec.Env {
		t.Setenv(v.Name, settings[v.Name]) // the value is put back at the end, whether it is unset here or not
		if _, set := settings[v.Name]; !set {
			if err := os.Unsetenv(v.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	return slipway.Host(spec.Name)
}

func TestEverySavedRecordingComesToTheSame(t *testing.T) {
	saved := cases(t)
	for _, spec := range slipway.Specs() {
		t.Run(spec.Name, func(t *testing.T) {
			if len(saved[spec.Name]) == 0 {
				t.Skipf("no recording is saved under functions/%s/testdata/recordings", spec.Name)
			}
			for _, path := range saved[spec.Name] {
				t.Run(strings.TrimSuffix(filepath.Base(path), record.Suffix), func(t *testing.T) { play(t, spec, path) })
			}
		})
	}
	for name := range saved {
		if slipway.Host(name) == nil {
			t.Errorf("functions/%s has recordings, and is no function", name)
		}
	}
}

// TestNoGoldenHoldsASecret looks for what the secrets of tests begin with.
func TestNoGoldenHoldsASecret(t *testing.T) {
	for _, root := range []string{"functions", "test", "cmd", "shared", "deploy"} {
		err := filepath.WalkDir(filepath.Join("..", "..", root), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || !strings.Contains(path, "testdata") || strings.Contains(path, "fuzz") {
				return err
			}
			text, err := os.ReadFile(path) //nolint:gosec // files of this repository
			if err == nil && strings.Contains(string(text), "canary-") {
				t.Errorf("%s holds a secret", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func play(t *testing.T, spec reconcile.Spec, path string) {
	recording, err := record.ReadFile(path, *update)
	if err != nil {
		t.Fatal(err)
	}
	replayed, err := host(t, spec, recording.Header.Settings).Replay(t.Context(), recording)
	if err != nil {
		t.Fatal(err)
	}
	want, err := recording.Verdict()
	if err != nil {
		t.Fatal(err)
	}
	got, err := replayed.Recording.Verdict()
	if err != nil {
		t.Fatal(err)
	}
	if replayed.Unmapped || len(replayed.Concerns) > 0 {
		t.Errorf("the event concerns other objects than it did: %v", replayed.Concerns)
	}
	if string(want) == string(got) {
		return
	}
	if !*update || len(replayed.Unknown) > 0 {
		t.Fatalf("it comes to something else; not in the recording: %q\n%s", replayed.Unknown, diff.Diff("recorded", want, "replayed", got))
	}
	text, err := replayed.Recording.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
