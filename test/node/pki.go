package node

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime is how long certificates are good: a node lives for minutes.
const lifetime = 48 * time.Hour

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// pki writes what the components need to know each other into one folder.
type pki struct {
	dir    string
	serial int64
}

// subject is who a certificate is for.
type subject struct {
	name, organization string
	// hosts are what a server is called; a certificate without is a client's.
	hosts []string
}

// clients are the certificates of clients, by file name.
var clients = map[string]subject{
	"admin":              {name: "admin", organization: "system:masters"},
	"controller-manager": {name: "system:kube-controller-manager"},
	"scheduler":          {name: "system:kube-scheduler"},
	"kube-proxy":         {name: "system:kube-proxy"},
	"kubelet":            {name: "system:node:" + nodeName, organization: "system:nodes"},
}

// servers are the certificates of servers, by file name.
var servers = map[string]subject{
	"apiserver": {name: "kube-apiserver", hosts: []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		"127.0.0.1", serviceAPI, nodeAddress,
	}},
	"kubelet-server": {name: nodeName, hosts: []string{nodeName, nodeAddress, "127.0.0.1"}},
}

// write makes all certificates, keys and kubeconfigs.
func (p *pki) write() error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	ca, err := p.authority("ca", "slipway-node-ca")
	if err != nil {
		return err
	}
	front, err := p.authority("fp-ca", "slipway-node-front-proxy-ca")
	if err != nil {
		return err
	}
	if err := p.issue(front, "fp", subject{name: "front-proxy"}); err != nil {
		return err
	}
	for file, who := range servers {
		if err := p.issue(ca, file, who); err != nil {
			return err
		}
	}
	for file, who := range clients {
		if err := p.issue(ca, file, who); err != nil {
			return err
		}
		if err := p.kubeconfig(file); err != nil {
			return err
		}
	}
	return p.serviceAccounts()
}

func (p *pki) path(file string) string { return filepath.Join(p.dir, file) }

func (p *pki) authority(file, name string) (*authority, error) {
	template := p.template(name)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := p.sign(template, template, &key.PublicKey, key, file)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key}, p.save(file+".key", key)
}

func (p *pki) issue(ca *authority, file string, who subject) error {
	template := p.template(who.name)
	if who.organization != "" {
		template.Subject.Organization = []string{who.organization}
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(who.hosts) > 0 {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	for _, host := range who.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if _, err := p.sign(template, ca.cert, &key.PublicKey, ca.key, file); err != nil {
		return err
	}
	return p.save(file+".key", key)
}

func (p *pki) template(name string) *x509.Certificate {
	p.serial++
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(p.serial), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(lifetime),
	}
}

func (p *pki) sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer, file string) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign certificate %q: %w", file, err)
	}
	return der, os.WriteFile(p.path(file+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
}

func (p *pki) save(file string, key any) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(p.path(file), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

// serviceAccounts makes the key pair of tokens.
func (p *pki) serviceAccounts() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.path("sa.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600); err != nil {
		return err
	}
	return p.save("sa.key", key)
}

// kubeconfig writes how a client reaches the API server.
func (p *pki) kubeconfig(client string) error {
	return os.WriteFile(p.path(client+".kubeconfig"), fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: node
  cluster: {server: "%s", certificate-authority: %q}
users:
- name: %[3]s
  user: {client-certificate: %q, client-key: %q}
contexts:
- name: node
  context: {cluster: node, user: %[3]s}
current-context: node
`, apiURL, p.path("ca.crt"), client, p.path(client+".crt"), p.path(client+".key")), 0o600)
}
