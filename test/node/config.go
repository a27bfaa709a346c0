package node

import (
	"fmt"
	"os"
	"path/filepath"
)

// What is called how in there. Nothing of it can be seen from outside.
const (
	nodeName    = "node1"
	nodeAddress = "10.20.0.2"
	podRange    = "10.244.0.0/24"
	services    = "10.96.0.0/16"
	serviceAPI  = "10.96.0.1"
	serviceDNS  = "10.96.0.10"
	apiURL      = "https://127.0.0.1:6443"
	etcdURL     = "http://127.0.0.1:2379"
	socket      = "/run/containerd/containerd.sock"
	pauseImage  = "dev.local/pause:1"
)

// auditPolicy writes down every answer that an account of Slipway got.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- {level: Metadata, userGroups: ["system:serviceaccounts:slipway-system"]}
- {level: None}
`

// configure writes the configuration of every component.
func (n *Node) configure() error {
	files := map[string]string{
		"audit.yaml":          auditPolicy,
		"resolv.conf":         "",
		"containerd.toml":     n.containerdConfig(),
		"kubelet.yaml":        n.kubeletConfig(),
		"kube-proxy.yaml":     n.proxyConfig(),
		"cni/10-ptp.conflist": cniConfig,
	}
	for name, text := range files {
		path := n.conf(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("cannot configure the node: %w", err)
		}
	}
	return nil
}

func (n *Node) conf(name string) string { return filepath.Join(n.state, "conf", name) }

// containerdConfig is for containerd 1.6, which is what Debian 12 has.
func (n *Node) containerdConfig() string {
	return fmt.Sprintf(`version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
address = %q
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = %q
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = %q
conf_dir = %q
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
`, socket, pauseImage, cniDir, n.conf("cni"))
}

func (n *Node) kubeletConfig() string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 0.0.0.0
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %[1]q}}
authorization: {mode: Webhook}
tlsCertFile: %[2]q
tlsPrivateKeyFile: %[3]q
cgroupDriver: cgroupfs
cgroupRoot: /%[4]s
cgroupsPerQOS: true
enforceNodeAllocatable: [pods]
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: "unix://%[5]s"
registerNode: true
maxPods: 200
clusterDNS: [%[6]q]
clusterDomain: cluster.local
resolvConf: %[7]q
evictionHard: {memory.available: 100Mi, nodefs.available: 500Mi, imagefs.available: 500Mi, nodefs.inodesFree: 1%%, imagefs.inodesFree: 1%%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
serializeImagePulls: false
syncFrequency: 10s
fileCheckFrequency: 5s
httpCheckFrequency: 5s
`, n.pki.path("ca.crt"), n.pki.path("kubelet-server.crt"), n.pki.path("kubelet-server.key"), n.group, socket, serviceDNS, n.conf("resolv.conf"))
}

func (n *Node) proxyConfig() string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
bindAddress: 0.0.0.0
hostnameOverride: %s
clientConnection: {kubeconfig: %q}
clusterCIDR: 10.244.0.0/16
mode: nftables
nftables: {minSyncPeriod: 100ms, syncPeriod: 30s}
# The limit is the whole machine's: leave it alone.
conntrack: {maxPerCore: 0}
`, nodeName, n.pki.path("kube-proxy.kubeconfig"))
}

// cniConfig gives each pod a point-to-point link and an address of the one range.
const cniConfig = `{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipMasq": false, "mtu": 1500,
   "ipam": {"type": "host-local", "dataDir": "/var/lib/cni/networks",
            "ranges": [[{"subnet": "` + podRange + `"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
`

func (n *Node) apiServerFlags() []string {
	file := n.pki.path
	return []string{
		"--advertise-address=" + nodeAddress, "--bind-address=0.0.0.0", "--secure-port=6443", "--etcd-servers=" + etcdURL,
		"--profiling=false", "--allow-privileged=true", "--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement", "--anonymous-auth=true",
		"--client-ca-file=" + file("ca.crt"), "--tls-cert-file=" + file("apiserver.crt"), "--tls-private-key-file=" + file("apiserver.key"),
		"--service-cluster-ip-range=" + services, "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + file("sa.pub"), "--service-account-signing-key-file=" + file("sa.key"),
		"--kubelet-client-certificate=" + file("admin.crt"), "--kubelet-client-key=" + file("admin.key"),
		"--kubelet-certificate-authority=" + file("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + file("fp-ca.crt"), "--requestheader-allowed-names=front-proxy",
		"--proxy-client-cert-file=" + file("fp.crt"), "--proxy-client-key-file=" + file("fp.key"),
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--audit-policy-file=" + n.conf("audit.yaml"), "--audit-log-path=" + n.AuditLog(),
	}
}

func (n *Node) controllerManagerFlags() []string {
	file := n.pki.path
	return append(n.asClient("controller-manager"),
		"--use-service-account-credentials=true",
		// Claims are bound by what plays the storage: nobody provisions volumes here.
		"--controllers=*,-persistentvolume-binder-controller",
		"--service-account-private-key-file="+file("sa.key"), "--root-ca-file="+file("ca.crt"),
		"--cluster-signing-cert-file="+file("ca.crt"), "--cluster-signing-key-file="+file("ca.key"),
		"--leader-elect=false", "--bind-address=127.0.0.1")
}

// asClient are the flags with which a component is told how to reach the API server.
func (n *Node) asClient(client string) []string {
	kubeconfig := n.pki.path(client + ".kubeconfig")
	return []string{"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig}
}
