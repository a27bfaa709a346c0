package kube

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
)

// apiServerGrace is how long the API server may take to answer the requests it has.
// With open watches it would take a minute, and everything it knows is in etcd.
const apiServerGrace = time.Second

// defaultIssuer is the issuer and the audience of service account tokens.
const defaultIssuer = "https://kubernetes.default.svc"

// apiServer is a running kube-apiserver.
type apiServer struct {
	url     string
	process *process
}

func startAPIServer(ctx context.Context, opts Options, etcd string, keys *pki) (*apiServer, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var err error
	for range attempts {
		var server *apiServer
		if server, err = tryAPIServer(ctx, opts, etcd, keys); err == nil {
			return server, nil
		}
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, fmt.Errorf("cannot start kube-apiserver: %w", err)
}

func tryAPIServer(ctx context.Context, opts Options, etcd string, keys *pki) (*apiServer, error) {
	port, err := portOr(opts.Port)
	if err != nil {
		return nil, err
	}
	url := "https://" + loopback + ":" + strconv.Itoa(port)
	p, err := launch(opts.Binary, opts.Dir, "kube-apiserver", append(apiServerFlags(opts, etcd, port, keys), opts.APIServerFlags...)...)
	if err != nil {
		return nil, err
	}
	if err := awaitReady(ctx, p, adminConfig(url, keys)); err != nil {
		p.stop(0)
		return nil, err
	}
	return &apiServer{url: url, process: p}, nil
}

func apiServerFlags(opts Options, etcd string, port int, keys *pki) []string {
	return []string{
		"--etcd-servers=" + etcd,
		"--etcd-prefix=" + opts.EtcdPrefix,
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + keys.path(serverCertFile),
		"--tls-private-key-file=" + keys.path(serverKeyFile),
		"--client-ca-file=" + keys.path(caCertFile),
		"--service-account-issuer=" + opts.Issuer,
		"--api-audiences=" + opts.Issuer,
		"--service-account-key-file=" + keys.path(saPubFile),
		"--service-account-signing-key-file=" + keys.path(saKeyFile),
		"--authorization-mode=RBAC",
		// Who sets an owner that blocks deletion must be allowed to: many
		// installations enforce it, so the functions' roles have to hold under it.
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
		"--allow-privileged=true",
		"--service-cluster-ip-range=10.96.0.0/16",
		// Nobody connects to the kubernetes Service, and endpoints refuse loopback.
		"--endpoint-reconciler-type=none",
		"--profiling=false",
	}
}

// awaitReady waits until the API server says that it is.
func awaitReady(ctx context.Context, p *process, admin *rest.Config) error {
	config, err := rest.TLSConfigFor(admin)
	if err != nil {
		return fmt.Errorf("cannot use the administrator's certificate: %w", err)
	}
	client, done := probeClient(config)
	defer done()
	return p.await(ctx, func(ctx context.Context) error {
		return ask(ctx, client, http.MethodGet, admin.Host+"/readyz", "", nil)
	})
}

// probeClient returns a client that shares no connection with others, and how to
// end it.
func probeClient(config *tls.Config) (*http.Client, func()) {
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	return &http.Client{Transport: transport}, transport.CloseIdleConnections
}
