package caller

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// tokenReviews are asked by writing them; nothing is stored.
var tokenReviews = schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews"}

// ByTokenReview asks an API server. The account that asks needs the right to create
// tokenreviews.
func ByTokenReview(client dynamic.Interface) Review {
	return func(ctx context.Context, token, audience string) (string, error) {
		review := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
			"spec": map[string]any{"token": token, "audiences": []any{audience}},
		}}
		answer, err := client.Resource(tokenReviews).Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return "", fmt.Errorf("cannot ask whose a token is: %w", err)
		}
		good, _, _ := unstructured.NestedBool(answer.Object, "status", "authenticated")
		// A server that knows nothing of audiences leaves them out, and then the token
		// is for the server itself.
		audiences, _, _ := unstructured.NestedStringSlice(answer.Object, "status", "audiences")
		if !good || !slices.Contains(audiences, audience) {
			return "", nil
		}
		user, _, _ := unstructured.NestedString(answer.Object, "status", "user", "username")
		return user, nil
	}
}
