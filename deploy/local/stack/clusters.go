package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/deploy/local/stages"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/setting"
)

const (
	// targetAccount is the account on a target cluster whose token goes into its
	// kubeconfig (deploy/target).
	targetAccount = "slipway"
	// configsNamespace is where the Secrets with the kubeconfigs lie.
	configsNamespace = "default"
	// defaultConfig is the setting that names the cluster of Machines that name
	// none. With several clusters it has to be said.
	defaultConfig = "DEFAULT_KUBEVIRT_CONFIG"
)

// Remote is another cluster: an API server of its own on an etcd of its own.
type Remote struct {
	// Name is what its KubevirtConfig is called, or "namespace/name" of its Cluster.
	Name string
	// Cluster is what runs, Client reaches it as an administrator.
	Cluster *kube.Cluster
	Client  dynamic.Interface
	// called tells that it shall come back at once.
	called chan struct{}
}

// remoteName is the name of the i-th remote cluster, from 0.
func remoteName(i int) string { return fmt.Sprintf("workload-%d", i+1) }

// clusters starts the supervisor and the remote clusters, as many at once as the
// machine can bear: the start of an API server keeps two processors busy.
func (s *Stack) clusters(ctx context.Context, platform, supervisor []*unstructured.Unstructured) error {
	remotes := 0
	if s.opts.Clusters > 1 {
		remotes = s.opts.Clusters
	}
	account, err := kube.ReadFiles(filepath.Join(s.opts.Root, "deploy/target"))
	if err != nil {
		return err
	}
	s.Remotes = make([]*Remote, remotes)
	errs := make([]error, remotes+1+len(s.opts.Workloads))
	var wait sync.WaitGroup
	slots := make(chan struct{}, max(1, runtime.NumCPU()/2))
	wait.Go(func() {
		slots <- struct{}{}
		defer func() { <-slots }()
		s.Cluster, s.Client, errs[remotes] = s.cluster(ctx, "slipway", s.opts.Data, s.opts.Port, slices.Concat(platform, supervisor))
	})
	for i := range s.Remotes {
		remote := &Remote{Name: remoteName(i)}
		s.Remotes[i] = remote
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			remote.Cluster, remote.Client, errs[i] = s.cluster(ctx, remote.Name, filepath.Join(s.opts.Data, remote.Name), 0, slices.Concat(platform, account))
		})
	}
	s.Workloads = make([]*Remote, len(s.opts.Workloads))
	for i, name := range s.opts.Workloads {
		workload := &Remote{Name: name}
		s.Workloads[i] = workload
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			workload.Cluster, workload.Client, errs[remotes+1+i] = s.cluster(ctx, path.Base(name), filepath.Join(s.opts.Data, "workload", filepath.FromSlash(name)), 0, nil)
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// cluster starts one API server with the given objects in place.
func (s *Stack) cluster(ctx context.Context, name, dir string, port int, objects []*unstructured.Unstructured) (*kube.Cluster, dynamic.Interface, error) {
	flags, err := s.auditFlags(dir)
	if err != nil {
		return nil, nil, err
	}
	cluster, err := kube.Start(ctx, kube.Options{
		Name: name, Binary: filepath.Join(s.bin, "kube"), Dir: dir, Port: port, ControllerManager: true, APIServerFlags: flags,
		Install: func(ctx context.Context, c *kube.Cluster) error { return kube.Apply(ctx, c.Config, objects...) },
	})
	if err != nil {
		return nil, nil, err
	}
	client, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		cluster.Stop()
		return nil, nil, fmt.Errorf("cannot reach cluster %q: %w", name, err)
	}
	return cluster, client, nil
}

// auditPolicy has one line in the log for each request that was answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, verbs: [create, update, patch, delete, deletecollection]}
`

// AuditLog is the file below a cluster's directory that [Options.Audit] asks for.
const AuditLog = "audit.log"

func (s *Stack) auditFlags(dir string) ([]string, error) {
	if !s.opts.Audit {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make a directory for the audit log: %w", err)
	}
	policy := filepath.Join(dir, "audit.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("cannot write the audit policy: %w", err)
	}
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + filepath.Join(dir, AuditLog)}, nil
}

// introduce makes the remote clusters known: a KubevirtConfig each, and a Secret
// with a kubeconfig that has the rights of a real one.
func (s *Stack) introduce(ctx context.Context) error {
	for _, remote := range s.Remotes {
		kubeconfig, err := remote.Cluster.TokenKubeconfig(ctx, Namespace, targetAccount)
		if err != nil {
			return err
		}
		secret := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret",
			"metadata": map[string]any{
				"name": remote.Name + "-kubeconfig", "namespace": configsNamespace, "labels": map[string]any{reconcile.LabelWatch: "true"},
			},
			"stringData": map[string]any{"kubeconfig": string(kubeconfig)},
		}}
		config := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "vitistack.io/v1alpha1", "kind": "KubevirtConfig", "metadata": map[string]any{"name": remote.Name},
			"spec": map[string]any{"name": remote.Name, "kubeconfigSecretRef": secret.GetName()},
		}}
		if err := s.Apply(ctx, secret, config); err != nil {
			return err
		}
	}
	return nil
}

// simulators start what plays the parts that need hardware, on every cluster.
func (s *Stack) simulators(ctx context.Context) error {
	clusters := []*kube.Cluster{s.Cluster}
	for _, remote := range s.Remotes {
		clusters = append(clusters, remote.Cluster)
	}
	objects, err := stages.Objects()
	if err != nil {
		return err
	}
	for i, cluster := range clusters {
		if err := kube.Apply(ctx, cluster.Config, objects...); err != nil {
			return err
		}
		programs := map[string]*exec.Cmd{"virt": s.command("virt", "--kubeconfig", cluster.Kubeconfig)}
		var groups []string
		if i == 0 {
			programs["providers"] = s.command("providers", "--kubeconfig", cluster.Kubeconfig)
			groups = append(groups, stages.GatewayAPI, stages.Flux)
		}
		// The simulators outlive the start: they are stopped by Stop.
		kwok, err := stages.Command(context.WithoutCancel(ctx), filepath.Join(s.bin, "kwok"), cluster.Kubeconfig, filepath.Join(cluster.Dir, "kwok"), 1, groups...)
		if err != nil {
			return err
		}
		programs["kwok"] = kwok
		for name, cmd := range programs {
			p, err := start(cluster.Dir, name, cmd)
			if err != nil {
				return err
			}
			s.processes = append(s.processes, p)
		}
	}
	return nil
}

// KubectlOn runs kubectl against a remote cluster and returns what it printed.
func (s *Stack) KubectlOn(ctx context.Context, remote *Remote, args ...string) ([]byte, error) {
	return s.kubectl(ctx, remote.Cluster.Kubeconfig, args...)
}

// settings are what a function of the given name is told on one machine.
func (s *Stack) settings(function string) map[string]string {
	if len(s.Remotes) == 0 {
		return nil
	}
	for _, spec := range slipway.Specs() {
		if spec.Name == function && slices.ContainsFunc(spec.Env, func(v setting.EnvVar) bool { return v.Name == defaultConfig }) {
			return map[string]string{defaultConfig: s.Remotes[0].Name}
		}
	}
	return nil
}

// ResourceOf is the plural of a kind: as a function declares it, or else the
// regular one.
func ResourceOf(group, kindName string) string {
	for _, spec := range slipway.Specs() {
		if spec.Reconciles.Group == group && spec.Reconciles.Kind == kindName {
			return spec.Reconciles.Plural
		}
	}
	return strings.ToLower(kindName) + "s"
}
