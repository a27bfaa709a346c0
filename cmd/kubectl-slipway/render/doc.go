// Package render is the command `kubectl slipway render`: it renders a template
// without any cluster, by the same child process and the same checks as the function
// workload-renderer.
package render
