// Package fault says what went wrong between a function and an API server, as
// plain data that a pure decision can look at.
package fault

import "fmt"

// Class tells what a function can do about a fault.
type Class string

const (
	// Conflict: the world moved since it was read; gather and decide again.
	Conflict Class = "Conflict"
	// Unavailable: no connection, a timeout, TLS failure, 401, 429 or 5xx.
	Unavailable Class = "Unavailable"
	// Refused: the server understood and said no (400, 403, 422 and the like).
	Refused Class = "Refused"
	// NotServed: the server does not know the resource at all.
	NotServed Class = "NotServed"
)

// Fault is one failed call.
type Fault struct {
	Class Class `json:"class"`
	// Cluster is the name of the cluster; empty for the management cluster.
	Cluster string `json:"cluster,omitempty"`
	// Call is the verb and the object: "patch virtualmachines.kubevirt.io team-a/vm-web".
	Call string `json:"call"`
	// Code is the HTTP status; 0 when there was no answer.
	Code int `json:"code,omitempty"`
	// Message is the server's own text, without secrets.
	Message string `json:"message"`
}

// Error implements error.
func (f *Fault) Error() string {
	if f.Cluster != "" {
		return fmt.Sprintf("cannot %s on cluster %q: %s", f.Call, f.Cluster, f.Message)
	}
	return fmt.Sprintf("cannot %s: %s", f.Call, f.Message)
}
