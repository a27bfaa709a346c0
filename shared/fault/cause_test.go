package fault

import "testing"

func TestACauseStaysTheSameAsLongAsItIsTheSame(t *testing.T) {
	for want, messages := range map[string][]string{
		"its certificate has expired, or is not valid yet": {
			"tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-01-01T00:00:00Z is after 2025-01-01T00:00:00Z",
			"tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-01-01T00:00:05Z is after 2025-01-01T00:00:00Z",
		},
		"it gives no answer in time": {
			`Get "https://east:6443/api/v1/namespaces/kube-system": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`,
			`Get "https://east:6443/apis/kubevirt.io/v1": net/http: request canceled (Client.Timeout exceeded while awaiting headers)`,
			"dial tcp 10.0.0.1:6443: i/o timeout",
		},
		"it refuses connections": {"dial tcp 127.0.0.1:1: connect: connection refused"},
		"the connection breaks":  {"read tcp 127.0.0.1:40000->127.0.0.1:1: read: connection reset by peer", "EOF", "unexpected EOF"},
		"it answers 502 Bad Gateway": {
			"the API server answered 502 Bad Gateway to a request just before",
		},
		"it does not accept the credentials of the kubeconfig (401 Unauthorized)": {"the API server answered 401 Unauthorized to a request just before"},
	} {
		for _, message := range messages {
			if got := (&Fault{Class: Unavailable, Message: message}).Cause(); got != want {
				t.Errorf("%s\nis told as %q, want %q", message, got, want)
			}
		}
	}
	if got := (&Fault{Class: Unavailable, Code: 429, Message: "x"}).Cause(); got != "it answers 429 Too Many Requests" {
		t.Errorf("an answer is told as %q", got)
	}
}
