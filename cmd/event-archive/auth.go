package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

const (
	// audience is what a reader's token must be made for.
	audience = "event-archive"
	// headerToken carries the token: the API server's proxy, which is how readers come
	// from outside, keeps Authorization to itself.
	headerToken = "X-Slipway-Token" //nolint:gosec // a header's name
	// authTimeout bounds both questions to the API server.
	authTimeout = 5 * time.Second
)

// Auth lets the cluster decide who may read: a token of a ServiceAccount, made for the
// audience event-archive, whose bearer has the right to get recordings.slipway.dev.
type Auth struct {
	// Client and Server reach the API server.
	Client *http.Client
	Server string
	// Namespace is where the right has to hold.
	Namespace string
}

// NewAuth reaches the API server by a configuration.
func NewAuth(config *rest.Config, namespace string) (*Auth, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the API server: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the API server: %w", err)
	}
	return &Auth{Client: client, Server: strings.TrimSuffix(server.String(), "/"), Namespace: namespace}, nil
}

// Check tells whether a request may read; the code is for its answer.
func (a *Auth) Check(r *http.Request) (code int, err error) {
	token := r.Header.Get(headerToken)
	if token == "" {
		token, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	if token == "" {
		return http.StatusUnauthorized, errors.New("a token is needed: send it as " + headerToken)
	}
	ctx, cancel := context.WithTimeout(r.Context(), authTimeout)
	defer cancel()
	who := authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{audience}}}
	who.APIVersion, who.Kind = "authentication.k8s.io/v1", "TokenReview"
	if err := a.ask(ctx, "/apis/authentication.k8s.io/v1/tokenreviews", &who); err != nil {
		return http.StatusServiceUnavailable, err
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, errors.New("the token is not accepted: it has to be made for the audience " + audience)
	}
	extra := map[string]authorizationv1.ExtraValue{}
	for key, value := range who.Status.User.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	may := authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.Status.User.Username, Groups: who.Status.User.Groups, UID: who.Status.User.UID, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: a.Namespace, Verb: "get", Group: "slipway.dev", Resource: "recordings"},
	}}
	may.APIVersion, may.Kind = "authorization.k8s.io/v1", "SubjectAccessReview"
	if err := a.ask(ctx, "/apis/authorization.k8s.io/v1/subjectaccessreviews", &may); err != nil {
		return http.StatusServiceUnavailable, err
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, fmt.Errorf("%s may not get recordings.slipway.dev in namespace %s", who.Status.User.Username, a.Namespace)
	}
	return http.StatusOK, nil
}

// ask posts a review and reads what became of it.
func (a *Auth) ask(ctx context.Context, path string, review any) error {
	body, err := json.Marshal(review)
	if err != nil {
		return errors.New("cannot ask the API server")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.Server+path, bytes.NewReader(body))
	if err != nil {
		return errors.New("cannot ask the API server")
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.Client.Do(req)
	if err != nil {
		return errors.New("the API server does not answer who the reader is") // the cause may hold the token
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the API server does not say who the reader is: %s", resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(review); err != nil {
		return errors.New("the API server's answer cannot be read")
	}
	return nil
}
