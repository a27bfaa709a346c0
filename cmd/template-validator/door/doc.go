// Package door is the process of template-validator: the listener that the API server
// calls, on knative.dev/pkg's webhook and certificates, and what keeps the two sides
// trusting each other. What is let in is decided in package admit.
package door
