package kube_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

// binary is the kube binary, built if it is not up to date.
var binary string

// crash is the variable that makes the test binary start a cluster in the directory
// that it names, say so, and wait to be killed.
const crash = "SLIPWAY_TEST_CRASH_DIR"

func TestMain(m *testing.M) {
	root, err := build.Root(".")
	if err == nil {
		err = build.Binaries(context.Background(), build.Options{Root: root, Out: os.Stderr}, "kube")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(root, build.DefaultBin, "kube")
	if dir := os.Getenv(crash); dir != "" {
		os.Exit(waitForTheEnd(dir))
	}
	release, err := kubetest.Turn(context.Background(), root, 2)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	release()
	os.Exit(code)
}

func waitForTheEnd(dir string) int {
	if _, err := kube.Start(context.Background(), kube.Options{Binary: binary, Dir: dir}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("ready")
	select {}
}

func start(t *testing.T, opts kube.Options) *kube.Cluster {
	t.Helper()
	opts.Binary = binary
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	began := time.Now()
	cluster, err := kube.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	t.Logf("cluster %q is ready after %s", cluster.Name, time.Since(began).Round(time.Millisecond))
	return cluster
}

func clientset(t *testing.T, cfg *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// object decodes a manifest with one object.
func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	objs, err := kube.Decode(strings.NewReader(manifest))
	if err != nil || len(objs) != 1 {
		t.Fatalf("cannot decode one object: %v", err)
	}
	return objs[0]
}

const (
	namespaceManifest = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a}\n"
	boatManifest      = "apiVersion: test.slipway.dev/v1\nkind: Boat\nmetadata: {name: one, namespace: team-a}\nspec: {length: 7}\n"
	boatDefinition    = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.test.slipway.dev}
spec:
  group: test.slipway.dev
  names: {kind: Boat, plural: boats, singular: boat, listKind: BoatList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {length: {type: integer}}}
`
)

func TestApplyPutsDefinitionsAndNamespacesFirst(t *testing.T) {
	c := start(t, kube.Options{})
	err := kube.Apply(t.Context(), c.Config, object(t, boatManifest), object(t, namespaceManifest), object(t, boatDefinition))
	if err != nil {
		t.Fatal(err)
	}
	boats := schema.GroupVersionResource{Group: "test.slipway.dev", Version: "v1", Resource: "boats"}
	boat, err := dynamic.NewForConfigOrDie(c.Config).Resource(boats).Namespace("team-a").Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if length, _, _ := unstructured.NestedInt64(boat.Object, "spec", "length"); length != 7 {
		t.Errorf("spec.length is %d, want what was applied, 7", length)
	}

	invalid := object(t, strings.Replace(boatManifest, "7", "seven", 1))
	began := time.Now()
	if err := kube.Apply(t.Context(), c.Config, invalid); err == nil || !strings.Contains(err.Error(), "spec.length") {
		t.Errorf("applying a wrong type gives %v, want an error that names spec.length", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("an error that will not pass was retried for %s", took)
	}
}

func TestControllersCollectGarbageOfInstalledKinds(t *testing.T) {
	install := func(ctx context.Context, c *kube.Cluster) error {
		return kube.Apply(ctx, c.Config, object(t, boatDefinition), object(t, namespaceManifest), object(t, boatManifest))
	}
	c := start(t, kube.Options{ControllerManager: true, Install: install})
	boats := dynamic.NewForConfigOrDie(c.Config).Resource(schema.GroupVersionResource{Group: "test.slipway.dev", Version: "v1", Resource: "boats"}).Namespace("team-a")
	boat, err := boats.Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client := clientset(t, c.Config)
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:            "cargo",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "test.slipway.dev/v1", Kind: "Boat", Name: "one", UID: boat.GetUID()}},
	}}
	if _, err := client.CoreV1().ConfigMaps("team-a").Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := boats.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the owned ConfigMap is deleted", func() bool {
		_, err := client.CoreV1().ConfigMaps("team-a").Get(t.Context(), "cargo", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	eventually(t, "the namespace has its default ServiceAccount", func() bool {
		_, err := client.CoreV1().ServiceAccounts("team-a").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	if err := client.CoreV1().Namespaces().Delete(t.Context(), "team-a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func() bool {
		_, err := client.CoreV1().Namespaces().Get(t.Context(), "team-a", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestStopIsQuickAndLeavesNoProcess(t *testing.T) {
	c := start(t, kube.Options{ControllerManager: true})
	watch, err := clientset(t, c.Config).CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	pids := map[string]int{}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		pids[name] = pid(t, c.Dir, name)
	}
	began := time.Now()
	c.Stop()
	c.Stop()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("stopping with an open watch took %s, want below 20s: an API server would wait a minute", took)
	}
	for name, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s (process %d) is still there after Stop", name, pid)
		}
	}
	select {
	case <-c.Done():
		t.Errorf("Done is closed after Stop, with %v; it is for programs that nobody stopped", c.Err())
	default:
	}
}

func TestClustersAtOnceSeeOnlyTheirOwnObjects(t *testing.T) {
	etcd, err := kube.StartEtcd(t.Context(), kube.EtcdOptions{Binary: binary, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Stop)
	cases := map[string]struct {
		reason string
		pair   [2]kube.Options
	}{
		"one etcd": {
			reason: "API servers on one etcd are kept apart by their prefixes",
			pair: [2]kube.Options{
				{EtcdURL: etcd.URL, EtcdPrefix: "/one"},
				{EtcdURL: etcd.URL, EtcdPrefix: "/remote", Issuer: "https://remote.example"},
			},
		},
		"two etcds": {reason: "whole clusters share nothing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var clusters [2]*kube.Cluster
			var group sync.WaitGroup
			for i, opts := range tc.pair {
				opts.Binary, opts.Dir = binary, t.TempDir()
				group.Go(func() {
					var err error
					if clusters[i], err = kube.Start(t.Context(), opts); err != nil {
						t.Errorf("%s: cannot start a cluster beside another: %v", tc.reason, err)
						return
					}
					t.Cleanup(clusters[i].Stop)
				})
			}
			group.Wait()
			if t.Failed() {
				t.FailNow()
			}
			if err := kube.Apply(t.Context(), clusters[0].Config, object(t, namespaceManifest)); err != nil {
				t.Fatal(err)
			}
			for i, c := range clusters {
				_, err := clientset(t, c.Config).CoreV1().Namespaces().Get(t.Context(), "team-a", metav1.GetOptions{})
				if has := err == nil; has != (i == 0) {
					t.Errorf("%s: getting the first one's namespace from number %d gives %v", tc.reason, i, err)
				}
			}
		})
	}
}

func TestBusyPortIsRefusedByName(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	cases := map[string]struct {
		reason string
		opts   kube.Options
	}{
		"the API server's": {reason: "a given port that somebody has is refused", opts: kube.Options{Port: port}},
		"etcd's":           {reason: "a given port that somebody has is refused", opts: kube.Options{EtcdPort: port}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.opts.Binary, tc.opts.Dir = binary, t.TempDir()
			began := time.Now()
			_, err := kube.Start(t.Context(), tc.opts)
			busy := (*kube.BusyPortError)(nil)
			if !errors.As(err, &busy) {
				t.Fatalf("%s: the error is %v, want a BusyPortError", tc.reason, err)
			}
			for _, want := range []string{fmt.Sprintf("port %d", port), fmt.Sprintf("process %d (", os.Getpid())} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q does not name %q", tc.reason, err, want)
				}
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("%s: the refusal took %s", tc.reason, took)
			}
		})
	}
}

func TestDirectoryOfARunningClusterIsRefused(t *testing.T) {
	c := start(t, kube.Options{})
	_, err := kube.Start(t.Context(), kube.Options{Binary: binary, Dir: c.Dir})
	if err == nil || !strings.Contains(err.Error(), "is in use by process") {
		t.Errorf("a second cluster in one directory gives %v, want a refusal that names the process", err)
	}
}

func TestCrashedRunIsSurvived(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), crash+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if err := kube.Apply(t.Context(), config, object(t, namespaceManifest)); err != nil {
		t.Fatal(err)
	}
	children := []int{pid(t, dir, "etcd"), pid(t, dir, "kube-apiserver")}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, child := range children {
		eventually(t, "the crashed run's children are gone", func() bool { return errors.Is(syscall.Kill(child, 0), syscall.ESRCH) })
	}

	// What is worse than the crash left: half a certificate, and an id that belongs
	// to somebody else by now.
	if err := os.Truncate(filepath.Join(dir, "pki", "server.crt"), 100); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "etcd.pid"), fmt.Appendf(nil, "%d\n", os.Getpid()), 0o644); err != nil {
		t.Fatal(err)
	}
	c := start(t, kube.Options{Dir: dir})
	if _, err := clientset(t, c.Config).CoreV1().Namespaces().Get(t.Context(), "team-a", metav1.GetOptions{}); err != nil {
		t.Errorf("an object of the crashed run is lost: %v", err)
	}
}

func TestTokenKubeconfigHasOnlyItsOwnRights(t *testing.T) {
	c := start(t, kube.Options{})
	err := kube.Apply(t.Context(), c.Config,
		object(t, namespaceManifest),
		object(t, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: reader, namespace: team-a}\n"),
		object(t, "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: reader, namespace: team-a}\nrules:\n- {apiGroups: [\"\"], resources: [configmaps], verbs: [list]}\n"),
		object(t, "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: reader, namespace: team-a}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}\nsubjects:\n- {kind: ServiceAccount, name: reader, namespace: team-a}\n"),
	)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := c.TokenKubeconfig(t.Context(), "team-a", "reader")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client := clientset(t, config)
	eventually(t, "the granted list is allowed", func() bool {
		_, err := client.CoreV1().ConfigMaps("team-a").List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	if _, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing in another namespace gives %v, want Forbidden", err)
	}
	if _, err := client.CoreV1().Secrets("team-a").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing Secrets gives %v, want Forbidden", err)
	}
	if _, err := c.TokenKubeconfig(t.Context(), "team-a", "nobody"); !apierrors.IsNotFound(err) {
		t.Errorf("a token of an absent ServiceAccount gives %v, want NotFound", err)
	}
}

func TestProgramThatEndsAtOnceSaysWhy(t *testing.T) {
	_, err := kube.Start(t.Context(), kube.Options{Binary: binary, Dir: t.TempDir(), APIServerFlags: []string{"--no-such-flag"}})
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("the error is %v, want the end of the log in it", err)
	}
}

func TestProgramThatDiesLaterIsReported(t *testing.T) {
	c := start(t, kube.Options{})
	if err := syscall.Kill(pid(t, c.Dir, "etcd"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitEtcdsDeath(t, c)
	if err := c.Err(); err == nil || !strings.HasPrefix(err.Error(), "etcd ended by itself (signal: killed)") {
		t.Errorf("Err is %v, want that etcd was killed", err)
	}
}

// TestAnAPIServerThatDiesMayComeBack shows that an outage of the API server alone does not
// end a cluster that is told to outlive it, and that the death of etcd still does.
func TestAnAPIServerThatDiesMayComeBack(t *testing.T) {
	c := start(t, kube.Options{})
	if err := kube.Apply(t.Context(), c.Config, object(t, namespaceManifest)); err != nil {
		t.Fatal(err)
	}
	lost := make(chan error, 1)
	c.Outlive(func(err error) { lost <- err })
	for round := range 2 {
		if err := syscall.Kill(pid(t, c.Dir, "kube-apiserver"), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-lost:
			if !strings.HasPrefix(err.Error(), "kube-apiserver ended by itself (signal: killed)") {
				t.Errorf("what is told is %v, want that the API server was killed", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("nobody is told that the API server was killed")
		}
		url := c.URL
		if err := c.StartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.URL != url {
			t.Errorf("round %d: it came back as %s, and was %s", round, c.URL, url)
		}
		if _, err := clientset(t, c.Config).CoreV1().Namespaces().Get(t.Context(), object(t, namespaceManifest).GetName(), metav1.GetOptions{}); err != nil {
			t.Errorf("round %d: what was there before: %v", round, err)
		}
	}
	if err := syscall.Kill(pid(t, c.Dir, "etcd"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitEtcdsDeath(t, c)
}

// awaitEtcdsDeath waits until a cluster has noticed that its etcd was killed.
func awaitEtcdsDeath(t *testing.T, c *kube.Cluster) {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("Done is not closed after etcd was killed")
	}
}

func pid(t *testing.T, dir, name string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// eventually fails the test unless the condition holds within half a minute.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not within 30s: %s", what)
}
