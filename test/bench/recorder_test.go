package main

import (
	"strings"
	"testing"
)

// TestTheRawClientFindsTheNextPage: one that stops at the first page does less than the
// function, and looks faster than it is.
func TestTheRawClientFindsTheNextPage(t *testing.T) {
	const address = "https://server/apis/x/v1/things?limit=2"
	items := `[{"metadata":{"name":"a"},"kind":"Thing","spec":{"text":"` + strings.Repeat("x", 5000) + `"}}]`
	for name, answer := range map[string]string{
		"BuiltIn":  `{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"abc="},"items":` + items + `}`,
		"Metadata": `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7","continue":"abc=","remainingItemCount":3},"items":` + items + `}`,
		"Custom":   `{"apiVersion":"x/v1","items":` + items + `,"kind":"ThingList","metadata":{"continue":"abc=","remainingItemCount":3,"resourceVersion":"7"}}` + "\n",
	} {
		if got, err := next(address, []byte(answer)); err != nil || got != address[:len(address)-len("limit=2")]+"continue=abc%3D&limit=2" {
			t.Errorf("%s: the next page is %q, %v", name, got, err)
		}
	}
	for name, answer := range map[string]string{
		"TheEnd": `{"apiVersion":"x/v1","items":` + items + `,"kind":"ThingList","metadata":{"continue":"","resourceVersion":"7"}}`,
		"Object": `{"apiVersion":"x/v1","kind":"Thing","metadata":{"name":"a","resourceVersion":"7"},"spec":{"continue":"abc"}}`,
	} {
		if got, err := next(address, []byte(answer)); err != nil || got != "" {
			t.Errorf("%s: the next page is %q, %v; there is none", name, got, err)
		}
	}
}
