package kube

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig returns a kubeconfig with one cluster, one user and one context, all
// of them under the given name, that needs no other file.
func kubeconfig(name, url string, ca []byte, user *api.AuthInfo) ([]byte, error) {
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{Server: url, CertificateAuthorityData: ca}
	config.AuthInfos[name] = user
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("cannot write a kubeconfig for %q: %w", url, err)
	}
	return content, nil
}

// AdminKubeconfig returns a kubeconfig that may do everything in the cluster.
func (c *Cluster) AdminKubeconfig() ([]byte, error) {
	return kubeconfig(c.Name, c.URL, c.pki.files[caCertFile], &api.AuthInfo{
		ClientCertificateData: c.pki.files[adminCertFile],
		ClientKeyData:         c.pki.files[adminKeyFile],
	})
}

// BearerKubeconfig returns a kubeconfig of whomever the bearer token stands for.
func (c *Cluster) BearerKubeconfig(token string) ([]byte, error) {
	return kubeconfig(c.Name, c.URL, c.pki.files[caCertFile], &api.AuthInfo{Token: token})
}

// adminConfig returns the client configuration of the administrator.
func adminConfig(url string, p *pki) *rest.Config {
	return &rest.Config{
		Host: url,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   p.files[caCertFile],
			CertData: p.files[adminCertFile],
			KeyData:  p.files[adminKeyFile],
		},
		// The server limits its clients by itself; a limit of their own would only
		// distort what is measured.
		QPS: -1,
	}
}
