package vault

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/seal"
)

func TestAPlayedVaultSealsNoTokenAgain(t *testing.T) {
	token := New().Seal("a secret of a recording")
	v := Played()
	if got := v.Seal(token); got != token {
		t.Errorf("the token became %q", got)
	}
	if got := v.Seal("something new"); !seal.Is(got) {
		t.Errorf("something new stays %q", got)
	}
}

func TestBlindTellsOfWhatIsNoTokenItsLengthAlone(t *testing.T) {
	v := New()
	token := v.Seal("read before")
	content := map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{lastApplied: "a whole object", "other": "stays"}},
		"data":     map[string]any{"a": token, "b": "bWFkZSB1cA=="},
	}
	want := map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{lastApplied: "sealed:14:" + strings.Repeat("0", 32), "other": "stays"}},
		"data":     map[string]any{"a": token, "b": "sealed:12:" + strings.Repeat("0", 32)},
	}
	if diff := cmp.Diff(want, v.Blind(kind.Secrets, content)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if content["data"].(map[string]any)["b"] != "bWFkZSB1cA==" {
		t.Error("the object itself was changed")
	}
}

func TestTheRedactorKnowsLongSecretsAndNoConcealedValues(t *testing.T) {
	v := New()
	long, short := v.Seal("a-long-enough-secret"), v.Seal("short")
	v.Conceal("http://proxy.example.com:3128")
	got := v.Redactor()("a-long-enough-secret, short, http://proxy.example.com:3128")
	if want := long + ", short, http://proxy.example.com:3128"; got != want {
		t.Errorf("got %q, want %q (%s)", got, want, short)
	}
	if got := v.Scrub("short http://proxy.example.com:3128"); strings.Contains(got, "proxy") || strings.Contains(got, "short") {
		t.Errorf("an error text still says %q", got)
	}
}
