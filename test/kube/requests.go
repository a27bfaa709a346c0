package kubetest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Request is one request that a client made of the API server.
type Request struct {
	// Verb is what RBAC calls it: get, list, watch, create, update, patch, delete
	// or deletecollection. For a path that is no resource it is the method, in
	// lower case.
	Verb string
	// Group, Version, Resource and Subresource say what it is about; Path does for
	// what is no resource.
	Group, Version, Resource, Subresource, Path string
	// Namespace and Name say which.
	Namespace, Name string
	// Apply tells a server-side apply from the other patches.
	Apply bool
	// DryRun says that nothing was to be stored.
	DryRun bool
	// Status is the answer's; 0 if there was none.
	Status int
}

// Write tells whether the request was to change something.
func (r Request) Write() bool {
	return r.Path == "" && !r.DryRun && !slices.Contains([]string{"get", "list", "watch"}, r.Verb)
}

// String is the request in one line, such as "patch machines.vitistack.io/status
// team-a/vm1 200".
func (r Request) String() string {
	if r.Path != "" {
		return fmt.Sprintf("%s %s %d", r.Verb, r.Path, r.Status)
	}
	verb := r.Verb
	if r.Apply {
		verb = "apply"
	}
	if r.DryRun {
		verb += "(dry run)"
	}
	what := r.Resource
	if r.Group != "" {
		what += "." + r.Group
	}
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	which := strings.Trim(r.Namespace+"/"+r.Name, "/")
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %d", verb, what, which, r.Status)), " ")
}

// Requests records the requests of the clients that are made from its
// configurations. The zero value is ready for use.
type Requests struct {
	mu  sync.Mutex
	all []Request
}

// Config returns a copy of cfg whose clients are recorded.
func (r *Requests) Config(cfg *rest.Config) *rest.Config {
	config := rest.CopyConfig(cfg)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{next: next, requests: r} })
	return config
}

// All returns what was recorded, in the order of the answers.
func (r *Requests) All() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// Writes returns the recorded requests that were to change something.
func (r *Requests) Writes() []Request {
	return slices.DeleteFunc(r.All(), func(request Request) bool { return !request.Write() })
}

// Reset forgets what was recorded.
func (r *Requests) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = nil
}

type recorder struct {
	next     http.RoundTripper
	requests *Requests
}

func (t recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	request := ParseRequest(req)
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		request.Status = resp.StatusCode
	}
	t.requests.mu.Lock()
	defer t.requests.mu.Unlock()
	t.requests.all = append(t.requests.all, request)
	return resp, err
}

// WrappedRoundTripper lets client-go find the transport below, to cancel requests.
func (t recorder) WrappedRoundTripper() http.RoundTripper { return t.next }

// ParseRequest tells what a request asks of the API server.
func ParseRequest(req *http.Request) Request {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	r := Request{DryRun: req.URL.Query().Get("dryRun") != ""}
	switch {
	case len(parts) > 2 && parts[0] == "api":
		r.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		r.Group, r.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return Request{Verb: strings.ToLower(req.Method), Path: req.URL.Path}
	}
	// A namespace is a resource itself, and its subresources are no resources in it.
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		r.Namespace, parts = parts[1], parts[2:]
	}
	r.Resource = parts[0]
	if len(parts) > 1 {
		r.Name = parts[1]
	}
	if len(parts) > 2 {
		r.Subresource = strings.Join(parts[2:], "/")
	}
	r.Verb = verb(req, r.Name != "")
	r.Apply = strings.HasPrefix(req.Header.Get("Content-Type"), "application/apply-patch")
	return r
}

func verb(req *http.Request, named bool) string {
	watch := req.URL.Query().Get("watch")
	switch {
	case req.Method == http.MethodGet && (watch == "true" || watch == "1"):
		return "watch"
	case req.Method == http.MethodGet && named:
		return "get"
	case req.Method == http.MethodGet:
		return "list"
	case req.Method == http.MethodPost:
		return "create"
	case req.Method == http.MethodPut:
		return "update"
	case req.Method == http.MethodDelete && !named:
		return "deletecollection"
	}
	return strings.ToLower(req.Method)
}
