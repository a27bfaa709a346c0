package kube

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCertificatesAreKeptWhileTheyAreGood(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		spoil  func(t *testing.T, dir string)
		later  time.Duration
		kept   bool
	}{
		"untouched": {
			reason: "tokens and kubeconfigs of the last run stay good",
			spoil:  func(*testing.T, string) {},
			kept:   true,
		},
		"a file is missing": {
			reason: "a run that was killed while writing leaves some out",
			spoil:  func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, saPubFile))) },
		},
		"a file is cut short": {
			reason: "half a certificate is none",
			spoil:  func(t *testing.T, dir string) { must(t, os.Truncate(filepath.Join(dir, serverCertFile), 90)) },
		},
		"a key of another": {
			reason: "a key that does not belong to its certificate is useless",
			spoil: func(t *testing.T, dir string) {
				must(t, os.Rename(filepath.Join(dir, saKeyFile), filepath.Join(dir, adminKeyFile)))
				must(t, os.WriteFile(filepath.Join(dir, saKeyFile), nil, 0o600))
			},
		},
		"a certificate of another authority": {
			reason: "the server's certificate must be one that clients trust",
			spoil: func(t *testing.T, dir string) {
				other, err := newPKI(dir, now)
				must(t, err)
				must(t, os.WriteFile(filepath.Join(dir, serverCertFile), other.files[serverCertFile], 0o600))
				must(t, os.WriteFile(filepath.Join(dir, serverKeyFile), other.files[serverKeyFile], 0o600))
			},
		},
		"soon over": {
			reason: "certificates that end during a run would end the run",
			spoil:  func(*testing.T, string) {},
			later:  validity - margin/2,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first, err := ensurePKI(dir, now)
			must(t, err)
			tc.spoil(t, dir)
			second, err := ensurePKI(dir, now.Add(tc.later))
			must(t, err)
			if kept := cmp.Equal(first.files, second.files); kept != tc.kept {
				t.Errorf("%s: kept is %t, want %t", tc.reason, kept, tc.kept)
			}
			if err := second.check(now.Add(tc.later)); err != nil {
				t.Errorf("%s: what is in use is not good: %v", tc.reason, err)
			}
			onDisk, err := loadPKI(dir)
			must(t, err)
			if diff := cmp.Diff(second.files, onDisk.files); diff != "" {
				t.Errorf("%s: the files differ from what is in use:\n%s", tc.reason, diff)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
