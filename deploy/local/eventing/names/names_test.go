package names_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/deploy/local/eventing/names"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason, host string
		want         names.Host
	}{
		"Ingress": {
			reason: "the ingress is known by its full name",
			host:   "broker-ingress.knative-eventing.svc.cluster.local",
			want:   names.Host{Role: names.Ingress, Name: "broker-ingress", Namespace: "knative-eventing"},
		},
		"ShortWithPort": {
			reason: "the domain may be left out and a port may be named",
			host:   "broker-filter.knative-eventing.svc:80",
			want:   names.Host{Role: names.Filter, Name: "broker-filter", Namespace: "knative-eventing"},
		},
		"Channel": {
			reason: "a channel is known by its suffix, in any namespace",
			host:   "default-kne-trigger-kn-channel.team-a.svc.cluster.local",
			want:   names.Host{Role: names.Channel, Name: "default-kne-trigger", Namespace: "team-a"},
		},
		"APIServer": {
			reason: "the API server is a service too",
			host:   "kubernetes.default.svc:443",
			want:   names.Host{Role: names.APIServer, Name: "kubernetes", Namespace: "default"},
		},
		"Service": {
			reason: "every other service may be a function",
			host:   "machine-vm.slipway-system.svc.cluster.local",
			want:   names.Host{Role: names.Service, Name: "machine-vm", Namespace: "slipway-system"},
		},
		"IngressElsewhere": {
			reason: "a service of the ingress's name in another namespace is not the ingress",
			host:   "broker-ingress.team-a.svc",
			want:   names.Host{Role: names.Service, Name: "broker-ingress", Namespace: "team-a"},
		},
		"Foreign":  {reason: "the internet is not ours", host: "example.com:443"},
		"Loopback": {reason: "an address is no name", host: "127.0.0.1:8080"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, names.Parse(tc.host)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRedirect(t *testing.T) {
	cases := map[string]struct{ reason, address, want string }{
		"Service":   {"a service is this process", "a.b.svc.cluster.local:80", "127.0.0.1:1"},
		"APIServer": {"the API server keeps its own address", "kubernetes.default.svc:443", "127.0.0.1:2"},
		"Foreign":   {"what is not ours is left alone", "example.com:80", "example.com:80"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var dialed string
			dial := names.Redirect("127.0.0.1:1", "127.0.0.1:2", func(_ context.Context, _, address string) (net.Conn, error) {
				dialed = address
				return nil, errors.New("not really")
			})
			_, _ = dial(t.Context(), "tcp", tc.address)
			if dialed != tc.want {
				t.Errorf("%s: dialed %q, want %q", tc.reason, dialed, tc.want)
			}
		})
	}
}

func TestLoopback(t *testing.T) {
	cases := map[string]struct{ reason, text, want string }{
		"Broker": {
			"a broker keeps its path",
			"http://broker-ingress.knative-eventing.svc.cluster.local/slipway-system/default",
			"http://127.0.0.1:1/slipway-system/default",
		},
		"Function": {
			"a function is reached by a path, since its name cannot be resolved",
			"http://event-archive.slipway-system.svc.cluster.local/recordings",
			"http://127.0.0.1:1/functions/slipway-system/event-archive/recordings",
		},
		"Text":  {"what is no URL is left alone", "apply", "apply"},
		"HTTPS": {"nothing here speaks TLS", "https://a.b.svc", "https://a.b.svc"},
		"Web":   {"other hosts are left alone", "http://example.com/a", "http://example.com/a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := names.Loopback(tc.text, "127.0.0.1:1"); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
