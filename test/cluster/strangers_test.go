package cluster_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/slipway-dev/slipway/test/cluster"
)

// doors are two pods that do nothing, at the places from which the test knocks: one
// anywhere, one where Knative's gateway lives.
const doors = `apiVersion: v1
kind: Namespace
metadata: {name: stranger}
---
apiVersion: v1
kind: Pod
metadata: {name: door, namespace: stranger}
spec: {automountServiceAccountToken: false, containers: [{name: pause, image: "dev.local/pause:1", imagePullPolicy: Never}]}
---
apiVersion: v1
kind: Pod
metadata: {name: door, namespace: kourier-system}
spec: {automountServiceAccountToken: false, containers: [{name: pause, image: "dev.local/pause:1", imagePullPolicy: Never}]}
`

// knock opens a connection from the network of the pod with the address $FROM; without
// one from the node itself, which no policy keeps out.
const knock = `
at=()
if [ -n "$FROM" ]; then
	for file in /run/netns/*; do
		if nsenter --net="$file" ip -4 -o addr show | grep -qF " $FROM/"; then at=(nsenter --net="$file"); fi
	done
	[ ${#at[@]} -gt 0 ] || { echo "no pod has the address $FROM"; exit 2; }
fi
timeout 2 "${at[@]}" /bin/bash -c "exec 3<>/dev/tcp/$TO/$PORT"
`

// strangers: network policies are enforced on this node all the time, so the whole story
// shows that they keep nobody out who belongs here. This step shows whom they keep out.
func strangers(f *fixture, report *report) {
	if !f.Guarded {
		if os.Getenv(asked) == required {
			f.t.Fatal("network policies are not enforced: ipset is not installed")
		}
		f.t.Skip("network policies are not enforced: ipset is not installed")
	}
	f.apply(doors)
	for _, namespace := range []string{"stranger", "kourier-system"} {
		f.kubectl("wait", "pod/door", "-n", namespace, "--for=condition=Ready", "--timeout=2m")
	}
	stranger, gateway := f.addressOf("stranger", "pod/door"), f.addressOf("kourier-system", "pod/door")

	// Awake, and with a pod to knock at.
	if status, err := f.Ask(f.t.Context(), "machine-vm"); err != nil || status/100 != 2 {
		f.t.Fatalf("machine-vm answers %d to the gateway (%v)", status, err)
	}
	pods, err := f.Pods(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	function := ""
	for _, pod := range pods {
		if name, found := strings.CutPrefix(pod, "machine-vm/"); found {
			function = f.addressOf(cluster.Namespace, "pod/"+name)
		}
	}
	if function == "" {
		f.t.Fatalf("machine-vm answered, and has no pod: %v", pods)
	}
	archive := f.firstOf("serving.knative.dev/service=event-archive")
	for _, door := range []struct {
		name, to, port    string
		stranger, gateway bool
	}{
		{"a function's queue-proxy", function, "8012", false, true},
		{"a function's metrics", function, "9090", false, false},
		{"a function itself", function, "8080", false, false},
		{"event-archive's queue-proxy", archive, "8012", false, true},
		{"event-archive itself", archive, "8080", false, false},
		{"event-archive's door for readers, where a token is asked for", archive, "8082", true, true},
	} {
		if said, err := f.knock("", door.to, door.port); err != nil {
			f.t.Errorf("%s: nothing listens, so it shows nothing that nobody gets there: %v %s", door.name, err, said)
			continue
		}
		if _, err := f.knock(stranger, door.to, door.port); (err == nil) != door.stranger {
			f.t.Errorf("%s: a stranger's pod connects: %v, and should: %v", door.name, err == nil, door.stranger)
		}
		if _, err := f.knock(gateway, door.to, door.port); (err == nil) != door.gateway {
			f.t.Errorf("%s: a pod beside the gateway connects: %v, and should: %v", door.name, err == nil, door.gateway)
		}
	}
	report.add("a stranger's pod reaches the readers' port of event-archive, and none of 5 others")
	f.kubectl("delete", "namespace", "stranger", "--timeout=2m")
	f.kubectl("delete", "pod", "door", "-n", "kourier-system", "--timeout=2m")
}

func (f *fixture) knock(from, to, port string) (string, error) {
	f.t.Helper()
	cmd := f.Enter(f.t.Context(), "/bin/bash", "-c", knock)
	cmd.Env = append(os.Environ(), "FROM="+from, "TO="+to, "PORT="+port)
	said, err := cmd.CombinedOutput()
	if strings.Contains(string(said), "no pod has the address") {
		f.t.Fatal(string(said))
	}
	return strings.TrimSpace(string(said)), err
}

func (f *fixture) addressOf(namespace, pod string) string {
	f.t.Helper()
	address := f.kubectl("get", pod, "-n", namespace, "-o", "jsonpath={.status.podIP}")
	if address == "" {
		f.t.Fatalf("%s in %s has no address", pod, namespace)
	}
	return address
}

// firstOf is the address of the first pod of Slipway with a label.
func (f *fixture) firstOf(selector string) string {
	f.t.Helper()
	name := f.kubectl("get", "pods", "-n", cluster.Namespace, "-l", selector, "--field-selector=status.phase=Running", "-o", "jsonpath={.items[0].metadata.name}")
	return f.addressOf(cluster.Namespace, fmt.Sprintf("pod/%s", name))
}
