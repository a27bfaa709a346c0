package function

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenLife is how long a token is valid. It is renewed when half of that is
// over.
const tokenLife = time.Hour

// Credentials makes kubeconfigs of service accounts.
type Credentials struct {
	client kubernetes.Interface
	config *rest.Config
	dir    string

	mu    sync.Mutex
	renew map[string]time.Time
}

// NewCredentials makes Credentials that keep their files in dir.
func NewCredentials(client kubernetes.Interface, config *rest.Config, dir string) (*Credentials, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot find the folder %q: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make a folder for credentials: %w", err)
	}
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("cannot read the API server's certificate authority: %w", err)
	}
	return &Credentials{client: client, config: config, dir: dir, renew: map[string]time.Time{}}, nil
}

// Ensure returns the file name of a kubeconfig of the service account, whose
// token is good for half an hour at least.
func (c *Credentials) Ensure(ctx context.Context, namespace, account string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := namespace + "." + account
	kubeconfig := filepath.Join(c.dir, name+".kubeconfig")
	if time.Now().Before(c.renew[name]) {
		return kubeconfig, nil
	}
	seconds := int64(tokenLife / time.Second)
	answer, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot get a token of service account %q: %w", account, err)
	}
	token := filepath.Join(c.dir, name+".token")
	if err := replace(token, []byte(answer.Status.Token)); err != nil {
		return "", err
	}
	text, err := clientcmd.Write(c.kubeconfig(namespace, account, token))
	if err != nil {
		return "", fmt.Errorf("cannot encode the kubeconfig of service account %q: %w", account, err)
	}
	if err := replace(kubeconfig, text); err != nil {
		return "", err
	}
	expires := answer.Status.ExpirationTimestamp.Time
	c.renew[name] = time.Now().Add(time.Until(expires) / 2)
	return kubeconfig, nil
}

// kubeconfig reads its token from a file, so that a renewed token reaches a
// process that runs.
func (c *Credentials) kubeconfig(namespace, account, token string) clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{
		Server:                   c.config.Host,
		CertificateAuthorityData: c.config.CAData,
		TLSServerName:            c.config.ServerName,
	}
	config.AuthInfos[account] = &clientcmdapi.AuthInfo{TokenFile: token}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: account, Namespace: namespace}
	config.CurrentContext = "local"
	return *config
}

// replace writes a file that only we can read, at once.
func replace(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	_, err = file.Write(content)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	return nil
}
