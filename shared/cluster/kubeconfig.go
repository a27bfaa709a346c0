package cluster

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// MaxKubeconfig is how large a kubeconfig may be.
const MaxKubeconfig = 1 << 20

// nameShown is how much of a name in a kubeconfig an error quotes.
const nameShown = 63

// Parse reads a kubeconfig that came out of a Secret. Whoever may write the
// Secret must not thereby run programs or read files where the function runs:
// such entries are refused, used or not. Errors name the field and the way
// out, and never hold what stands in it.
func Parse(kubeconfig []byte) (*rest.Config, error) {
	raw, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	if err := harmless(raw); err != nil {
		return nil, err
	}
	current, err := currentContext(raw)
	if err != nil {
		return nil, err
	}
	if err := checkServer(raw, raw.Contexts[current].Cluster); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, current, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("the context %s cannot be used: give its user one kind of credential only", quote(current))
	}
	if _, err := rest.TLSConfigFor(config); err != nil {
		return nil, fmt.Errorf("the certificates of context %s cannot be used: check that certificate-authority-data, client-certificate-data "+
			"and client-key-data hold PEM in base64, that key and certificate belong together, and that insecure-skip-tls-verify is not set beside a certificate authority", quote(current))
	}
	return config, nil
}

// load decodes. The decoder's own errors quote its input, which is secret.
func load(kubeconfig []byte) (*api.Config, error) {
	switch {
	case len(kubeconfig) == 0:
		return nil, errors.New("it is empty: put a kubeconfig there")
	case len(kubeconfig) > MaxKubeconfig:
		return nil, fmt.Errorf("it has %d bytes: %d are allowed", len(kubeconfig), MaxKubeconfig)
	}
	raw, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, errors.New("it cannot be read: write it in YAML or JSON with apiVersion v1 and kind Config")
	}
	return raw, nil
}

// harmless refuses whatever would run a program or read a file.
func harmless(raw *api.Config) error {
	for _, name := range slices.Sorted(maps.Keys(raw.AuthInfos)) {
		user := raw.AuthInfos[name]
		if user == nil {
			return fmt.Errorf("user %s is empty: give it a token or a client certificate", quote(name))
		}
		for _, refused := range []struct {
			field string
			set   bool
			way   string
		}{
			{field: "exec", set: user.Exec != nil, way: "a program is not run: use the token of a ServiceAccount"},
			{field: "auth-provider", set: user.AuthProvider != nil, way: "a program is not run: use the token of a ServiceAccount"},
			{field: "tokenFile", set: user.TokenFile != "", way: "a file is not read: use token"},
			{field: "client-certificate", set: user.ClientCertificate != "", way: "a file is not read: use client-certificate-data"},
			{field: "client-key", set: user.ClientKey != "", way: "a file is not read: use client-key-data"},
		} {
			if refused.set {
				return fmt.Errorf("user %s has the field %s: %s", quote(name), refused.field, refused.way)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(raw.Clusters)) {
		cluster := raw.Clusters[name]
		if cluster == nil {
			return fmt.Errorf("cluster %s is empty: give it a server", quote(name))
		}
		if cluster.CertificateAuthority != "" {
			return fmt.Errorf("cluster %s has the field certificate-authority: a file is not read: use certificate-authority-data", quote(name))
		}
		if err := checkProxy(name, cluster.ProxyURL); err != nil {
			return err
		}
	}
	return nil
}

func checkProxy(name, proxy string) error {
	if proxy == "" {
		return nil
	}
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) {
		return fmt.Errorf("cluster %s has a proxy-url that cannot be used: write one like https://proxy:3128, with http, https or socks5", quote(name))
	}
	return nil
}

// currentContext is the context to use: the named one, or the only one.
func currentContext(raw *api.Config) (string, error) {
	name := raw.CurrentContext
	if name == "" {
		if len(raw.Contexts) != 1 {
			return "", fmt.Errorf("it has no current-context and %d contexts: set current-context", len(raw.Contexts))
		}
		name = slices.Collect(maps.Keys(raw.Contexts))[0]
	}
	context := raw.Contexts[name]
	if context == nil {
		return "", fmt.Errorf("current-context is %s, which is no context of it: add that context, or name another", quote(name))
	}
	if context.AuthInfo != "" && raw.AuthInfos[context.AuthInfo] == nil {
		return "", fmt.Errorf("context %s names user %s, which is not there: add that user, or name another", quote(name), quote(context.AuthInfo))
	}
	return name, nil
}

// checkServer refuses what is no API server's address. A password in it would
// show wherever the address is shown.
func checkServer(raw *api.Config, name string) error {
	cluster := raw.Clusters[name]
	if cluster == nil || cluster.Server == "" {
		return fmt.Errorf("cluster %s has no server: set server to the API server's URL", quote(name))
	}
	u, err := url.Parse(cluster.Server)
	switch {
	case err != nil || u.Hostname() == "":
		return fmt.Errorf("cluster %s has a server that is no URL: write one like https://10.0.0.1:6443", quote(name))
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("cluster %s has a server of another scheme than https: write one like https://10.0.0.1:6443", quote(name))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("cluster %s has a server with more than an address: write credentials into a user of the kubeconfig", quote(name))
	}
	return nil
}

func quote(name string) string {
	if len(name) > nameShown {
		name = name[:nameShown] + "..."
	}
	return fmt.Sprintf("%q", name)
}
