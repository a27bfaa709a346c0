package adapter

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

const (
	// maxKubeconfig is how large a kubeconfig may be.
	maxKubeconfig = 1 << 20
	// nameShown is how much of a name an error quotes.
	nameShown = 63
)

// parseKubeconfig reads a kubeconfig that came out of a Secret. Whoever may write
// the Secret must not thereby run programs or read files here, so whatever would do
// so is refused, used or not. Errors name the field and never hold its value.
func parseKubeconfig(content []byte) (*rest.Config, error) {
	if len(content) == 0 {
		return nil, errors.New("it is empty: put a kubeconfig there")
	}
	if len(content) > maxKubeconfig {
		return nil, fmt.Errorf("it has %d bytes: %d are allowed", len(content), maxKubeconfig)
	}
	parsed, err := clientcmd.Load(content)
	if err != nil {
		// The decoder's own error quotes its input, which is secret.
		return nil, errors.New("it cannot be read: write it in YAML or JSON with apiVersion v1 and kind Config")
	}
	if err := refuse(parsed); err != nil {
		return nil, err
	}
	name, err := usedContext(parsed)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*parsed, name, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("context %s cannot be used: give its user one kind of credential only", shown(name))
	}
	if _, err := rest.TLSConfigFor(config); err != nil {
		return nil, fmt.Errorf("the certificates of context %s cannot be used: check that they hold PEM in base64 and belong together, "+
			"and that insecure-skip-tls-verify is not set beside a certificate authority", shown(name))
	}
	return config, nil
}

// refuse names the first entry that would run a program or read a file.
func refuse(parsed *api.Config) error {
	for _, name := range slices.Sorted(maps.Keys(parsed.AuthInfos)) {
		user := parsed.AuthInfos[name]
		if user == nil {
			return fmt.Errorf("user %s is empty: give it a token or a client certificate", shown(name))
		}
		for _, refused := range []struct {
			field string
			set   bool
		}{
			{"exec", user.Exec != nil},
			{"auth-provider", user.AuthProvider != nil},
			{"tokenFile", user.TokenFile != ""},
			{"client-certificate", user.ClientCertificate != ""},
			{"client-key", user.ClientKey != ""},
		} {
			if refused.set {
				return fmt.Errorf("user %s has the field %s: programs are not run and files are not read: write the credential itself", shown(name), refused.field)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(parsed.Clusters)) {
		cluster := parsed.Clusters[name]
		if cluster == nil {
			return fmt.Errorf("cluster %s is empty: give it a server", shown(name))
		}
		if cluster.CertificateAuthority != "" {
			return fmt.Errorf("cluster %s has the field certificate-authority: files are not read: use certificate-authority-data", shown(name))
		}
		if !usableURL(cluster.ProxyURL, "http", "https", "socks5") && cluster.ProxyURL != "" {
			return fmt.Errorf("cluster %s has a proxy-url that cannot be used: write one like https://proxy:3128", shown(name))
		}
	}
	return nil
}

// usedContext is the context to use, the named one or the only one, which must
// have all that it needs.
func usedContext(parsed *api.Config) (string, error) {
	name := parsed.CurrentContext
	if name == "" {
		if len(parsed.Contexts) != 1 {
			return "", fmt.Errorf("it has no current-context and %d contexts: set current-context", len(parsed.Contexts))
		}
		name = slices.Collect(maps.Keys(parsed.Contexts))[0]
	}
	context := parsed.Contexts[name]
	if context == nil {
		return "", fmt.Errorf("current-context is %s, which is no context of it: name one that is there", shown(name))
	}
	if context.AuthInfo != "" && parsed.AuthInfos[context.AuthInfo] == nil {
		return "", fmt.Errorf("context %s names user %s, which is not there", shown(name), shown(context.AuthInfo))
	}
	cluster := parsed.Clusters[context.Cluster]
	if cluster == nil || cluster.Server == "" {
		return "", fmt.Errorf("cluster %s has no server: set server to the API server's URL", shown(context.Cluster))
	}
	// A password in the address would show wherever the address is shown.
	if u, err := url.Parse(cluster.Server); err != nil || !usableURL(cluster.Server, "https", "http") || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("cluster %s has a server that is no plain URL: write one like https://10.0.0.1:6443", shown(context.Cluster))
	}
	return name, nil
}

func usableURL(text string, schemes ...string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Hostname() != "" && slices.Contains(schemes, u.Scheme)
}

func shown(name string) string {
	if len(name) > nameShown {
		name = name[:nameShown] + "..."
	}
	return fmt.Sprintf("%q", name)
}
