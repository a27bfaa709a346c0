package manifest_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/deploy/local/eventing/manifest"
)

func moduleDir(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "knative.dev/eventing").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func TestDefinitionsNeedNoWebhook(t *testing.T) {
	var out bytes.Buffer
	if err := manifest.Definitions(&out, moduleDir(t)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "strategy: Webhook") {
		t.Error("a definition is converted by a webhook that does not exist")
	}
	var names []string
	for _, line := range strings.Split(out.String(), "\n") {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "name: ")
		if ok && strings.HasSuffix(name, ".knative.dev") {
			names = append(names, name)
		}
	}
	want := []string{
		"apiserversources.sources.knative.dev", "brokers.eventing.knative.dev", "eventpolicies.eventing.knative.dev",
		"pingsources.sources.knative.dev", "subscriptions.messaging.knative.dev", "triggers.eventing.knative.dev",
		"inmemorychannels.messaging.knative.dev", "services.serving.knative.dev",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("wrong definitions (-want +got):\n%s", diff)
	}
}

func TestDefinitionsWithoutTheModuleNameTheFlag(t *testing.T) {
	if err := manifest.Definitions(&bytes.Buffer{}, t.TempDir()); err == nil || !strings.Contains(err.Error(), "--module-dir") {
		t.Errorf("got error %v", err)
	}
}

func TestDefaults(t *testing.T) {
	cases := map[string]struct{ reason, in, want, wantError string }{
		"Foreign": {
			reason: "what is not Knative's passes as it is written, in order",
			in:     "# first\nkind: ConfigMap\napiVersion: v1\n---\n\n---\nkind:   Service   # second\napiVersion: serving.knative.dev/v1\n",
			want:   "---\n# first\nkind: ConfigMap\napiVersion: v1\n---\nkind:   Service   # second\napiVersion: serving.knative.dev/v1\n",
		},
		"Complete": {
			reason: "an object that states everything passes as it is written",
			in: `apiVersion: eventing.knative.dev/v1
kind: Broker
metadata: {name: default, namespace: ns, annotations: {eventing.knative.dev/broker.class: MTChannelBasedBroker}}
spec: # stated
  config: {apiVersion: v1, kind: ConfigMap, name: config-br-default-channel, namespace: knative-eventing}
  delivery: {retry: 5, backoffPolicy: exponential, backoffDelay: PT0.5S, timeout: PT30S}
`,
			want: `---
apiVersion: eventing.knative.dev/v1
kind: Broker
metadata: {name: default, namespace: ns, annotations: {eventing.knative.dev/broker.class: MTChannelBasedBroker}}
spec: # stated
  config: {apiVersion: v1, kind: ConfigMap, name: config-br-default-channel, namespace: knative-eventing}
  delivery: {retry: 5, backoffPolicy: exponential, backoffDelay: PT0.5S, timeout: PT30S}
`,
		},
		"Trigger": {
			reason: "a Trigger gets the label of its broker, and its references a namespace",
			in: `apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: t, namespace: ns}
spec:
  broker: default
  filter: {attributes: {type: a}}
  subscriber: {ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: f}}
`,
			want: `---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata:
  labels:
    eventing.knative.dev/broker: default
  name: t
  namespace: ns
spec:
  broker: default
  filter:
    attributes:
      type: a
  subscriber:
    ref:
      apiVersion: serving.knative.dev/v1
      kind: Service
      name: f
      namespace: ns
`,
		},
		"Field": {
			reason:    "a misspelt field is refused, and the object named",
			in:        "apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {name: t, namespace: ns}\nspec: {brokr: default}\n",
			wantError: `cannot accept Trigger "ns/t": json: unknown field "brokr"`,
		},
		"Invalid": {
			reason:    "what Knative's webhook would refuse is refused",
			in:        "apiVersion: sources.knative.dev/v1\nkind: PingSource\nmetadata: {name: p, namespace: ns}\nspec: {schedule: 'every day', sink: {uri: 'http://sink'}}\n",
			wantError: `cannot accept PingSource "ns/p": invalid value: `,
		},
		"Timeout": {
			reason: "features are those that Knative ships",
			in: `apiVersion: eventing.knative.dev/v1
kind: Broker
metadata: {name: b, namespace: ns, annotations: {eventing.knative.dev/broker.class: MTChannelBasedBroker}}
spec:
  config: {apiVersion: v1, kind: ConfigMap, name: c, namespace: knative-eventing}
  delivery: {retryAfterMax: PT1S}
`,
			wantError: "must not set the field(s): spec.delivery.retryAfterMax",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := manifest.Defaults(strings.NewReader(tc.in), &out, moduleDir(t))
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Fatalf("%s: got error %v, want %q", tc.reason, err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
