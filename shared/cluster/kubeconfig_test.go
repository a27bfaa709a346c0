package cluster

import (
	"encoding/base64"
	"strings"
	"testing"
)

// canary stands wherever a kubeconfig holds a secret.
const canary = "canary-3f9d1c-secret"

// kubeconfig is one with a cluster and a user.
func kubeconfig(cluster, user string) string {
	return `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {` + cluster + `}}]
users: [{name: u, user: {` + user + `}}]
`
}

const server = `server: "https://10.0.0.1:6443"`

func TestParseAccepts(t *testing.T) {
	for name, c := range map[string]struct{ text, host string }{
		"a token":                 {text: kubeconfig(server, `token: `+canary), host: "https://10.0.0.1:6443"},
		"a password":              {text: kubeconfig(server, `username: a, password: `+canary), host: "https://10.0.0.1:6443"},
		"nobody in particular":    {text: kubeconfig(`server: "http://proxy:8001/k8s"`, ``), host: "http://proxy:8001/k8s"},
		"a proxy":                 {text: kubeconfig(server+`, proxy-url: "socks5://proxy:1080"`, `token: t`), host: "https://10.0.0.1:6443"},
		"no certificates checked": {text: kubeconfig(server+`, insecure-skip-tls-verify: true`, `token: t`), host: "https://10.0.0.1:6443"},
		"one context, not chosen": {text: strings.Replace(kubeconfig(server, `token: t`), "current-context: c\n", "", 1), host: "https://10.0.0.1:6443"},
		"JSON":                    {text: `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}], "clusters": [{"name": "c", "cluster": {"server": "https://h"}}]}`, host: "https://h"},
		"somebody else's name":    {text: kubeconfig(server, `token: t, as: somebody`), host: "https://10.0.0.1:6443"},
	} {
		config, err := Parse([]byte(c.text))
		if err != nil || config.Host != c.host {
			t.Errorf("%s: %v, %v", name, config, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	pem := base64.StdEncoding.EncodeToString([]byte(canary))
	for name, c := range map[string]struct{ text, says string }{
		"nothing":                   {text: ``, says: "empty"},
		"too much":                  {text: kubeconfig(server, ``) + strings.Repeat("#", MaxKubeconfig), says: "1048576 are allowed"},
		"no kubeconfig":             {text: canary, says: "kind Config"},
		"broken base64":             {text: kubeconfig(server, `client-key-data: "`+canary+`!"`), says: "kind Config"},
		"a program":                 {text: kubeconfig(server, `exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/`+canary+`}`), says: "exec"},
		"an auth provider":          {text: kubeconfig(server, `auth-provider: {name: oidc, config: {id-token: `+canary+`}}`), says: "auth-provider"},
		"a token's file":            {text: kubeconfig(server, `tokenFile: /etc/`+canary), says: "tokenFile"},
		"a certificate's file":      {text: kubeconfig(server, `client-certificate: /etc/`+canary), says: "client-certificate-data"},
		"a key's file":              {text: kubeconfig(server, `client-key: /etc/`+canary), says: "client-key-data"},
		"an authority's file":       {text: kubeconfig(server+`, certificate-authority: /etc/`+canary, ``), says: "certificate-authority-data"},
		"a program of another user": {text: strings.Replace(kubeconfig(server, `token: t`), "users: [", "users: [{name: x, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: "+canary+"}}}, ", 1), says: `"x"`},
		"no server":                 {text: kubeconfig(``, `token: `+canary), says: "no server"},
		"a server that is a file":   {text: kubeconfig(`server: "file:///etc/`+canary+`"`, ``), says: "no URL"},
		"a server by socket":        {text: kubeconfig(`server: "unix://h/`+canary+`"`, ``), says: "another scheme"},
		"a server with a password":  {text: kubeconfig(`server: "https://u:`+canary+`@10.0.0.1"`, ``), says: "credentials"},
		"no URL":                    {text: kubeconfig(`server: "https://%zz`+canary+`"`, ``), says: "no URL"},
		"a proxy that is a file":    {text: kubeconfig(server+`, proxy-url: "file:///`+canary+`"`, ``), says: "proxy-url"},
		"no certificate":            {text: kubeconfig(server, `client-certificate-data: `+pem+`, client-key-data: `+pem), says: "PEM"},
		"no authority":              {text: kubeconfig(server+`, certificate-authority-data: `+pem, `token: `+canary), says: "PEM"},
		"two kinds of credentials":  {text: kubeconfig(server, `token: `+canary+`, username: a, password: b`), says: "one kind of credential"},
		"a context that is missing": {text: strings.Replace(kubeconfig(server, `token: `+canary), "current-context: c", "current-context: d", 1), says: `"d"`},
		"several contexts":          {text: "apiVersion: v1\nkind: Config\ncontexts: [{name: a, context: {}}, {name: b, context: {}}]\n", says: "set current-context"},
		"a user that is missing":    {text: strings.Replace(kubeconfig(server, `token: `+canary), "user: u}", "user: v}", 1), says: `"v"`},
	} {
		_, err := Parse([]byte(c.text))
		if err == nil {
			t.Errorf("%s is accepted", name)
			continue
		}
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: it says %q, want it to say %q", name, err, c.says)
		}
		if strings.Contains(err.Error(), canary) {
			t.Errorf("%s: the error holds a secret: %v", name, err)
		}
	}
}

// FuzzParse: whatever stands in a Secret, parsing ends without a panic, never
// with a configuration that runs a program or reads a file, and never with an
// error that shows a credential.
func FuzzParse(f *testing.F) {
	f.Add(kubeconfig(server, `token: `+canary))
	f.Add(kubeconfig(server, `exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/true}`))
	f.Add(kubeconfig(server, `client-certificate: /etc/passwd, token: `+canary))
	f.Add(kubeconfig(server+`, certificate-authority: /etc/passwd`, `tokenFile: /etc/passwd`))
	f.Add(`{"kind": "Config", "users": [{"name": "u", "user": null}], "clusters": [{"name": "c"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		config, err := Parse([]byte(text))
		if err != nil {
			if strings.Contains(text, "token: "+canary) && strings.Contains(err.Error(), canary) && strings.Count(text, canary) == 1 {
				t.Errorf("the error holds the token: %v", err)
			}
			return
		}
		if config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" ||
			config.CAFile != "" || config.CertFile != "" || config.KeyFile != "" {
			t.Errorf("it would run a program or read a file: %v", config)
		}
		if !strings.HasPrefix(config.Host, "http") {
			t.Errorf("the server is %q", config.Host)
		}
	})
}
