package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// request is one recorded request of the function.
type request struct {
	method, url, contentType, accept string
	body                             []byte
	// remote tells that it went to a cluster that a kubeconfig leads to.
	remote bool
}

// isWrite tells whether it changes something: a dry-run does not.
func (r request) isWrite() bool {
	return r.method != http.MethodGet && !strings.Contains(r.url, "dryRun=All")
}

// recorder keeps the requests that go through its transports while it is on.
type recorder struct {
	// host is what stands in the address of each.
	host     *url.URL
	on       atomic.Bool
	mu       sync.Mutex
	requests []request
}

// over is a transport that records.
type over struct {
	*recorder
	next http.RoundTripper
	// remote tells that a kubeconfig leads here.
	remote bool
}

func (o *over) RoundTrip(req *http.Request) (*http.Response, error) {
	if !o.on.Load() {
		return o.next.RoundTrip(req)
	}
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	address := *req.URL
	address.Scheme, address.Host = o.host.Scheme, o.host.Host
	o.mu.Lock()
	o.requests = append(o.requests, request{req.Method, address.String(), req.Header.Get("Content-Type"), req.Header.Get("Accept"), body, o.remote})
	o.mu.Unlock()
	return o.next.RoundTrip(req)
}

func (r *recorder) take() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.requests
	r.requests = nil
	return taken
}

// proxy leads to the API server, for what is reached by a kubeconfig, and keeps what is
// asked there.
type proxy struct {
	*recorder
	server *httptest.Server
	// recorded is the way to the API server itself, past the recorder.
	recorded *rest.Config
}

func newProxy(config *rest.Config) (*proxy, error) {
	host, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	p := &proxy{recorder: &recorder{host: host}}
	p.recorded = rest.CopyConfig(config)
	p.recorded.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &over{recorder: p.recorder, next: next}
	})
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	forward := httputil.NewSingleHostReverseProxy(host)
	forward.Transport = &over{recorder: p.recorder, next: transport, remote: true}
	p.server = httptest.NewTLSServer(forward)
	return p, nil
}

// kubeconfig leads to the proxy.
func (p *proxy) kubeconfig() ([]byte, error) {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return clientcmd.Write(api.Config{
		Clusters:       map[string]*api.Cluster{"c": {Server: p.server.URL, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*api.AuthInfo{"u": {Token: "none"}},
		Contexts:       map[string]*api.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "c",
	})
}

// recording is what was asked of the server for one object.
type recording struct{ requests []request }

func (r recording) writes() []request {
	return slices.DeleteFunc(slices.Clone(r.requests), func(req request) bool { return !req.isWrite() })
}

// unversioned leaves out of a patch what a raw client cannot know beforehand and a patch
// need not carry.
func unversioned(body []byte) ([]byte, error) {
	var patch map[string]any
	if len(body) == 0 {
		return body, nil
	}
	if body[0] == '[' {
		return untested(body)
	}
	if err := json.Unmarshal(body, &patch); err != nil {
		return nil, err
	}
	if meta, ok := patch["metadata"].(map[string]any); ok {
		delete(meta, "resourceVersion")
		delete(meta, "uid")
	}
	return json.Marshal(patch)
}

// untested is the same for a JSON patch.
func untested(body []byte) ([]byte, error) {
	var operations []map[string]any
	if err := json.Unmarshal(body, &operations); err != nil {
		return nil, err
	}
	return json.Marshal(slices.DeleteFunc(operations, func(operation map[string]any) bool {
		return operation["op"] == "test" || operation["path"] == "/metadata/resourceVersion"
	}))
}

// furtherPage tells of the second page of a list, or a later one. The raw client asks for as
// many as there are when it asks.
func furtherPage(r request) bool {
	address, err := url.Parse(r.url)
	return err == nil && address.Query().Has("continue")
}

// token is where a list goes on. A list's own metadata stand at the beginning of an answer,
// or, of custom resources, at the end.
var token = regexp.MustCompile(`^\{[^\[]*"metadata":\{[^\[{}]*"continue":"([^"]+)"|\],"kind":"\w+List","metadata":\{[^\[{}]*"continue":"([^"]+)"[^\[{}]*\}\}\s*$`)

// next is the address of the page behind an answer; empty at the end, and for what is no
// list.
func next(address string, answer []byte) (string, error) {
	const enough = 2048
	ends := answer
	if len(ends) > 2*enough {
		ends = slices.Concat(answer[:enough], answer[len(answer)-enough:])
	}
	found := token.FindSubmatch(ends)
	if found == nil {
		return "", nil
	}
	following, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	query := following.Query()
	query.Set("continue", string(found[1])+string(found[2]))
	following.RawQuery = query.Encode()
	return following.String(), nil
}

// replay makes recorded requests for another object. That a Kubernetes Event of that
// name is there already is as good.
//
// Each object that brings a kubeconfig brings a cluster that nobody has talked to: the
// function has to connect to it, and so does the raw client.
func replay(ctx context.Context, config *rest.Config, near *http.Client, requests []request, names *strings.Replacer) error {
	far := near
	if slices.ContainsFunc(requests, func(r request) bool { return r.remote }) {
		settings, err := rest.TLSConfigFor(config)
		if err != nil {
			return err
		}
		transport := &http.Transport{TLSClientConfig: settings, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		far = &http.Client{Transport: transport}
	}
	for _, r := range requests {
		client := near
		if r.remote {
			client = far
		}
		body := names.Replace(string(r.body))
		for address := names.Replace(r.url); address != ""; {
			answer, err := send(ctx, client, r, address, body)
			if err != nil {
				return err
			}
			if address, err = next(address, answer); err != nil {
				return err
			}
		}
	}
	return nil
}

// send makes one request.
func send(ctx context.Context, client *http.Client, r request, address, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, address, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", r.contentType)
	req.Header.Set("Accept", r.accept)
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	event := resp.StatusCode == http.StatusConflict && strings.HasSuffix(req.URL.Path, "/events")
	if r.isWrite() && resp.StatusCode/100 != 2 && !event {
		return nil, fmt.Errorf("the raw client's %s %s was answered %s: %.200s", r.method, req.URL.Path, resp.Status, answer)
	}
	return answer, nil
}
