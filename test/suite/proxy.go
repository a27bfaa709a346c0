package suite

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Proxy stands between clients and an API server and sees each call: it can answer
// late, refuse, and show a certificate of its own. What a client proves itself with
// has to be a token: certificates of clients do not pass.
type Proxy struct {
	// URL is where clients go.
	URL string
	// CA is what they have to trust, in PEM.
	CA []byte

	tb     testing.TB
	key    *ecdsa.PrivateKey
	ca     *x509.Certificate
	server *http.Server

	mu     sync.Mutex
	before func(*http.Request) (*http.Response, error)
	cert   *tls.Certificate
	conns  map[net.Conn]bool
}

// NewProxy starts a proxy of the API server that a configuration names, until the
// test ends.
func NewProxy(tb testing.TB, to *rest.Config) *Proxy {
	tb.Helper()
	target, err := url.Parse(to.Host)
	if err != nil {
		tb.Fatal(err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(to))
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{tb: tb, conns: map[net.Conn]bool{}}
	p.authority()
	p.Certificate(time.Now().Add(time.Hour))
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     beforeEach{next: transport, p: p},
		FlushInterval: -1,
		ErrorLog:      log.New(&Buffer{}, "", 0),
	}
	listener, err := (&net.ListenConfig{}).Listen(context.WithoutCancel(tb.Context()), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p.URL = "https://" + listener.Addr().String()
	p.server = &http.Server{
		Handler: forward, ReadHeaderTimeout: Patience, ConnState: p.track, ErrorLog: log.New(&Buffer{}, "", 0),
		// One call at a time on a connection, so that each can be held alone.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.cert, nil
		}},
	}
	go func() { _ = p.server.ServeTLS(listener, "", "") }()
	tb.Cleanup(func() { _ = p.server.Close() })
	return p
}

// Before sets what is done with each call before it goes on, as [kubetest.Faults]
// does: an answer or an error goes to the client. It may wait, but should heed the
// request's context. Nil does nothing.
func (p *Proxy) Before(do func(*http.Request) (*http.Response, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = do
}

// Late lets each call wait before it goes on.
func (p *Proxy) Late(by time.Duration) {
	p.Before(func(req *http.Request) (*http.Response, error) {
		timer := time.NewTimer(by)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil, nil
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	})
}

// Certificate lets the proxy show a new certificate that is good until then, and
// ends all connections.
func (p *Proxy) Certificate(until time.Time) {
	p.tb.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "proxy"},
		NotBefore: until.Add(-24 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, p.ca, &p.key.PublicKey, p.key)
	if err != nil {
		p.tb.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cert = &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: p.key}
	for conn := range p.conns {
		_ = conn.Close()
	}
}

func (p *Proxy) authority() {
	p.tb.Helper()
	var err error
	if p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		p.tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "proxy authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &p.key.PublicKey, p.key)
	if err != nil {
		p.tb.Fatal(err)
	}
	if p.ca, err = x509.ParseCertificate(raw); err != nil {
		p.tb.Fatal(err)
	}
	p.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

func (p *Proxy) track(conn net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case http.StateNew:
		p.conns[conn] = true
	case http.StateClosed, http.StateHijacked:
		delete(p.conns, conn)
	}
}

// beforeEach is the proxy's way to the server.
type beforeEach struct {
	next http.RoundTripper
	p    *Proxy
}

func (b beforeEach) RoundTrip(req *http.Request) (*http.Response, error) {
	b.p.mu.Lock()
	before := b.p.before
	b.p.mu.Unlock()
	if before != nil {
		if resp, err := before(req); resp != nil || err != nil {
			return resp, err
		}
	}
	return b.next.RoundTrip(req)
}

// Redirect is a kubeconfig that leads to another address. A CA replaces the
// cluster's; nil keeps it.
func Redirect(tb testing.TB, kubeconfig []byte, server string, ca []byte) []byte {
	tb.Helper()
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		tb.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = server
		if ca != nil {
			cluster.CertificateAuthorityData = ca
		}
	}
	changed, err := clientcmd.Write(*config)
	if err != nil {
		tb.Fatal(err)
	}
	return changed
}
