package vault

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/seal"
)

const canary = "canary-7f3a-do-not-leak"

func secret() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": "s", "annotations": map[string]any{
			lastApplied: `{"data":{"userdata":"` + canary + `"}}`, "other": "kept",
		}},
		"data": map[string]any{"userdata": base64.StdEncoding.EncodeToString([]byte(canary))},
	}}
}

func TestASealedSecretShowsNothingAndOpensToItself(t *testing.T) {
	v, want, got := New(), secret(), secret()
	v.SealObject(kind.Secrets, got)
	if text := fmt.Sprint(got.Object); strings.Contains(text, canary) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(canary))) {
		t.Fatalf("the secret is still in the object: %s", text)
	}
	token := got.Object["data"].(map[string]any)["userdata"].(string)
	if !seal.Is(token) || seal.Len(token) != len(canary) {
		t.Errorf("want a token of length %d, got %q", len(canary), token)
	}
	if diff := cmp.Diff(want.Object, v.OpenObject(kind.Secrets, got.Object)); diff != "" {
		t.Errorf("the opened object differs (-want +got):\n%s", diff)
	}
	if _, still := got.Object["data"].(map[string]any)["userdata"]; !still {
		t.Error("opening must not change the sealed object")
	}
}

func TestATokenInAnotherFieldOpensToThePlainText(t *testing.T) {
	v, s := New(), secret()
	v.SealObject(kind.Secrets, s)
	token := s.Object["data"].(map[string]any)["userdata"].(string)
	got := v.OpenObject(kind.ConfigMaps, map[string]any{"spec": map[string]any{"list": []any{token, "plain"}}})
	want := map[string]any{"spec": map[string]any{"list": []any{canary, "plain"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEqualSecretsHaveEqualTokensInOneVaultOnly(t *testing.T) {
	a, b := New(), New()
	if first, second := a.Seal(canary), a.Seal(canary); first != second {
		t.Error("a decision could not compare secrets")
	}
	if a.Seal(canary) == b.Seal(canary) {
		t.Error("tokens of two reconciles must not be comparable: the hash would be a fingerprint")
	}
	if a.Seal(a.Seal(canary)) != a.Seal(canary) {
		t.Error("a token must not be sealed again")
	}
}

func TestTheTokenOfBase64TextLeadsToThatOfItsContent(t *testing.T) {
	v := New()
	text := base64.StdEncoding.EncodeToString([]byte(canary))
	token := v.SealBase64(text)
	if token != v.SealBase64(text) || v.SealBase64(token) != token || v.Open(token) != text || seal.Len(token) != len(text) {
		t.Errorf("token %q must stand for the text and be stable", token)
	}
	content, ok := seal.Decoded(token)
	if !ok || content != v.Seal(canary) || v.Open(content) != canary {
		t.Errorf("token %q must lead to that of the content, led to %q", token, content)
	}
	got := v.OpenObject(kind.Secrets, map[string]any{"data": map[string]any{"userdata": content}})
	if diff := cmp.Diff(map[string]any{"data": map[string]any{"userdata": text}}, got); diff != "" {
		t.Errorf("under a Secret's data it must be encoded once, not twice (-want +got):\n%s", diff)
	}
	if _, ok := seal.Decoded(v.SealBase64("%% is no base64")); ok {
		t.Error("text that does not decode led to a content")
	}
}

func TestATokenNobodySealedOpensNothing(t *testing.T) {
	forged := seal.Token(strings.Repeat("0", 32), 5)
	if got := New().Open(forged); got != forged {
		t.Errorf("a forged token opened to %q", got)
	}
}

func TestScrubRemovesSecretsFromErrorTexts(t *testing.T) {
	v := New()
	v.Seal("line one " + canary + "\nline two is " + canary)
	v.Seal("abc")
	for _, text := range []string{
		`admission refused: "line one ` + canary + `"`,
		"bad: " + base64.StdEncoding.EncodeToString([]byte("line one "+canary+"\nline two is "+canary)),
	} {
		got := v.Scrub(text)
		if strings.Contains(got, canary) || !strings.Contains(got, scrubbed) {
			t.Errorf("%q became %q", text, got)
		}
	}
	v.Seal("#cloud-config\npassword: \"hunter2-very-secret\"\npw: ab12")
	quoted := fmt.Sprintf("Invalid value: %q", "#cloud-config\npassword: \"hunter2-very-secret\"\npw: ab12")
	for _, text := range []string{quoted, "line: " + `password: \"hunter2-very-secret\"`, "just pw: ab12"} {
		if got := v.Scrub(text); strings.Contains(got, "hunter2") || strings.Contains(got, "ab12") {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := v.Scrub("abc is three letters"); got != "abc is three letters" {
		t.Errorf("a secret of three letters makes texts unreadable: %q", got)
	}
}

func TestSealReachesEveryItemOfAList(t *testing.T) {
	res := kind.Resource{Versions: []string{"v1"}, Kind: "X", Sealed: []string{"spec.volumes[].cloud.userData", "spec.missing.x", "spec.volumes"}}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"volumes": []any{
		map[string]any{"cloud": map[string]any{"userData": canary}}, map[string]any{"name": "root"}, "odd",
	}}}}
	v := New()
	v.SealObject(res, obj)
	if text := fmt.Sprint(obj.Object); strings.Contains(text, canary) {
		t.Errorf("not sealed: %s", text)
	}
}
