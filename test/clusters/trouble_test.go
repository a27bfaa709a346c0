package clusters

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/suite"
)

const (
	// slowness is how long a slow cluster thinks about each call.
	slowness = 5 * time.Second
	// promptness is how long a Machine's event may take whose clusters are well,
	// whatever the others do. It takes a twentieth of that on an idle machine.
	promptness = 10 * time.Second
)

// trouble is a cluster that cannot be used as it is.
type trouble struct {
	name, reason string
	// kubeconfig leads to the cluster in its trouble.
	kubeconfig []byte
	// want and says are what the Machine is told; empty is that the cluster does not answer.
	want, says string
	// heal ends the trouble.
	heal func()
}

// troubles are those of a remote cluster, each behind a way of its own.
func (w *world) troubles() []trouble {
	w.t.Helper()
	good := w.direct(machinevm.Name)
	through := func(p *suite.Proxy) []byte { return suite.Redirect(w.t, good, p.URL, p.CA) }
	slow, expired, throttled, failing := suite.NewProxy(w.t, w.remote.Env.Config), suite.NewProxy(w.t, w.remote.Env.Config),
		suite.NewProxy(w.t, w.remote.Env.Config), suite.NewProxy(w.t, w.remote.Env.Config)
	slow.Late(slowness)
	expired.Certificate(time.Now().Add(-time.Minute))
	throttled.Before(suite.Status(http.StatusTooManyRequests))
	failing.Before(suite.Status(http.StatusBadGateway))
	replace := func(name string) func() { return func() { w.secret(name, good) } }
	with := func(user string) []byte { return []byte(strings.Replace(string(good), "token: ", user, 1)) }
	w.evidence = filepath.Join(w.t.TempDir(), "ran")
	const unusable = "False KubevirtConfigInvalid"
	return []trouble{
		{"slow", "each call takes longer than it may", through(slow), "", "does not answer", func() { slow.Before(nil) }},
		{"expired-server", "its certificate has expired", through(expired), "", "certificate", func() { expired.Certificate(time.Now().Add(time.Hour)) }},
		{"throttled", "it has too much to do", through(throttled), "", "does not answer", func() { throttled.Before(nil) }},
		{"failing", "what stands before it has lost it", through(failing), "", "does not answer", func() { failing.Before(nil) }},
		{"expired-client", "our certificate has expired", w.expiredClient(), "", "does not answer", replace("expired-client")},
		{"unauthorized", "our token is not taken", with("token: x"), "", "Unauthorized", replace("unauthorized")},
		{"gone", "nobody listens there", suite.Redirect(w.t, good, "https://"+w.east.Address, nil), "", "does not answer", w.east.Open},
		{"malformed", "its kubeconfig is none", []byte("{{{ no kubeconfig"), unusable, "cannot be read", replace("malformed")},
		{"empty", "its kubeconfig is empty", nil, unusable, "", replace("empty")},
		{
			"program", "its kubeconfig would run a program", with("exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: touch, args: ['" + w.evidence + "']}\n    password: "),
			unusable, "exec", replace("program"),
		},
		{"token-file", "its kubeconfig would read a file", with("tokenFile: /etc/hostname\n    password: "), unusable, "tokenFile", replace("token-file")},
		{"key-file", "and so would another", with("client-key: /etc/hostname\n    password: "), unusable, "client-key", replace("key-file")},
	}
}

// expiredClient is a kubeconfig with a certificate that the cluster's own authority
// has signed, for yesterday.
func (w *world) expiredClient() []byte {
	w.t.Helper()
	cluster := w.remote.Env.Cluster
	read := func(name string) []byte {
		raw, err := os.ReadFile(filepath.Join(cluster.Dir, "pki", name))
		if err != nil {
			w.t.Fatal(err)
		}
		block, _ := pem.Decode(raw)
		return block.Bytes
	}
	authority, err := x509.ParseCertificate(read("ca.crt"))
	if err != nil {
		w.t.Fatal(err)
	}
	signer, err := x509.ParsePKCS8PrivateKey(read("ca.key"))
	if err != nil {
		w.t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(4), Subject: pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority, key.Public(), signer)
	if err != nil {
		w.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		w.t.Fatal(err)
	}
	config, err := clientcmd.Load(w.direct(machinevm.Name))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Token = ""
		user.ClientCertificateData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		user.ClientKeyData = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		w.t.Fatal(err)
	}
	return content
}

