package clustercheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/functions/cluster-check/decide"
	"github.com/slipway-dev/slipway/test/suite"
)

// said is what the command printed, and its exit code.
type said struct {
	out, err string
	code     int
}

// slipway runs the command line on the management cluster, as a person with a
// kubeconfig.
func (s *scene) slipway(kubeconfig []byte, args ...string) said {
	s.t.Helper()
	root, err := build.Root(".")
	if err != nil {
		s.t.Fatal(err)
	}
	if err := build.Binaries(s.t.Context(), build.Options{Root: root, Out: os.Stderr}, "kubectl-slipway"); err != nil {
		s.t.Fatal(err)
	}
	path := filepath.Join(s.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), filepath.Join(root, filepath.FromSlash(build.DefaultBin), "kubectl-slipway"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+path)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	got := said{out: out.String(), err: stderr.String(), code: cmd.ProcessState.ExitCode()}
	for _, secret := range []string{"token: ", "eyJ"} {
		if strings.Contains(got.out+got.err, secret) {
			s.t.Errorf("a secret was printed:\n%s%s", got.out, got.err)
		}
	}
	return got
}

var gaps = regexp.MustCompile(` {2,}`)

// rows are the first columns of a table.
func rows(table string, columns int) []string {
	var list []string
	for line := range strings.Lines(table) {
		list = append(list, strings.Join(gaps.Split(strings.TrimSpace(line), -1)[:columns], " "))
	}
	return list
}

func (s *scene) command() {
	admin, err := s.management.Env.Cluster.AdminKubeconfig()
	if err != nil {
		s.t.Fatal(err)
	}
	s.kubevirt(s.management, "True")
	s.kubevirt(s.remote, "True")
	s.stores(s.remote, "v1alpha3")

	got := s.slipway(admin, "check", "--single-cluster", "false")
	if got.code != 1 || !strings.Contains(got.out, "there is no KubevirtConfig") || !strings.Contains(got.err, "1 of 3 checks failed") {
		s.t.Errorf("without a KubevirtConfig: %d\n%s%s", got.code, got.out, got.err)
	}
	if got := s.slipway(admin, "check"); got.code != 0 || !strings.Contains(got.out, "Machines run on the management cluster itself") {
		s.t.Errorf("without a KubevirtConfig, with KubeVirt: %d\n%s%s", got.code, got.out, got.err)
	}

	s.config(alpha, s.credential(s.management, suite.Home, "cluster-check"))
	s.config(east, s.good)
	got = s.slipway(admin, "check")
	if got.code != 0 || got.err != "" {
		s.t.Errorf("warnings do not fail: %d, %q", got.code, got.err)
	}
	want := []string{
		"CHECK CLUSTER RESULT",
		"resources (management) ok", "configs (management) ok", "schemas (management) ok",
		"connection alpha ok", "kubevirt alpha ok", "versions alpha ok",
		"connection east ok", "kubevirt east ok", "versions east warning",
	}
	if diff := cmp.Diff(want, rows(got.out, 3)); diff != "" {
		s.t.Errorf("the table (-want +got):\n%s\n%s", diff, got.out)
	}
	s.t.Logf("kubectl slipway check:\n%s", got.out)

	// A stopped cluster: it is the first by name that answers which others are
	// compared with.
	s.config("aaa", s.good)
	s.way.Stall()
	started := time.Now()
	got = s.slipway(admin, "check", "aaa", alpha, "-o", "json", "--timeout", "5s")
	took := time.Since(started)
	s.way.Cut()
	s.way.Open()
	var report struct {
		Passed           bool
		Failed, Warnings int
		Checks           []decide.Finding
	}
	if err := json.Unmarshal([]byte(got.out), &report); err != nil {
		s.t.Fatalf("want JSON: %v in %s", err, got.out)
	}
	if got.code != 1 || report.Passed || report.Failed != 1 || !strings.Contains(got.err, "1 of 9 checks failed") {
		s.t.Errorf("a cluster that does not answer: %d, %q, %+v", got.code, got.err, report)
	}
	if took > 20*time.Second {
		s.t.Errorf("with --timeout 5s it took %s", took)
	}
	for _, f := range report.Checks {
		if f.Cluster == "aaa" && f.Check == decide.CheckConnected && (f.Result != decide.Failed || !strings.Contains(f.Detail, "no answer in time")) {
			s.t.Errorf("the cluster that does not answer is told as %+v", f)
		}
		if f.Cluster == alpha && f.Result != decide.OK {
			s.t.Errorf("its neighbour is told as %+v", f)
		}
	}

	got = s.slipway(admin, "check", "nobody")
	if got.code != 1 || !strings.Contains(got.err, `cannot find KubevirtConfig "nobody": there are aaa, alpha, east`) {
		s.t.Errorf("a name that is not there: %d, %q", got.code, got.err)
	}
	if got = s.slipway(admin, "__complete", "check", alpha, ""); !strings.HasPrefix(got.out, "aaa\neast\n") {
		s.t.Errorf("offered are %q", got.out)
	}
}

// commandWithoutRights: a person who may list KubevirtConfigs, and not read their
// Secrets or definitions.
func (s *scene) commandWithoutRights() {
	s.apply(s.management, suite.Parse(s.t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: person, namespace: `+suite.Home+`}}`))
	somebody, err := s.management.Env.Cluster.TokenKubeconfig(s.t.Context(), suite.Home, "person")
	if err != nil {
		s.t.Fatal(err)
	}
	s.config(east, s.good)
	got := s.slipway(somebody, "check")
	for _, part := range []string{
		"missing right: your account may not list kubevirtconfigs.vitistack.io",
		"missing right: your account may not get customresourcedefinitions.apiextensions.k8s.io",
	} {
		if !strings.Contains(got.out, part) {
			s.t.Errorf("the table lacks %q:\n%s", part, got.out)
		}
	}
	if got.code != 1 {
		s.t.Errorf("the exit code is %d: %s", got.code, got.err)
	}

	right := suite.Right{Group: "vitistack.io", Resource: "kubevirtconfigs", Verb: "list"}
	s.apply(s.management, suite.Role("person", suite.Home, "person", right)...)
	suite.AwaitRight(s.t, s.management.Env, suite.Home, "person", right)
	got = s.slipway(somebody, "check")
	if got.code != 1 || !strings.Contains(got.out, `cannot get resource "secrets"`) || !strings.Contains(got.out, s.management.NS) {
		s.t.Errorf("a Secret that may not be read: %d\n%s", got.code, got.out)
	}
}
