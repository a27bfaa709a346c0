// Package evaluate is the CUE side of rendering: it parses a template, binds what
// it is given, evaluates it and gives its outputs as JSON.
//
// Evaluating has no limits of its own: it runs in the child process of package
// worker and nowhere else. No file, module, registry, environment or network is
// consulted: the only imports are CUE's own packages.
package evaluate
