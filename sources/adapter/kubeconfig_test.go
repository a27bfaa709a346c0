package adapter

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestAKubeconfigFromASecretRunsNoProgramsAndReadsNoFiles(t *testing.T) {
	const canary = "hunter2"
	cases := map[string]struct{ user, cluster, want string }{
		"Exec":         {user: "exec: {apiVersion: client.authentication.k8s.io/v1, command: " + canary + "}", want: `user "u" has the field exec`},
		"AuthProvider": {user: "auth-provider: {name: " + canary + "}", want: `user "u" has the field auth-provider`},
		"TokenFile":    {user: "tokenFile: /" + canary, want: `user "u" has the field tokenFile`},
		"Certificate":  {user: "client-certificate: /" + canary, want: `user "u" has the field client-certificate`},
		"Key":          {user: "client-key: /" + canary, want: `user "u" has the field client-key`},
		"Authority":    {cluster: "server: https://a, certificate-authority: /" + canary, want: `cluster "c" has the field certificate-authority`},
		"Proxy":        {cluster: "server: https://a, proxy-url: 'file:///" + canary + "'", want: `cluster "c" has a proxy-url`},
		"NoServer":     {cluster: "insecure-skip-tls-verify: true", want: `cluster "c" has no server`},
		"Scheme":       {cluster: "server: 'unix:///" + canary + "'", want: `cluster "c" has a server that is no plain URL`},
		"Password":     {cluster: "server: 'https://" + canary + "@a'", want: `cluster "c" has a server that is no plain URL`},
		"Certificates": {cluster: "server: https://a, certificate-authority-data: aHVudGVyMg==", want: `the certificates of context "x" cannot be used`},
		"Insecure":     {cluster: "server: https://a, insecure-skip-tls-verify: true, certificate-authority-data: aHVudGVyMg==", want: "cannot be used"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			user, cluster := tc.user, tc.cluster
			if user == "" {
				user = "token: " + canary
			}
			if cluster == "" {
				cluster = "server: https://a"
			}
			_, err := parseKubeconfig([]byte(`{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {` + cluster + `}}], users: [{name: u, user: {` + user + `}}]}`))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("the error tells a secret: %v", err)
			}
		})
	}
}

func TestMalformedKubeconfigsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "it is empty",
		strings.Repeat("#", maxKubeconfig+1): "are allowed",
		"hunter2: [":                         "it cannot be read",
		"{apiVersion: v1, kind: Pod}":        "it cannot be read",
		"{apiVersion: v1, kind: Config}":     "it has no current-context and 0 contexts",
		"{apiVersion: v1, kind: Config, current-context: x}":                                                  `current-context is "x"`,
		"{apiVersion: v1, kind: Config, contexts: [{name: x, context: {cluster: c, user: u}}]}":               `names user "u"`,
		"{apiVersion: v1, kind: Config, contexts: [{name: x, context: {cluster: c}}], clusters: [{name: c}]}": `cluster "c" has no server`,
	} {
		_, err := parseKubeconfig([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", text, err, want)
		}
	}
	config, err := parseKubeconfig([]byte(kubeconfigOf("https://east:6443")))
	if err != nil || config.Host != "https://east:6443" || config.BearerToken != "secret" {
		t.Errorf("a good one: %+v, %v", config, err)
	}
}

func FuzzParseKubeconfig(f *testing.F) {
	f.Add(kubeconfigOf("https://east:6443"))
	f.Add("{apiVersion: v1, kind: Config, users: [{name: u}], clusters: [{}], contexts: [{name: ''}]}")
	f.Fuzz(func(t *testing.T, text string) {
		config, err := parseKubeconfig([]byte(text))
		if err == nil && (config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" || config.CAFile != "" || config.CertFile != "" || config.KeyFile != "") {
			t.Errorf("it runs a program or reads a file: %+v", config)
		}
	})
}

func TestARemoteClustersConnectionsEndWithIt(t *testing.T) {
	closed := make(chan struct{}, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.Start()
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	client, err := connect(ctx, &rest.Config{Host: server.URL}, time.Minute, false)
	if err != nil {
		t.Fatal(err)
	}
	moved, err := client.Get(server.URL + "/moved")
	if err != nil || moved.StatusCode != http.StatusFound {
		t.Fatalf("a redirect was followed: %v", err)
	}
	_ = moved.Body.Close()
	answer, err := client.Get(server.URL + "/watch")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := answer.Body.Read(make([]byte, 1)); err == nil {
		t.Error("the answer goes on")
	}
	_ = answer.Body.Close()
	<-closed
	if _, err := client.Get(server.URL + "/again"); err == nil {
		t.Error("a cluster that is left can still be reached")
	}
}
