package kube

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// tokenLifetime is how long a token is good for. Nobody renews it, so it has to
// outlast the longest local run.
const tokenLifetime = 30 * 24 * time.Hour

// Token asks the API server for a token of the ServiceAccount.
func Token(ctx context.Context, cfg *rest.Config, namespace, name string) (string, error) {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return "", fmt.Errorf("cannot make a client of %q: %w", cfg.Host, err)
	}
	seconds := int64(tokenLifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot get a token of ServiceAccount \"%s/%s\": %w", namespace, name, err)
	}
	return answer.Status.Token, nil
}

// TokenKubeconfig returns a kubeconfig with a token of the ServiceAccount, and so
// with its rights and no others. The ServiceAccount has to exist.
func (c *Cluster) TokenKubeconfig(ctx context.Context, namespace, name string) ([]byte, error) {
	token, err := Token(ctx, c.Config, namespace, name)
	if err != nil {
		return nil, err
	}
	return c.BearerKubeconfig(token)
}