// TestAClusterInTroubleDelaysItsOwnMachinesOnly: CN-1, CN-3, CN-5, CN-6, every cluster and
// kubeconfig that cannot be used. Machines of clusters in every trouble are handled at once; those of the
// clusters that are well have to get on as if they were alone.
func TestAClusterInTroubleDelaysItsOwnMachinesOnly(t *testing.T) {
	w := newWorld(t)
	w.east.Cut()
	well := map[string][]byte{"far": w.direct(machinevm.Name)}
	home, err := w.Env.Cluster.AdminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	well["home"] = home
	all := w.troubles()
	for name, kubeconfig := range well {
		w.secret(name, kubeconfig)
		w.config(name)
	}
	for _, x := range all {
		w.secret(x.name, x.kubeconfig)
		w.config(x.name)
		w.machine("on-"+x.name, "kubevirtConfigRef: "+x.name)
	}

	var under sync.WaitGroup
	answers := make([]int, len(all))
	for i, x := range all {
		under.Go(func() { answers[i] = w.event("on-" + x.name) })
	}
	for name := range well {
		w.prompt("on-"+name, name)
	}
	under.Wait()
	for i, x := range all {
		if answers[i] != http.StatusNoContent {
			t.Errorf("%s: the event was answered %d: an event or the resync comes, nobody has to try again", x.reason, answers[i])
		}
		w.ready("on-"+x.name, cmp.Or(x.want, "Unknown ClusterUnreachable"), x.says)
	}
	if _, err := os.Stat(w.evidence); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("CN-3: the program of a kubeconfig was run: %v", err)
	}

	started := time.Now()
	w.f.Resync()
	t.Logf("a resync over %d clusters in trouble takes %s", len(all), time.Since(started).Round(time.Millisecond))
	if took := time.Since(started); took > 15*time.Second {
		t.Errorf("the resync took %s", took)
	}
	w.f.Rests(w.Event(kinds.Machines, "on-home"), w.Event(kinds.Machines, "on-far"))

	for _, x := range all {
		x.heal()
	}
	for _, x := range all {
		w.settled("on-" + x.name)
		w.ready("on-"+x.name, "False Creating", "")
		w.remote.Must(kinds.VirtualMachines, "vm-on-"+x.name)
	}
}

// prompt makes a Machine on a cluster that is well, and wants it to be handled as
// if the others were too.
func (w *world) prompt(name, cluster string) {
	w.t.Helper()
	w.machine(name, "kubevirtConfigRef: "+cluster)
	started := time.Now()
	w.settled(name)
	if took := time.Since(started); took > promptness {
		w.t.Errorf("two events of a Machine on cluster %q, which is well, took %s", cluster, took)
	}
	w.ready(name, "False Creating", "")
}

// TestAClusterThatIsTooSlowIsWaitedFor: a cluster that takes five seconds for each
// answer, under the default timeout of ten, answers every call and still lets nothing
// be done within the time of an event. Its Machine says so, and nobody tries again
// and again; when the cluster gets faster, what was begun goes on.
func TestAClusterThatIsTooSlowIsWaitedFor(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	w := newWorld(t)
	w.f = w.copyOf(suite.WithOptions(func(o *reconcile.Options) { o.RemoteTimeout = 0 }))
	slow := suite.NewProxy(t, w.remote.Env.Config)
	w.secret("slow", suite.Redirect(t, w.direct(machinevm.Name), slow.URL, slow.CA))
	w.secret("far", w.direct(machinevm.Name))
	w.config("slow")
	w.config("far")
	w.machine("snail", "kubevirtConfigRef: slow")
	slow.Late(slowness)

	done := make(chan int, 1)
	var took time.Duration
	started := time.Now()
	go func() {
		got := w.event("snail")
		took = time.Since(started)
		done <- got
	}()
	w.prompt("hare", "far")
	if got := <-done; got != http.StatusNoContent {
		t.Errorf("the event was answered %d", got)
	}
	t.Logf("the event of a Machine on a slow cluster was answered after %s", took.Round(time.Millisecond))
	if took > 28*time.Second {
		t.Errorf("the call took %s, a Trigger cuts it after 30s", took)
	}
	w.ready("snail", "Unknown ClusterUnreachable", "no answer in time")

	slow.Late(slowness / 50)
	w.settled("snail")
	w.ready("snail", "False Creating", "")
	w.remote.Must(kinds.VirtualMachines, "vm-snail")
	w.remote.Must(kind.PersistentVolumeClaims, "snail-root")
	w.f.Rests(w.Event(kinds.Machines, "snail"))
}
