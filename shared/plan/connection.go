package plan

// Refusal is why a kubeconfig led to no connection.
type Refusal string

const (
	// SecretNotFound: there is no such Secret.
	SecretNotFound Refusal = "SecretNotFound"
	// SecretForbidden: the function may not read it.
	SecretForbidden Refusal = "SecretForbidden"
	// KeyMissing: the Secret has no such key.
	KeyMissing Refusal = "KeyMissing"
	// KubeconfigInvalid: what stands there cannot be used, or is not allowed.
	KubeconfigInvalid Refusal = "Invalid"
)

// Connection is what a decision may know of a kubeconfig: where it leads, or
// why it was refused.
type Connection struct {
	// Server is the API server's address.
	Server string `json:"server,omitempty"`
	// Refused is empty when the cluster can be asked. Whether it answers is not
	// known yet.
	Refused Refusal `json:"refused,omitempty"`
	// Message says what is wrong and the way out, without secrets.
	Message string `json:"message,omitempty"`
}
