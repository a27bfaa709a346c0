package kube

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Files of the key folder.
const (
	caCertFile     = "ca.crt"
	caKeyFile      = "ca.key"
	serverCertFile = "server.crt"
	serverKeyFile  = "server.key"
	adminCertFile  = "admin.crt"
	adminKeyFile   = "admin.key"
	saKeyFile      = "sa.key"
	saPubFile      = "sa.pub"
)

const (
	// validity of certificates. They never leave the machine, and are made anew
	// when they are about to end.
	validity = 2 * 365 * 24 * time.Hour
	// margin is how long certificates of an earlier run must still be good for.
	margin = 30 * 24 * time.Hour
)

// serverNames and serverAddresses are what the API server is called by: from this
// machine, and by clients that were configured as if inside the cluster.
var (
	serverNames     = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	serverAddresses = []net.IP{net.IPv4(127, 0, 0, 1).To4(), net.IPv4(10, 96, 0, 1).To4()}
)

// pki is a cluster's keys and certificates, in PEM, as they are on disk.
type pki struct {
	dir   string
	files map[string][]byte
}

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

// ensurePKI returns the certificates in dir, after making new ones when they are
// missing, incomplete, do not belong together or end soon.
func ensurePKI(dir string, now time.Time) (*pki, error) {
	if p, err := loadPKI(dir); err == nil && p.check(now) == nil {
		return p, nil
	}
	p, err := newPKI(dir, now)
	if err != nil {
		return nil, fmt.Errorf("cannot make the cluster's certificates: %w", err)
	}
	if err := p.save(); err != nil {
		return nil, fmt.Errorf("cannot save the cluster's certificates: %w", err)
	}
	return p, nil
}

func newPKI(dir string, now time.Time) (*pki, error) {
	p := &pki{dir: dir, files: map[string][]byte{}}
	ca, err := p.authority(now)
	if err != nil {
		return nil, err
	}
	server := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:    serverNames,
		IPAddresses: serverAddresses,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	admin := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if err := p.issue(ca, server, now, serverCertFile, serverKeyFile); err != nil {
		return nil, err
	}
	if err := p.issue(ca, admin, now, adminCertFile, adminKeyFile); err != nil {
		return nil, err
	}
	return p, p.signer()
}

// issuer is the authority that signs the others.
type issuer struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func (p *pki) authority(now time.Time) (*issuer, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "slipway-local-ca"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if err := p.issue(nil, template, now, caCertFile, caKeyFile); err != nil {
		return nil, err
	}
	cert, err := parseCert(p.files[caCertFile])
	if err != nil {
		return nil, err
	}
	key, err := parseKey(p.files[caKeyFile])
	if err != nil {
		return nil, err
	}
	return &issuer{cert: cert, key: key}, nil
}

// issue makes a key and a certificate for it after the template, signed by ca, or
// by itself without one.
func (p *pki) issue(ca *issuer, template *x509.Certificate, now time.Time, certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return err
	}
	// Clocks of two machines that share the folder may differ a little.
	template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(validity)
	if ca == nil {
		ca = &issuer{cert: template, key: key}
	} else {
		template.KeyUsage = x509.KeyUsageDigitalSignature
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return fmt.Errorf("cannot sign the certificate of %q: %w", template.Subject.CommonName, err)
	}
	p.files[certFile] = encode("CERTIFICATE", der)
	return p.keep(keyFile, key)
}

// signer makes the key pair of the service accounts' tokens.
func (p *pki) signer() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	p.files[saPubFile] = encode("PUBLIC KEY", pub)
	return p.keep(saKeyFile, key)
}

func (p *pki) keep(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	p.files[file] = encode("PRIVATE KEY", der)
	return nil
}

func (p *pki) save() error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	for name, content := range p.files {
		if err := writeFile(p.path(name), content); err != nil {
			return err
		}
	}
	return nil
}

func loadPKI(dir string) (*pki, error) {
	p := &pki{dir: dir, files: map[string][]byte{}}
	for _, name := range []string{caCertFile, caKeyFile, serverCertFile, serverKeyFile, adminCertFile, adminKeyFile, saKeyFile, saPubFile} {
		content, err := os.ReadFile(p.path(name))
		if err != nil {
			return nil, err
		}
		p.files[name] = content
	}
	return p, nil
}

// check tells why the certificates cannot be used: a run that was killed while
// writing them, or an edit by hand, leaves files that do not belong together.
func (p *pki) check(now time.Time) error {
	ca, err := parseCert(p.files[caCertFile])
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	pairs := []struct {
		cert, key string
		usage     x509.ExtKeyUsage
		names     []string
	}{
		{caCertFile, caKeyFile, x509.ExtKeyUsageAny, nil},
		{serverCertFile, serverKeyFile, x509.ExtKeyUsageServerAuth, append([]string{"127.0.0.1", "10.96.0.1"}, serverNames...)},
		{adminCertFile, adminKeyFile, x509.ExtKeyUsageClientAuth, nil},
	}
	for _, pair := range pairs {
		cert, err := parseCert(p.files[pair.cert])
		if err != nil {
			return err
		}
		options := x509.VerifyOptions{Roots: roots, CurrentTime: now.Add(margin), KeyUsages: []x509.ExtKeyUsage{pair.usage}}
		if _, err := cert.Verify(options); err != nil {
			return err
		}
		for _, name := range pair.names {
			if err := cert.VerifyHostname(name); err != nil {
				return err
			}
		}
		if err := belongs(p.files[pair.key], cert.PublicKey); err != nil {
			return fmt.Errorf("key %q: %w", pair.key, err)
		}
	}
	block, _ := pem.Decode(p.files[saPubFile])
	if block == nil {
		return errors.New("no public key for the service accounts' tokens")
	}
	pub, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return err
	}
	return belongs(p.files[saKeyFile], pub)
}

// belongs tells whether the private key in PEM is the one to the public key.
func belongs(key []byte, public any) error {
	signer, err := parseKey(key)
	if err != nil {
		return err
	}
	ours, ok := signer.Public().(*ecdsa.PublicKey)
	if !ok {
		return fmt.Errorf("it is of type %T, not ECDSA", signer.Public())
	}
	if theirs, ok := public.(*ecdsa.PublicKey); !ok || !ours.Equal(theirs) {
		return errors.New("it does not belong to its public half")
	}
	return nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func parseCert(content []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, errors.New("no certificate in PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

func parseKey(content []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, errors.New("no key in PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a key of type %T cannot sign", key)
	}
	return signer, nil
}

// writeFile puts a file that only its owner may read in place at once, so that a
// reader sees the old content or the new one.
func writeFile(path string, content []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	next := path + ".next"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
