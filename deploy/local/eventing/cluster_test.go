package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// cluster is a real API server on a real etcd, for one test.
type cluster struct {
	config     *rest.Config
	kubeconfig string
}

// kubeBinary finds the program that holds etcd and kube-apiserver. The test is
// skipped where it was not built.
func kubeBinary(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for parent := filepath.Dir(dir); dir != parent; dir, parent = parent, filepath.Dir(parent) {
		binary := filepath.Join(dir, ".cache", "bin", "kube")
		if _, err := os.Stat(binary); err == nil {
			return binary
		}
	}
	t.Skip("there is no .cache/bin/kube: make run builds it")
	return ""
}

// startCluster starts etcd and kube-apiserver.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	kube, dir := kubeBinary(t), t.TempDir()
	keys := writeKeys(t, dir)
	ports := freePorts(t, 3)
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	launch(t, dir, kube, "etcd", "--data-dir="+filepath.Join(dir, "etcd"), "--name=default", "--unsafe-no-fsync",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
	in := func(name string) string { return filepath.Join(dir, name) }
	launch(t, dir, kube, "kube-apiserver", "--etcd-servers="+client,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[2]),
		"--tls-cert-file="+in("server.crt"), "--tls-private-key-file="+in("server.key"), "--client-ca-file="+in("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc", "--api-audiences=https://kubernetes.default.svc",
		"--service-account-key-file="+in("sa.pub"), "--service-account-signing-key-file="+in("sa.key"),
		"--authorization-mode=RBAC", "--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none",
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement", "--profiling=false")

	c := &cluster{kubeconfig: in("admin.kubeconfig")}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server: fmt.Sprintf("https://127.0.0.1:%d", ports[2]), CertificateAuthorityData: keys.authority,
	}
	config.AuthInfos["a"] = &clientcmdapi.AuthInfo{ClientCertificateData: keys.cert, ClientKeyData: keys.key}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "a"}
	config.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*config, c.kubeconfig); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig); err != nil {
		t.Fatal(err)
	}
	c.config.QPS = -1
	clients, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the API server is ready", func(ctx context.Context) error {
		return clients.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	return c
}

// launch starts a program that ends with the test.
func launch(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, args[0]+".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// With open watches they would take a minute to stop, and nothing is to
		// be kept.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the end of %s:\n%s", args[0], text[max(0, len(text)-2000):])
		}
		_ = log.Close()
	})
}

// eventually waits until what is wanted no longer fails.
func eventually(t *testing.T, within time.Duration, what string, want func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for {
		err := want(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s: %v", within, what, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func freePorts(t *testing.T, count int) []int {
	t.Helper()
	var ports []int
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = listener.Close() }()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// keys are what an administrator needs to reach the API server.
type keys struct{ authority, cert, key []byte }

// writeKeys writes the files that the API server is started with.
func writeKeys(t *testing.T, dir string) keys {
	t.Helper()
	caKey := newKey(t)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	authority := sign(t, ca, ca, caKey, caKey)
	issue := func(serial int64, subject pkix.Name, usage x509.ExtKeyUsage) (cert, private []byte) {
		key := newKey(t)
		template := &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: subject,
			NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
			DNSNames:    []string{"localhost", "kubernetes.default.svc"},
		}
		return sign(t, template, ca, key, caKey), encode(t, key)
	}
	server, serverKey := issue(2, pkix.Name{CommonName: "kube-apiserver"}, x509.ExtKeyUsageServerAuth)
	admin, adminKey := issue(3, pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}, x509.ExtKeyUsageClientAuth)
	accounts := newKey(t)
	public, err := x509.MarshalPKIXPublicKey(&accounts.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"ca.crt": authority, "server.crt": server, "server.key": serverKey,
		"sa.key": encode(t, accounts), "sa.pub": block("PUBLIC KEY", public),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return keys{authority: authority, cert: admin, key: adminKey}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	return block("CERTIFICATE", der)
}

func encode(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return block("EC PRIVATE KEY", der)
}

func block(kind string, der []byte) []byte {
	var out bytes.Buffer
	_ = pem.Encode(&out, &pem.Block{Type: kind, Bytes: der})
	return out.Bytes()
}
